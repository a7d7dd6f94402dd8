import type {ComponentChildren} from 'preact';
import {api, type FleetEvent, type Job, type Session, type Summary} from '../api';
import {ago, count, given, milliseconds, plural} from '../format';
import {useNews} from '../live';
import {Card, Command, Head, Loading, Problem, useLoad} from '../parts';
import {link} from '../route';
import {eventText} from './events';

export function Overview({session}: {session: Session}) {
  const summary = useLoad(api.summary, []);
  const failed = useLoad(() => api.jobs({state: 'failed', limit: 5}), []);
  const busy = useLoad(() => api.jobs({state: 'running', limit: 5}), []);
  const events = useLoad(() => api.events({limit: 12}), []);
  const serving = useLoad(() => api.devices({state: 'online', limit: 100}), []);
  useNews((event) => event.kind !== 'latency', () => {
    for (const part of [summary, failed, busy, events, serving]) part.reload();
  }, 2000);

  const s = summary.data;
  const served = (serving.data?.items ?? []).filter((device) => device.serving?.subnet || device.serving?.bundle).slice(0, 8);
  return (
    <>
      <Head title="Overview">Which model runs where, how fast, how good, and what to do next.</Head>
      <Problem error={summary.error} />
      {s ? <Numbers summary={s} /> : !summary.error && <Loading rows={2} />}
      {s && <NextSteps summary={s} failed={failed.data?.items ?? []} admin={session.role === 'admin'} />}
      <div class="columns">
        <Card title="Serving now" actions={<a href={link(['devices'], {state: 'online'})}>All devices online</a>}>
          {served.length === 0 ? (
            <p class="quiet-text">No device serves a model right now. Open a device and choose <em>Run</em>.</p>
          ) : (
            <table class="list">
              <thead><tr><th>Device</th><th>Subnet</th><th class="num">Latency</th><th class="num">Budget</th></tr></thead>
              <tbody>
                {served.map((device) => (
                  <tr key={device.name}>
                    <td><a href={link(['devices', device.name])}>{device.name}</a></td>
                    <td class="code">{device.serving?.subnet ?? '–'}</td>
                    <td class="num">{milliseconds(device.serving?.latency_ms)}</td>
                    <td class="num">{given(device.serving?.budget_ms)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
        </Card>
        <Card title="Running jobs" actions={<a href={link(['jobs'])}>All jobs</a>}>
          {(busy.data?.items ?? []).length === 0 ? <p class="quiet-text">Nothing is running.</p> : <JobLines jobs={busy.data?.items ?? []} />}
        </Card>
        <Card title="What happened" class="wide" actions={<a href={link(['events'])}>All events</a>}>
          <Happened events={events.data?.items ?? []} />
        </Card>
      </div>
    </>
  );
}

function Numbers({summary: s}: {summary: Summary}) {
  return (
    <div class="numbers">
      <Number name="Devices" value={s.devices.all} href={link(['devices'])}>
        {count(s.devices.online)} online · {count(s.devices.offline)} offline
      </Number>
      <Number name="Jobs open" value={s.jobs.waiting + s.jobs.running} href={link(['jobs'])}>
        {count(s.jobs.running)} running · {count(s.jobs.failed)} failed
      </Number>
      <Number name="Models" value={s.models} href={link(['models'])}>measured or uploaded</Number>
      <Number name="Measurements" value={s.measurements} href={link(['latencies'])}>of models on devices</Number>
      <Number name="Studies" value={s.studies} href={link(['studies'])}>of training and inference</Number>
    </div>
  );
}

function Number({name, value, href, children}: {name: string; value: number; href: string; children: ComponentChildren}) {
  return (
    <a class="number" href={href}>
      <span class="name">{name}</span>
      <span class="value">{count(value)}</span>
      <span class="more">{children}</span>
    </a>
  );
}

/** The next thing to do, worked out from what is there. */
function NextSteps({summary: s, failed, admin}: {summary: Summary; failed: Job[]; admin: boolean}) {
  const steps: ComponentChildren[] = [];
  if (s.devices.all === 0)
    steps.push(<>Add the first device. {admin ? <a href={link(['devices'], {add: '1'})}>Add a device</a> : 'An administrator can do it on the page “Devices”.'}</>);
  else if (s.devices.never > 0)
    steps.push(<>{plural(s.devices.never, 'device has', 'devices have')} never called. Start the agent there: <a href={link(['devices'], {state: 'never'})}>which ones</a></>);
  if (s.models === 0) steps.push(<>Upload a model, or measure one of the zoo. <a href={link(['models'])}>Models</a></>);
  else if (s.measurements === 0 && s.devices.online > 0)
    steps.push(<>Measure a model on a device that is online: open one of the <a href={link(['devices'], {state: 'online'})}>devices</a> and press <em>Measure</em>.</>);
  if (s.devices.offline > 0)
    steps.push(<>{plural(s.devices.offline, 'device is', 'devices are')} offline; {s.devices.offline === 1 ? 'its' : 'their'} jobs wait. <a href={link(['devices'], {state: 'offline'})}>See which</a></>);
  for (const job of failed.slice(0, 2))
    steps.push(<>Job <a href={link(['jobs', String(job.id)])}>{job.id}</a> ({job.kind} on {job.device}) failed: {job.reason ?? 'no reason given'}</>);
  if (s.measurements > 0 && s.studies === 0)
    steps.push(<>Fit a network to the fleet: <Command text="fleetfit fit FLEET.yaml -o OUT/" /></>);
  if (steps.length === 0) return null;
  return (
    <Card title="What to do next" class="next">
      <ol>{steps.map((step, i) => <li key={i}>{step}</li>)}</ol>
    </Card>
  );
}

function JobLines({jobs}: {jobs: Job[]}) {
  return (
    <table class="list">
      <thead><tr><th>Job</th><th>Device</th><th>Since</th></tr></thead>
      <tbody>
        {jobs.map((job) => (
          <tr key={job.id}>
            <td><a href={link(['jobs', String(job.id)])}>{job.kind} {job.id}</a></td>
            <td><a href={link(['devices', job.device])}>{job.device}</a></td>
            <td>{ago(job.started ?? job.created)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Happened({events}: {events: FleetEvent[]}) {
  const told = [...events].reverse().filter((event) => event.kind !== 'latency').slice(0, 8);
  if (told.length === 0) return <p class="quiet-text">Nothing yet. What devices and jobs do is listed here as it happens.</p>;
  return (
    <ul class="happened">
      {told.map((event) => (
        <li key={event.id}>
          <time>{ago(event.time)}</time>
          {event.device && <a href={link(['devices', event.device])}>{event.device}</a>}
          <span>{eventText(event)}</span>
        </li>
      ))}
    </ul>
  );
}
