import type {StudyCharts} from '../api';
import {axis, Chart, tip, tooltip} from '../chart';
import {count, digits, tick} from '../format';

function short(value: number): string {
  if (value >= 1e6) return digits(value / 1e6, 2).replace(/\.0$/, '') + 'M';
  return value >= 1e4 ? digits(value / 1e3, 3).replace(/\.0+$/, '') + 'k' : String(value);
}

export function History({charts}: {charts: StudyCharts}) {
  const label = charts.objective[0] ?? 'objective';
  return (
    <Chart
      label={`${label} of ${charts.history.length} trials, and the best so far`}
      keys={[charts]}
      option={(p) => ({
        grid: {left: 60, right: 18, top: 14, bottom: 44},
        xAxis: axis(p, 'Trial', {nameGap: 27, splitLine: {show: false}, axisLabel: {formatter: short}}),
        yAxis: axis(p, label, {scale: true, nameGap: 44, axisLabel: {formatter: tick}}),
        tooltip: tooltip((item: {value: [number, number]}) => tip(`Trial ${count(item.value[0])}`, [[label, digits(item.value[1], 4)]])),
        series: [
          {type: 'scatter', data: charts.history.map((one) => [one.trial, one.value]), symbolSize: charts.history.length > 500 ? 3 : 6, itemStyle: {color: p.faint}, large: charts.history.length > 1500},
          {type: 'line', data: charts.history.map((one) => [one.trial, one.best]), step: 'end', showSymbol: false, silent: true, color: p.main, lineStyle: {width: 2}},
        ],
      })}
    />
  );
}

export function Plane({charts}: {charts: StudyCharts}) {
  const plane = charts.pareto;
  if (!plane) return null;
  const front = plane.points.filter((point) => point.front).sort((a, b) => (a.x ?? 0) - (b.x ?? 0));
  return (
    <Chart
      label={`${plane.y} against ${plane.x}; ${front.length} trials that no other beats in both`}
      keys={[charts]}
      option={(p) => ({
        grid: {left: 60, right: 18, top: 14, bottom: 44},
        xAxis: axis(p, plane.x, {scale: true, nameGap: 27, axisLabel: {formatter: tick}}),
        yAxis: axis(p, plane.y, {scale: true, nameGap: 44, axisLabel: {formatter: tick}}),
        tooltip: tooltip((item: {value: [number, number, number]}) => tip(`Trial ${count(item.value[2])}`, [[plane.x, digits(item.value[0], 4)], [plane.y, digits(item.value[1], 4)]])),
        series: [
          {type: 'scatter', data: plane.points.filter((point) => !point.front).map((point) => [point.x, point.y, point.trial]), symbolSize: plane.points.length > 500 ? 3 : 6, itemStyle: {color: p.faint}},
          {type: 'line', data: front.map((point) => [point.x, point.y, point.trial]), step: 'end', color: p.main, symbol: 'circle', symbolSize: 7, lineStyle: {width: 2}},
        ],
      })}
    />
  );
}

export function Rungs({charts}: {charts: StudyCharts}) {
  const several = new Set(charts.rungs.map((rung) => rung.bracket)).size > 1;
  const names = charts.rungs.map((rung) => {
    const budget = rung.budget ? `${tick(rung.budget.epochs)} ep${rung.budget.data_fraction < 1 ? ` × ${Math.round(rung.budget.data_fraction * 100)} %` : ''}` : `level ${rung.level}`;
    return several ? `${rung.bracket}: ${budget}` : budget;
  });
  return (
    <Chart
      label={`${charts.rungs.length} rungs with how many trials ended and went on`}
      keys={[charts]}
      option={(p) => ({
        grid: {left: 60, right: 18, top: 14, bottom: 44},
        xAxis: axis(p, several ? 'Bracket: budget' : 'Budget', {type: 'category', data: names, nameGap: 27, splitLine: {show: false}}),
        yAxis: axis(p, 'Trials', {nameGap: 44, axisLabel: {formatter: short}}),
        tooltip: tooltip((item: {dataIndex: number; name: string}) => {
          const rung = charts.rungs[item.dataIndex];
          return rung ? tip(item.name, [['Ended', count(rung.ended)], ['Went on', count(rung.promoted)], ['Best accuracy', digits(rung.best_accuracy, 4)]]) : '';
        }),
        series: [
          {type: 'bar', name: 'ended', data: charts.rungs.map((rung) => rung.ended), itemStyle: {color: p.faint}, barGap: '-100%', barMaxWidth: 42},
          {type: 'bar', name: 'went on', data: charts.rungs.map((rung) => rung.promoted), itemStyle: {color: p.main}, barMaxWidth: 42},
        ],
      })}
    />
  );
}

export function Parallel({charts}: {charts: StudyCharts}) {
  const parallel = charts.parallel;
  if (!parallel) return null;
  const value = (axisAt: number, v: number | null) => {
    const values = parallel.axes[axisAt]?.values;
    return v === null ? '-' : values ? String(values[v] ?? '-') : v;
  };
  const lines = (best: boolean) => parallel.lines.filter((line) => line.best === best).map((line) => line.values.map((v, i) => value(i, v)));
  return (
    <div class="chart-scroll"><Chart
      label={`Parameters of ${parallel.lines.length} trials: ${parallel.axes.map((one) => one.name).join(', ')}`}
      height={340}
      keys={[charts]}
      option={(p) => ({
        parallel: {left: 56, right: 72, top: 48, bottom: 24, parallelAxisDefault: {nameLocation: 'start', nameGap: 14}},
        parallelAxis: parallel.axes.map((one, dim) => ({
          dim,
          name: one.name,
          nameTextStyle: {color: p.ink, fontSize: 11},
          axisLine: {lineStyle: {color: p.muted}},
          axisTick: {show: false},
          z: 10,
          axisLabel: {color: p.muted, fontSize: 11, backgroundColor: p.surface, padding: [1, 3], borderRadius: 3, ...(one.values ? {} : {formatter: tick})},
          inverse: false,
          nameLocation: 'end',
          ...(one.values ? {type: 'category', data: one.values.map(String)} : {type: one.log ? 'log' : 'value', scale: true}),
        })),
        tooltip: {show: false},
        series: [
          {type: 'parallel', data: lines(false), lineStyle: {color: p.faint, width: 1, opacity: parallel.lines.length > 400 ? 0.12 : 0.35}, silent: true, progressive: 0},
          {type: 'parallel', data: lines(true), lineStyle: {color: p.main, width: 1.5, opacity: parallel.lines.length > 400 ? 0.4 : 0.75}, silent: true, progressive: 0},
        ],
      })}
    /></div>
  );
}
