import {useState} from 'preact/hooks';
import {api, type Job, type JobState, type Session} from '../api';
import {ago, bytes, count, dateTime, duration, plain} from '../format';
import {useNews} from '../live';
import {Card, Choice, Dialog, Empty, Head, Loading, Pager, Problem, State, useAction, useLoad, usePages} from '../parts';
import {link, setQuery, useRoute} from '../route';

const PAGE = 50;
const OPEN: JobState[] = ['waiting', 'running'];

export function Jobs({session}: {session: Session}) {
  const {query} = useRoute();
  const state = query.get('state') ?? '';
  const device = query.get('device') ?? '';
  const summary = useLoad(api.summary, []);
  const list = usePages((after) => api.jobs({state, device, limit: PAGE, ...(after ? {after} : {})}), [state, device]);
  useNews((event) => event.kind === 'job', () => {
    list.reload();
    summary.reload();
  });
  const counts = summary.data?.jobs;
  const option = (value: string, name: string) => ({value, text: counts && value ? `${name} ${count(counts[value as JobState])}` : name});
  const items = list.data?.items;
  return (
    <>
      <Head title="Jobs">Work for devices: what waits, runs, and how it ended.</Head>
      <div class="tools">
        <Choice
          label="State"
          value={state}
          onChange={(value) => setQuery({state: value})}
          options={[option('', 'All'), option('waiting', 'Waiting'), option('running', 'Running'), option('finished', 'Finished'), option('failed', 'Failed'), option('cancelled', 'Cancelled')]}
        />
        {device && <button type="button" onClick={() => setQuery({device: undefined})}>Only {device} ✕</button>}
      </div>
      <Problem error={list.error} />
      {!items ? !list.error && <Loading rows={8} /> : items.length === 0 ? (
        <Empty title={state || device ? 'No job is like that' : 'No jobs yet'}>
          Open one of the <a href={link(['devices'])}>devices</a> and press <em>Measure</em>: the job waits until the device takes it.
        </Empty>
      ) : (
        <JobTable jobs={items} admin={session.role === 'admin'} onChange={list.reload} />
      )}
      <Pager page={list.page} shown={items?.length ?? 0} size={PAGE} more={list.more} total={device ? undefined : state ? counts?.[state as JobState] : undefined} onPage={list.step} />
    </>
  );
}

/** What a job is about, in a few words. */
export function jobSubject(job: Job): string {
  const request = job.request ?? {};
  const named = request['name'] ?? request['data'];
  const budget = typeof request['budget_ms'] === 'number' ? `${plain(request['budget_ms'])} ms` : '';
  const settings = request['settings'] as Record<string, unknown> | undefined;
  const threads = settings && Number(settings['threads']) > 1 ? `${plain(settings['threads'])} threads` : '';
  const precision = settings && settings['precision'] !== undefined && settings['precision'] !== 'fp32' ? plain(settings['precision']) : '';
  return [named, budget, threads, precision].filter(Boolean).map(String).join(' · ');
}

function took(job: Job): string {
  if (!job.started) return '–';
  const end = job.finished ? Date.parse(job.finished) : Date.now();
  return duration((end - Date.parse(job.started)) / 1000);
}

