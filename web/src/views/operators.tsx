import {useState} from 'preact/hooks';
import {api, type Operator} from '../api';
import {milliseconds, percent} from '../format';
import {Choice, Loading, Problem, useLoad} from '../parts';

interface Share {
  name: string;
  detail: string;
  ms: number;
}

function byType(operators: Operator[]): Share[] {
  const sums = new Map<string, {ms: number; n: number}>();
  for (const op of operators) {
    const sum = sums.get(op.type) ?? {ms: 0, n: 0};
    sums.set(op.type, {ms: sum.ms + op.latency_ms, n: sum.n + 1});
  }
  return [...sums].map(([name, {ms, n}]) => ({name, detail: `${n} ×`, ms}));
}

/** Where the time of one measurement goes. */
export function Operators({id}: {id: string}) {
  const loaded = useLoad(() => api.measurement(id), [id]);
  const [by, setBy] = useState<'type' | 'operator'>('type');
  const one = loaded.data;
  if (!one) return loaded.error ? <Problem error={loaded.error} /> : <Loading />;
  const operators = one.ops ?? [];
  if (operators.length === 0) return <p class="quiet-text">This measurement has no times of operators: measure again and ask for them.</p>;

  const shares: Share[] = by === 'type' ? byType(operators) : operators.map((op) => ({name: op.name, detail: [op.type, op.kernel].filter(Boolean).join(' · '), ms: op.latency_ms}));
  if (one.overhead_ms) shares.push({name: 'overhead', detail: 'between operators', ms: one.overhead_ms});
  shares.sort((a, b) => b.ms - a.ms);
  const total = shares.reduce((sum, share) => sum + share.ms, 0);
  const largest = shares[0]?.ms ?? 1;
  const shown = shares.slice(0, 25);
  const rest = shares.slice(25).reduce((sum, share) => sum + share.ms, 0);
  return (
    <div class="operators">
      <header>
        <h3>Where the time goes: {one.model}</h3>
        <Choice label="By" value={by} onChange={setBy} options={[{value: 'type', text: 'By type'}, {value: 'operator', text: 'By operator'}]} />
      </header>
      <table class="bars">
        <thead class="unseen"><tr><th>Operator</th><th>Share</th><th>Time</th><th>Percent</th></tr></thead>
        <tbody>
          {shown.map((share, i) => (
            <tr key={i}>
              <th scope="row"><span>{share.name}</span> <small>{share.detail}</small></th>
              <td class="bar"><i style={{width: `${(100 * share.ms) / largest}%`}} /></td>
              <td class="num">{milliseconds(share.ms)}</td>
              <td class="num soft">{percent(share.ms / total)}</td>
            </tr>
          ))}
          {rest > 0 && <tr><th scope="row">{shares.length - 25} others</th><td class="bar"><i style={{width: `${Math.min(100, (100 * rest) / largest)}%`}} /></td><td class="num">{milliseconds(rest)}</td><td class="num soft">{percent(rest / total)}</td></tr>}
        </tbody>
      </table>
    </div>
  );
}
