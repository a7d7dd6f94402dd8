import {api, type Pareto} from '../api';
import {axis, Chart, tip, tooltip, type Palette} from '../chart';
import {given, milliseconds, percent, tick} from '../format';
import {useNews} from '../live';
import {Card, Empty, Loading, Problem, useLoad} from '../parts';

type Point = Pareto['points'][number];

/** A device's choices: each more accurate than all that are quicker. */
export function ParetoFront({device}: {device: string}) {
  const loaded = useLoad(() => api.pareto(device), [device]);
  useNews((event) => event.device === device && event.kind === 'job', loaded.reload);
  const front = loaded.data;
  if (loaded.error && loaded.error.status !== 404) return <Problem error={loaded.error} />;
  if (!front && !loaded.error) return <Loading rows={5} />;
  if (!front || front.points.length === 0) {
    return (
      <Card title="Pareto front">
        <Empty title="No choices are known for this device yet" command={`fleetfit adapt net.ffb --data fashion-mnist --budget-ms 5 -o pool.json`}>
          Press <em>Adapt</em>: the device then finds the best subnet of a bundle within a budget, and the others worth having. Or on the device itself:
        </Empty>
      </Card>
    );
  }
  const points = [...front.points].sort((a, b) => a.latency_ms - b.latency_ms);
  return (
    <Card title="Pareto front" note="Every point is a subnet that is more accurate than all quicker ones; the marked one was chosen for the budget.">
      <Chart label={`Accuracy against latency of ${points.length} subnets; chosen: ${front.chosen ?? 'none'}`} height={340} keys={[front]} option={(p) => option(p, front, points)} />
      <table class="list rows">
        <thead><tr><th>Subnet</th><th class="num">Latency</th><th class="num">Accuracy</th><th>Choice</th></tr></thead>
        <tbody>
          {points.map((point) => (
            <tr key={point.design} class={point.design === front.chosen ? 'chosen' : ''}>
              <td class="code main">{point.design}</td>
              <td class="num" data-label="Latency">{milliseconds(point.latency_ms)}</td>
              <td class="num" data-label="Accuracy">{percent(share(point.accuracy))}</td>
              <td class="soft">{point.design === front.chosen ? '● chosen' : front.budget_ms != null && point.latency_ms > front.budget_ms ? 'over budget' : ''}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}

/** Tables count accuracy in percent, adaptations as a share. */
const share = (accuracy: number) => (accuracy > 1 ? accuracy / 100 : accuracy);

function option(p: Palette, front: Pareto, points: Point[]) {
  const chosen = points.filter((point) => point.design === front.chosen);
  const data = (some: Point[]) => some.map((point) => ({value: [point.latency_ms, share(point.accuracy) * 100], point}));
  return {
    grid: {left: 58, right: 24, top: 26, bottom: 46},
    xAxis: axis(p, 'Latency, ms', {scale: true, nameGap: 28, axisLabel: {formatter: tick}}),
    yAxis: axis(p, 'Accuracy, %', {scale: true, nameGap: 42}),
    tooltip: tooltip((item: {data: {point: Point}}) => tip(item.data.point.design, [['Latency', milliseconds(item.data.point.latency_ms)], ['Accuracy', percent(share(item.data.point.accuracy), 2)]])),
    series: [
      {
        type: 'line', data: data(points), symbol: 'circle', symbolSize: 8, color: p.main, lineStyle: {width: 2}, step: 'end',
        markLine: front.budget_ms == null ? undefined : {
          symbol: 'none', silent: true, lineStyle: {color: p.warm, type: 'dashed', width: 1.5},
          label: {formatter: `budget ${given(front.budget_ms)}`, color: p.warm, position: 'end'}, data: [{xAxis: front.budget_ms}],
        },
      },
      {
        type: 'scatter', data: data(chosen), symbol: 'circle', symbolSize: 17, z: 5, itemStyle: {color: p.surface, borderColor: p.main, borderWidth: 5},
        label: {show: true, formatter: 'chosen', position: 'right', offset: [2, 13], color: p.ink, fontWeight: 600},
      },
    ],
  };
}
