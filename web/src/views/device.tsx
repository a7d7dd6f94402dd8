import {useState} from 'preact/hooks';
import {api, type Device, type Measurement, type Session} from '../api';
import {ago, bytes, count, dateTime, digits, given, milliseconds, percent, plusMinus, shortHash} from '../format';
import {useNews} from '../live';
import {Card, Choice, Dialog, Empty, Head, Loading, Problem, State, useAction, useLoad} from '../parts';
import {go, link, setQuery, useRoute} from '../route';
import {GiveJob, type GivenKind} from './give_job';
import {Facts, JobTable} from './jobs';
import {Operators} from './operators';
import {ParetoFront} from './pareto';
import {LiveServing} from './serving';

type Tab = '' | 'measurements' | 'pareto' | 'serving' | 'jobs' | 'hardware';

const TABS: {value: Tab; text: string}[] = [
  {value: '', text: 'Now'},
  {value: 'measurements', text: 'Measurements'},
  {value: 'pareto', text: 'Pareto front'},
  {value: 'serving', text: 'Adaptation'},
  {value: 'jobs', text: 'Jobs'},
  {value: 'hardware', text: 'Hardware'},
];

export function DeviceView({name, session}: {name: string; session: Session}) {
  const tab = (useRoute().query.get('tab') ?? '') as Tab;
  const loaded = useLoad(() => api.device(name), [name]);
  const [giving, setGiving] = useState<GivenKind>();
  const [removing, setRemoving] = useState(false);
  useNews((event) => event.device === name && event.kind !== 'latency', loaded.reload, 500);

  const device = loaded.data;
  const admin = session.role === 'admin';
  return (
    <>
      <Head
        title={name}
        actions={admin && device && (
          <>
            <button type="button" class="primary" onClick={() => setGiving('measure')}>Measure</button>
            <button type="button" onClick={() => setGiving('probe')}>Probe</button>
            <button type="button" onClick={() => setGiving('adapt')}>Adapt</button>
            <button type="button" onClick={() => setGiving('run')}>Run</button>
          </>
        )}
      >
        {device && <><State state={device.state} /> {device.hardware && <>· {device.hardware} </>}· last seen {ago(device.last_seen)}</>}
      </Head>
      <Problem error={loaded.error} />
      <Choice label="Part" value={tab} onChange={(value) => setQuery({tab: value, measurement: undefined})} options={TABS} />
      {!device ? !loaded.error && <Loading rows={6} /> : <Part tab={tab} device={device} admin={admin} onRemove={() => setRemoving(true)} />}
      {giving && <GiveJob device={name} kind={giving} onClose={() => setGiving(undefined)} onGiven={() => { setGiving(undefined); loaded.reload(); setQuery({tab: giving === 'run' || giving === 'adapt' ? 'serving' : 'jobs'}); }} />}
      {removing && <Remove name={name} onClose={() => setRemoving(false)} />}
    </>
  );
}

function Part({tab, device, admin, onRemove}: {tab: Tab; device: Device; admin: boolean; onRemove: () => void}) {
  switch (tab) {
    case 'measurements':
      return <Measurements device={device} />;
    case 'pareto':
      return <ParetoFront device={device.name} />;
    case 'serving':
      return <LiveServing device={device.name} />;
    case 'jobs':
      return <DeviceJobs name={device.name} admin={admin} />;
    case 'hardware':
      return <Hardware device={device} admin={admin} onRemove={onRemove} />;
    default:
      return <Now device={device} />;
  }
}

/** Agents know a bundle by its hash alone. */
function bundleName(bundle: string | undefined): string {
  return bundle && /^[0-9a-f]{64}$/.test(bundle) ? `bundle ${shortHash(bundle)}` : (bundle ?? '');
}

/** On one look: what it serves, the front it was chosen from, and what was measured last. */
function Now({device}: {device: Device}) {
  const serving = device.serving;
  if (device.state === 'never') {
    return (
      <Empty title="This device has never called" command={`fleetfit agent --server ${location.origin} --token-file TOKEN_FILE --name ${device.name}`}>
        Start the agent on it, with the token that was shown when it was added:
      </Empty>
    );
  }
  const over = serving?.latency_ms !== undefined && serving.budget_ms !== undefined && serving.latency_ms > serving.budget_ms;
  return (
    <>
      {serving?.subnet ? (
        <div class="numbers">
          <div class="number"><span class="name">Serves</span><span class="value code">{serving.subnet}</span><span class="more">{bundleName(serving.bundle)}</span></div>
          <div class="number"><span class="name">Latency</span><span class={'value' + (over ? ' over' : '')}>{milliseconds(serving.latency_ms)}</span><span class="more">budget {given(serving.budget_ms)}{over && ', exceeded'}</span></div>
          <div class="number"><span class="name">Accuracy</span><span class="value">{percent(serving.accuracy)}</span><span class="more">of the subnet, on test images</span></div>
        </div>
      ) : (
        <Card title="Serves nothing now"><p class="quiet-text">Give it a bundle with <em>Adapt</em>, which finds the best subnet within a budget, then <em>Run</em>.</p></Card>
      )}
      {serving?.subnet && <LiveServing device={device.name} brief />}
      <Measurements device={device} most={5} />
    </>
  );
}

