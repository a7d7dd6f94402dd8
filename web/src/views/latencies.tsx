import {useMemo, useState} from 'preact/hooks';
import {api, type Latencies} from '../api';
import {ago, digits, milliseconds, plusMinus} from '../format';
import {useNews} from '../live';
import {Matrix, type Cell} from '../matrix';
import {Card, Choice, Empty, Head, Loading, Pager, Problem, Search, useLoad} from '../parts';
import {link, setQuery, useRoute} from '../route';

const ROWS = 25;
const COLUMNS = 25;
type Shade = 'all' | 'model';
type Known = Latencies['cells'][number];

/** Names of devices that the search finds; a search for nothing leaves the choice to the server. */
async function devicesLike(text: string): Promise<string> {
  if (!text) return '';
  const found = await api.devices({query: text, limit: 100});
  return found.items.map((device) => device.name).join(',') || text;
}

export function LatencyMap() {
  const {query} = useRoute();
  const devices = query.get('devices') ?? '';
  const models = query.get('models') ?? '';
  const [shade, setShade] = useState<Shade>('all');
  const [page, setPage] = useState<[number, number]>([0, 0]);
  const loaded = useLoad(async () => api.latencies('', await devicesLike(devices)), [devices]);
  useNews((event) => event.kind === 'job', loaded.reload, 2000);

  const data = loaded.data;
  const cells = useMemo(() => new Map((data?.cells ?? []).map((cell) => [cell.model + '\n' + cell.device, cell])), [data]);
  const wanted = (data?.models ?? []).filter((name) => name.toLowerCase().includes(models.toLowerCase()));
  const rows = wanted.slice(page[0] * ROWS, (page[0] + 1) * ROWS);
  const columns = (data?.devices ?? []).slice(page[1] * COLUMNS, (page[1] + 1) * COLUMNS);
  const find = (model: string | undefined, device: string | undefined) => cells.get(model + '\n' + device);
  const scale = scaleOf(wanted, data, find, shade);
  return (
    <>
      <Head title="Latency map">How fast each model is on each device: the newest measurement of each; the stronger the colour, the slower.</Head>
      <div class="tools">
        <Search value={models} label="Model" onChange={(value) => { setPage([0, page[1]]); setQuery({models: value}); }} />
        <Search value={devices} label="Device" onChange={(value) => { setPage([page[0], 0]); setQuery({devices: value}); }} />
        <Choice label="Shade" value={shade} onChange={setShade} options={[{value: 'all', text: 'Shade over all'}, {value: 'model', text: 'Within each model'}]} />
      </div>
      <Problem error={loaded.error} />
      {!data ? !loaded.error && <Loading rows={10} /> : rows.length === 0 || columns.length === 0 ? (
        <Empty title={models || devices ? 'Nothing was measured of these' : 'Nothing was measured yet'} command={models || devices ? '' : 'fleetfit measure mobilenet_v2.onnx --device local'}>
          Open one of the <a href={link(['devices'])}>devices</a> and press <em>Measure</em>; measurements of the command line with the same store are shown too.
        </Empty>
      ) : (
        <Card>
          <Matrix
            label="Latency of models on devices, median in ms"
            corner="ms"
            rows={rows.map((name) => ({name, ...modelLink(data, name)}))}
            columns={columns.map((name) => ({name, href: link(['devices', name.split('.')[0] ?? name], {tab: 'measurements'})}))}
            cell={(i, j) => cellOf(find(rows[i], columns[j]), scale(rows[i] ?? ''))}
          />
          <Legend scale={shade === 'all' ? scale('') : null} />
        </Card>
      )}
      <Paging label="Models" page={page[0]} shown={rows.length} size={ROWS} total={wanted.length} onPage={(step) => setPage([page[0] + step, page[1]])} />
      <Paging label="Devices" page={page[1]} shown={columns.length} size={COLUMNS} total={data?.devices.length ?? 0} onPage={(step) => setPage([page[0], page[1] + step])} />
    </>
  );
}

function modelLink(data: Latencies, name: string): {href?: string} {
  const hash = data.hashes?.[data.models.indexOf(name)];
  return hash ? {href: link(['models', hash], {name})} : {};
}

/** The lowest and highest logarithm that colours stand for: of all, or of one model. */
function scaleOf(models: string[], data: Latencies | undefined, find: (m: string, d: string) => Known | undefined, shade: Shade) {
  const range = (some: string[]): [number, number] => {
    const logs: number[] = [];
    for (const model of some)
      for (const device of data?.devices ?? []) {
        const ms = find(model, device)?.median_ms;
        if (ms && ms > 0) logs.push(Math.log(ms));
      }
    return logs.length > 0 ? [Math.min(...logs), Math.max(...logs)] : [0, 1];
  };
  if (shade === 'model') return (model: string) => range([model]);
  const all = range(models);
  return () => all;
}

function cellOf(cell: Known | undefined, [low, high]: [number, number]): Cell {
  if (!cell) return {text: '', shade: null, about: [['', 'not measured']]};
  const about: [string, string][] = [['state', cell.status], ['measured', ago(cell.measured)]];
  if (cell.median_ms == null) return {text: '×', shade: null, about};
  const shade = high > low ? (Math.log(cell.median_ms) - low) / (high - low) : 0.5;
  const interval = cell.ci95 ? `${digits(cell.ci95[0])} – ${digits(cell.ci95[1])} ms (${plusMinus(cell.median_ms, cell.ci95)})` : 'unknown';
  return {
    text: digits(cell.median_ms),
    shade,
    about: [['median', milliseconds(cell.median_ms)], ['95 % interval', interval], ...about],
    ...(cell.status === 'ok' ? {} : {mark: '!'}),
  };
}

function Legend({scale}: {scale: [number, number] | null}) {
  return (
    <p class="legend">
      <span>{scale ? milliseconds(Math.exp(scale[0])) : 'its quickest device'}</span>
      <i class="ramp" aria-hidden="true" />
      <span>{scale ? milliseconds(Math.exp(scale[1])) : 'its slowest device'}</span>
      <span class="soft">logarithmic; <sup>!</sup> not settled, × failed</span>
    </p>
  );
}

export function Paging(props: {label: string; page: number; shown: number; size: number; total: number; onPage: (step: 1 | -1) => void}) {
  if (props.total <= props.size) return null;
  return (
    <div class="paging">
      <span class="soft">{props.label}</span>
      <Pager page={props.page} shown={props.shown} size={props.size} more={(props.page + 1) * props.size < props.total} total={props.total} onPage={props.onPage} />
    </div>
  );
}