export function JobTable({jobs, admin, onChange, withDevice = true}: {jobs: Job[]; admin: boolean; onChange: () => void; withDevice?: boolean}) {
  const {busy, error, act} = useAction();
  return (
    <>
      <Problem error={error} />
      <table class="list rows">
        <thead>
          <tr><th>Job</th>{withDevice && <th>Device</th>}<th>State</th><th>About</th><th class="num">Took</th><th>Given</th><th><span class="unseen">Cancel</span></th></tr>
        </thead>
        <tbody>
          {jobs.map((job) => (
            <tr key={job.id}>
              <td class="main nowrap"><a href={link(['jobs', String(job.id)])}>{job.kind} {job.id}</a></td>
              {withDevice && <td class="name" data-label="Device"><a href={link(['devices', job.device])}>{job.device}</a></td>}
              <td><State state={job.state} /></td>
              <td class="soft" data-label="About">{job.reason ? <span class={job.state === 'failed' ? 'reason' : ''}>{job.reason}</span> : jobSubject(job)}</td>
              <td class="num" data-label="Took">{took(job)}</td>
              <td class="soft nowrap" data-label="Given" title={dateTime(job.created)}>{ago(job.created)}</td>
              <td class="num">
                {admin && OPEN.includes(job.state) && (
                  <button type="button" class="small" disabled={busy} aria-label={`Cancel job ${job.id}`} onClick={() => act(async () => { await api.cancelJob(job.id); onChange(); })}>Cancel</button>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

export function JobView({id, session}: {id: string; session: Session}) {
  const loaded = useLoad(() => api.job(id), [id]);
  const {busy, error, act} = useAction();
  const [sure, setSure] = useState(false);
  useNews((event) => String(event.job) === id && event.kind !== 'latency', loaded.reload, 300);
  const job = loaded.data;
  return (
    <>
      <Head
        title={job ? `${job.kind} ${job.id}` : `Job ${id}`}
        actions={job && session.role === 'admin' && OPEN.includes(job.state) && <button type="button" onClick={() => setSure(true)}>Cancel this job</button>}
      >
        {job && <><State state={job.state} /> on <a href={link(['devices', job.device])}>{job.device}</a></>}
      </Head>
      <Problem error={loaded.error} />
      {!job ? !loaded.error && <Loading /> : (
        <>
          {job.reason && <p class="problem">{job.reason}</p>}
          <Card title="Times">
            <dl class="facts">
              <dt>Given</dt><dd>{dateTime(job.created)}</dd>
              <dt>Started</dt><dd>{dateTime(job.started)}{job.attempt > 1 && ` (attempt ${job.attempt})`}</dd>
              <dt>Ended</dt><dd>{dateTime(job.finished)}</dd>
              <dt>Took</dt><dd>{took(job)}</dd>
            </dl>
          </Card>
          <Card title="Request"><Facts value={job.request} /></Card>
          {job.result && Object.keys(job.result).length > 0 && <Card title="Result"><Facts value={job.result} /></Card>}
        </>
      )}
      {sure && (
        <Dialog title={`Cancel ${job?.kind} ${id}?`} onClose={() => setSure(false)}>
          <p>A waiting job ends at once, a running one as soon as its device hears of it.</p>
          <Problem error={error} />
          <footer>
            <button type="button" class="primary" disabled={busy} onClick={() => act(async () => { await api.cancelJob(Number(id)); setSure(false); loaded.reload(); })}>Cancel the job</button>
          </footer>
        </Dialog>
      )}
    </>
  );
}

/** Any JSON object as names and values, one level of nesting deep; the rest as it is. */
export function Facts({value, most = 40}: {value: Record<string, unknown>; most?: number}) {
  const lines: [string, string][] = [];
  for (const [key, one] of Object.entries(value)) {
    if (one && typeof one === 'object' && !Array.isArray(one))
      for (const [inner, deep] of Object.entries(one)) lines.push([`${key} · ${inner}`, short(inner, deep)]);
    else lines.push([key, short(key, one)]);
  }
  return (
    <dl class="facts">
      {lines.slice(0, most).flatMap(([name, text], i) => [<dt key={i}>{name.replaceAll('_', ' ')}</dt>, <dd key={-i - 1}>{text}</dd>])}
    </dl>
  );
}

function short(name: string, value: unknown): string {
  if (name.endsWith('bytes') && typeof value === 'number') return bytes(value);
  if (Array.isArray(value) && value.length > 6) return `${count(value.length)} entries`;
  const text = plain(value);
  return text.length > 160 ? text.slice(0, 160) + ' …' : text;
}
