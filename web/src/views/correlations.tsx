import {useState} from 'preact/hooks';
import {api, type Correlations} from '../api';
import {Matrix, type Cell} from '../matrix';
import {Card, Empty, Head, Loading, Problem, Search, useLoad} from '../parts';
import {link, setQuery, useRoute} from '../route';
import {Paging} from './latencies';

const SIZE = 30;

export function RankCorrelations() {
  const {query} = useRoute();
  const space = query.get('space') ?? '';
  const text = query.get('query') ?? '';
  const [page, setPage] = useState(0);
  const loaded = useLoad(() => api.correlations(space), [space]);
  const data = loaded.data;
  const wanted = (data?.devices ?? []).map((name, at) => ({name, at})).filter(({name}) => name.toLowerCase().includes(text.toLowerCase()));
  const shown = wanted.slice(page * SIZE, (page + 1) * SIZE);
  const low = lowest(data);
  return (
    <>
      <Head title="Rank correlations">Whether two devices put networks into the same order: where they do, what was found on one holds on the other.</Head>
      <div class="tools">
        <Search value={text} label="Device" onChange={(value) => { setPage(0); setQuery({query: value}); }} />
        <Search value={space} label="Space, e.g. nasbench201" onChange={(value) => setQuery({space: value})} />
      </div>
      <Problem error={loaded.error} />
      {!data ? !loaded.error && <Loading rows={10} /> : shown.length < 2 ? (
        <Empty title="Two devices with three models in common are needed" command="fleetfit measure --space nasbench201 --samples 30 --device local">
          Measure the same models on several devices, or designs of a space:
        </Empty>
      ) : (
        <Card>
          <Matrix
            label="Rank correlation of devices"
            corner="ρ"
            rows={shown.map(({name}) => ({name, href: link(['devices', name.split('.')[0] ?? name])}))}
            columns={shown.map(({name}) => ({name}))}
            cell={(i, j) => cellOf(data, shown[i]?.at ?? 0, shown[j]?.at ?? 0, low)}
          />
          <p class="legend"><span>{low.toFixed(2)}</span><i class="ramp" aria-hidden="true" /><span>1: the same order</span><span class="soft">Spearman's ρ; empty: fewer than three models in common</span></p>
        </Card>
      )}
      <Paging label="Devices" page={page} shown={shown.length} size={SIZE} total={wanted.length} onPage={(step) => setPage(page + step)} />
    </>
  );
}

/** The value of the palest colour: most correlations are high, and differ there. */
function lowest(data: Correlations | undefined): number {
  const values = (data?.srcc ?? []).flat().filter((value): value is number => value !== null);
  return Math.max(0, Math.min(0.9, ...values));
}

function cellOf(data: Correlations, i: number, j: number, low: number): Cell {
  const value = data.srcc[i]?.[j];
  const designs = typeof data.designs === 'number' ? data.designs : data.designs[i]?.[j];
  const about: [string, string][] = designs == null ? [] : [['models in common', String(designs)]];
  if (value == null) return {text: '', shade: null, about: [...about, ['', 'not known']]};
  const meaning = i === j ? 'the same device' : value > 0.95 ? 'either can stand for the other' : value > 0.8 ? 'alike, measure some on both' : 'each needs its own measurements';
  return {text: value.toFixed(2), shade: Math.max(0, value - low) / (1 - low), about: [['ρ', value.toFixed(3)], ...about, ['', meaning]]};
}