function Measurements({device, most}: {device: Device; most?: number}) {
  const chosen = useRoute().query.get('measurement');
  const all = device.measurements ?? [];
  const rows = most ? all.slice(0, most) : all;
  const several = new Set(all.map((one) => one.device)).size > 1;
  return (
    <Card
      title={most ? 'Newest measurements' : 'Measurements'}
      actions={most && all.length > most ? <a href={link(['devices', device.name], {tab: 'measurements'})}>All {count(all.length)}</a> : undefined}
    >
      {rows.length === 0 ? (
        <Empty title="Nothing was measured here yet">Press <em>Measure</em>, or on the device itself: <code>fleetfit measure MODEL.onnx</code></Empty>
      ) : (
        <table class="list rows">
          <thead><tr><th>Model</th>{several && <th>Setting</th>}<th class="num">Median</th><th class="num">95 % interval</th><th class="num">p99</th><th class="num">Memory</th><th class="num">Energy</th><th>State</th><th>When</th></tr></thead>
          <tbody>{rows.map((one) => <Row key={one.id} one={one} device={device.name} several={several} chosen={String(one.id) === chosen} />)}</tbody>
        </table>
      )}
      {chosen && !most && <Operators id={chosen} />}
    </Card>
  );
}

function Row({one, device, several, chosen}: {one: Measurement; device: string; several: boolean; chosen: boolean}) {
  const latency = one.latency_ms;
  return (
    <tr class={chosen ? 'chosen' : ''}>
      <td class="main"><a href={link(['devices', device], {tab: 'measurements', measurement: String(one.id)})}>{one.model}</a></td>
      {several && <td class="soft" data-label="Setting">{one.device === device ? 'default' : one.device.slice(device.length + 1)}</td>}
      <td class="num strong" data-label="Median">{milliseconds(latency?.median)}</td>
      <td class="num soft nowrap" data-label="95 % interval">{latency ? `${digits(latency.ci95[0])} – ${digits(latency.ci95[1])} ms (${plusMinus(latency.median, latency.ci95)})` : '–'}</td>
      <td class="num" data-label="p99">{milliseconds(latency?.p99)}</td>
      <td class="num" data-label="Memory">{bytes(one.peak_memory_bytes)}</td>
      <td class="num" data-label="Energy">{one.energy_mj ? `${digits(one.energy_mj.value)} mJ` : '–'}</td>
      <td title={one.reason ?? ''}><State state={one.status} /></td>
      <td class="soft nowrap" data-label="When">{ago(one.started)}</td>
    </tr>
  );
}

function DeviceJobs({name, admin}: {name: string; admin: boolean}) {
  const loaded = useLoad(() => api.jobs({device: name, limit: 50}), [name]);
  useNews((event) => event.device === name && event.kind === 'job', loaded.reload, 300);
  const jobs = loaded.data?.items;
  return (
    <Card title="Jobs" actions={<a href={link(['jobs'], {device: name})}>All its jobs</a>}>
      <Problem error={loaded.error} />
      {!jobs ? !loaded.error && <Loading /> : jobs.length === 0 ? <Empty title="No jobs yet">The buttons above give it some.</Empty> : <JobTable jobs={jobs} admin={admin} onChange={loaded.reload} withDevice={false} />}
    </Card>
  );
}

function Hardware({device, admin, onRemove}: {device: Device; admin: boolean; onRemove: () => void}) {
  const probe = device.probe ?? {};
  return (
    <>
      <Card title="Identity">
        <dl class="facts">
          <dt>Name</dt><dd>{device.name}</dd>
          <dt>Hardware</dt><dd>{device.hardware || '–'}</dd>
          <dt>Agent</dt><dd>{device.agent_version ? `fleetfit-agent ${device.agent_version}` : 'has not registered'}</dd>
          <dt>Added</dt><dd>{dateTime(device.created)}</dd>
          <dt>Last seen</dt><dd>{dateTime(device.last_seen)}</dd>
        </dl>
      </Card>
      <Card title="Probe" note="What the device has told of itself, and what was measured of it.">
        {Object.keys(probe).length > 0 ? <Facts value={probe} /> : <p class="quiet-text">Not probed yet: press <em>Probe</em>.</p>}
      </Card>
      {(device.settings ?? []).length > 0 && (
        <Card title="Settings" note="The same board with other threads, cores or precision is another device to measure on.">
          <table class="list rows">
            <thead><tr><th>Device</th><th>Runtime</th><th class="num">Threads</th><th>Precision</th></tr></thead>
            <tbody>
              {(device.settings ?? []).map((one) => (
                <tr key={one.name}><td class="main">{one.name}</td><td data-label="Runtime">{one.runtime ?? '–'}</td><td class="num" data-label="Threads">{one.threads ?? '–'}</td><td data-label="Precision">{one.precision ?? '–'}</td></tr>
              ))}
            </tbody>
          </table>
        </Card>
      )}
      {admin && <p><button type="button" class="danger" onClick={onRemove}>Remove this device</button></p>}
    </>
  );
}

function Remove({name, onClose}: {name: string; onClose: () => void}) {
  const {busy, error, act} = useAction();
  return (
    <Dialog title={`Remove ${name}?`} onClose={onClose}>
      <p>Its open jobs are removed, and its agent is no longer let in. What was measured stays.</p>
      <Problem error={error} />
      <footer>
        <button type="button" onClick={onClose}>Keep it</button>
        <button type="button" class="danger" disabled={busy} onClick={() => act(async () => { await api.removeDevice(name); go(link(['devices'])); })}>Remove</button>
      </footer>
    </Dialog>
  );
}
