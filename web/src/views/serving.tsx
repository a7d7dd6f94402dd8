import {useEffect, useState} from 'preact/hooks';
import {api, type FleetEvent} from '../api';
import {axis, Chart, tip, tooltip, type Palette} from '../chart';
import {clock, digits, given, milliseconds, tick} from '../format';
import {useEvents} from '../live';
import {Card, Empty, Loading, Problem, useLoad} from '../parts';
import {link} from '../route';

const KEPT = 600;
const WINDOW_MS = 5 * 60 * 1000;

interface Moment {
  time: number;
  latency: number;
  budget: number | null;
  subnet: string;
}
interface Switch {
  id: number;
  time: number;
  from: string;
  to: string;
  reason: string;
  ratio: number | null;
}

// Its own clock knows how far apart things were that a device sends together.
const happened = (event: FleetEvent) => Date.parse(event.device_time ?? event.time);
const number = (value: unknown) => (typeof value === 'number' ? value : null);
const text = (value: unknown) => (typeof value === 'string' ? value : '');

function moments(events: FleetEvent[]): Moment[] {
  return events.filter((event) => event.kind === 'latency').map((event) => ({
    time: happened(event),
    latency: number(event.body['latency_ms']) ?? number(event.body['p95_ms']) ?? number(event.body['median_ms']) ?? NaN,
    budget: number(event.body['budget_ms']),
    subnet: text(event.body['subnet']),
  }));
}

function switches(events: FleetEvent[]): Switch[] {
  return events.filter((event) => event.kind === 'switch').map((event) => ({
    id: event.id,
    time: happened(event),
    from: text(event.body['from']),
    to: text(event.body['to']),
    reason: text(event.body['reason']),
    ratio: number(event.body['ratio']),
  }));
}

/** Latency against the budget as it is measured, with every switch of subnets marked. */
export function LiveServing({device, brief = false}: {device: string; brief?: boolean}) {
  const loaded = useLoad(async () => {
    const [latency, changed] = await Promise.all([api.events({device, kind: 'latency', limit: KEPT}), api.events({device, kind: 'switch', limit: 100})]);
    return [...latency.items, ...changed.items];
  }, [device]);
  const [fresh, setFresh] = useState<FleetEvent[]>([]);
  useEffect(() => setFresh([]), [device]);
  useEvents((event) => {
    if (event.device === device && (event.kind === 'latency' || event.kind === 'switch')) setFresh((before) => [...before.slice(-KEPT), event]);
  });
  if (!loaded.data) return loaded.error ? <Problem error={loaded.error} /> : <Loading rows={4} />;

  const known = new Set(loaded.data.map((event) => event.id));
  const all = [...loaded.data, ...fresh.filter((event) => !known.has(event.id))];
  const line = moments(all).sort((a, b) => a.time - b.time);
  const end = line[line.length - 1]?.time ?? 0;
  const shown = line.filter((moment) => moment.time > end - WINDOW_MS);
  const begin = shown[0]?.time ?? 0;
  const marks = switches(all).sort((a, b) => a.time - b.time);
  if (shown.length === 0) {
    return (
      <Card title="Adaptation">
        <Empty title="Nothing was served here yet" command="fleetfit run net.ffb --pool pool.json --budget-ms 5 --data fashion-mnist">
          Press <em>Run</em>: the device serves with the subnet that fits the moment, and its latency and switches appear here as they happen. Or on the device itself:
        </Empty>
      </Card>
    );
  }
  const seen = marks.filter((mark) => mark.time >= begin);
  return (
    <Card
      title="Adaptation, live"
      note="The watched latency of every second against the budget; marks are switches from one subnet to another."
      actions={brief ? <a href={link(['devices', device], {tab: 'serving'})}>More</a> : undefined}
    >
      <Chart label={`Latency of ${device} against its budget, with ${seen.length} switches`} height={brief ? 220 : 320} keys={[all.length, end, known.size]} option={(p) => option(p, shown, seen)} />
      {!brief && <SwitchList marks={[...marks].reverse().slice(0, 20)} />}
    </Card>
  );
}

function SwitchList({marks}: {marks: Switch[]}) {
  if (marks.length === 0) return <p class="quiet-text">No switches so far: one subnet has kept the budget all the time.</p>;
  return (
    <table class="list rows switches">
      <thead><tr><th>Time</th><th>From</th><th>To</th><th>Why</th><th class="num">Slower than estimated</th></tr></thead>
      <tbody>
        {marks.map((mark) => (
          <tr key={mark.id}>
            <td class="nowrap soft">{clock(mark.time)}</td>
            <td class="code" data-label="From">{mark.from || '–'}</td>
            <td class="code main" data-label="To">{mark.to}</td>
            <td data-label="Why">{mark.reason || '–'}</td>
            <td class="num" data-label="Slower than estimated">{mark.ratio === null ? '–' : `${digits(mark.ratio, 3)} ×`}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function option(p: Palette, line: Moment[], marks: Switch[]) {
  const budgets = line.map((moment) => moment.budget).filter((budget): budget is number => budget !== null);
  const budget = budgets[budgets.length - 1];
  const top = Math.max(...line.map((moment) => moment.latency), budget ?? 0) * 1.15;
  return {
    grid: {left: 58, right: 78, top: 26, bottom: 32},
    xAxis: axis(p, '', {type: 'time', splitLine: {show: false}, axisLabel: {formatter: (v: number) => clock(v)}, splitNumber: 4}),
    yAxis: axis(p, 'Latency, ms', {min: 0, max: top, nameGap: 42, axisLabel: {showMaxLabel: false, formatter: tick}}),
    tooltip: tooltip(({data: {moment, mark}}: {data: {moment?: Moment; mark?: Switch}}) => {
      if (mark) return tip(`${clock(mark.time)} switch`, [['From', mark.from || '–'], ['To', mark.to], ['Why', mark.reason || '–']]);
      if (moment) return tip(clock(moment.time), [['Latency', milliseconds(moment.latency)], ['Budget', given(moment.budget)], ['Subnet', moment.subnet || '–']]);
      return '';
    }),
    series: [
      {
        type: 'line', data: line.map((moment) => ({value: [moment.time, moment.latency], moment})), color: p.main, lineStyle: {width: 2}, symbol: 'circle', symbolSize: 5, showSymbol: line.length < 120,
        markLine: {
          symbol: 'none', silent: true,
          data: [
            ...(budget === undefined ? [] : [{yAxis: budget, lineStyle: {color: p.warm, type: 'dashed', width: 1.5}, label: {formatter: `budget\n${given(budget)}`, color: p.warm, position: 'end', align: 'left', lineHeight: 15}}]),
            ...marks.map((mark) => ({xAxis: mark.time, lineStyle: {color: p.muted, type: 'solid', width: 1, opacity: 0.5}, label: {show: false}})),
          ],
        },
      },
      {
        type: 'scatter', z: 6, symbolSize: 11, itemStyle: {color: p.warm},
        data: marks.map((mark) => ({value: [mark.time, top], mark, symbol: 'triangle', symbolRotate: mark.reason === 'room' ? 0 : 180})),
      },
    ],
  };
}
