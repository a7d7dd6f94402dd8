import {useEffect, useState} from 'preact/hooks';
import {api, type FleetEvent} from '../api';
import {clock, count, dateTime, digits, milliseconds} from '../format';
import {useConnected, useEvents} from '../live';
import {Choice, Empty, Head, Loading, Problem, Search, useLoad} from '../parts';
import {link, setQuery, useRoute} from '../route';

const KEPT = 300;
const text = (value: unknown) => (typeof value === 'string' ? value : value == null ? '' : String(value));

/** What happened, in words. */
export function eventText(event: FleetEvent): string {
  const body = event.body ?? {};
  switch (event.kind) {
    case 'job':
      return [`${text(body['kind'])} job ${event.job ?? ''}`.trim(), `is ${text(body['state'])}`, text(body['reason']) && `– ${text(body['reason'])}`].filter(Boolean).join(' ');
    case 'device':
      return body['state'] ? `is ${text(body['state'])}` : text(body['message']) || 'has changed';
    case 'switch':
      return `switched from ${text(body['from']) || '–'} to ${text(body['to'])}${body['reason'] ? ` (${text(body['reason'])}` : ''}${typeof body['ratio'] === 'number' ? `, ${digits(body['ratio'], 2)} × its estimate` : ''}${body['reason'] ? ')' : ''}`;
    case 'latency':
      return `${milliseconds(body['latency_ms'] as number)} against a budget of ${milliseconds(body['budget_ms'] as number)}`;
    case 'serving':
      return [text(body['event']), text(body['to']), text(body['reason'])].filter(Boolean).join(' · ');
    case 'study':
      return `study ${text(body['study'])}: ${count(body['trials'] as number)} trials`;
    default:
      return text(body['message']) || JSON.stringify(body);
  }
}

export function Events() {
  const {query} = useRoute();
  const kind = query.get('kind') ?? '';
  const device = query.get('device') ?? '';
  const loaded = useLoad(() => api.events({limit: 200, kind, device}), [kind, device]);
  const [fresh, setFresh] = useState<FleetEvent[]>([]);
  const connected = useConnected();
  useEffect(() => setFresh([]), [kind, device]);
  useEvents((event) => {
    if ((kind && event.kind !== kind) || (device && event.device !== device)) return;
    setFresh((before) => [...before.slice(-KEPT), event]);
  });

  const known = loaded.data?.items ?? [];
  const last = known[known.length - 1]?.id ?? 0;
  const all = [...known, ...fresh.filter((event) => event.id > last)].slice(-KEPT).reverse();
  return (
    <>
      <Head title="Events">What devices, jobs and studies do, newest first{connected ? ', as it happens' : ''}.</Head>
      <div class="tools">
        <Search value={device} label="Device, its whole name" onChange={(value) => setQuery({device: value})} />
        <Choice
          label="Kind"
          value={kind}
          onChange={(value) => setQuery({kind: value})}
          options={[
            {value: '', text: 'All'},
            {value: 'job', text: 'Jobs'},
            {value: 'device', text: 'Devices'},
            {value: 'switch', text: 'Switches'},
            {value: 'latency', text: 'Latency'},
            {value: 'log', text: 'Log'},
          ]}
        />
      </div>
      <Problem error={loaded.error} />
      {!loaded.data ? !loaded.error && <Loading rows={8} /> : all.length === 0 ? (
        <Empty title="Nothing has happened yet">As soon as an agent calls or a job is given, it is listed here.</Empty>
      ) : (
        <table class="list rows">
          <thead><tr><th>Time</th><th>Kind</th><th>Device</th><th>What</th></tr></thead>
          <tbody>
            {all.map((event) => (
              <tr key={event.id}>
                <td class="soft nowrap" title={dateTime(event.time)}>{clock(event.time)}</td>
                <td><span class={'kind is-' + event.kind}>{event.kind}</span></td>
                <td class="main">{event.device ? <a href={link(['devices', event.device])}>{event.device}</a> : 'server'}</td>
                <td class="whole">{event.job ? <a href={link(['jobs', String(event.job)])}>{eventText(event)}</a> : eventText(event)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}
