import {useState} from 'preact/hooks';
import {api, type DeviceRow, type NewDevice, type Session} from '../api';
import {ago, count, milliseconds} from '../format';
import {useNews} from '../live';
import {Choice, Command, Dialog, Empty, Field, Head, Loading, Pager, Problem, Search, State, useAction, useLoad, usePages} from '../parts';
import {link, setQuery, useRoute} from '../route';

const PAGE = 50;

export function Devices({session}: {session: Session}) {
  const {query} = useRoute();
  const text = query.get('query') ?? '';
  const state = query.get('state') ?? '';
  const summary = useLoad(api.summary, []);
  const list = usePages((after) => api.devices({query: text, state, limit: PAGE, ...(after ? {after} : {})}), [text, state]);
  useNews((event) => event.kind === 'device' || event.kind === 'job', () => {
    list.reload();
    summary.reload();
  }, 1500);

  const known = summary.data?.devices;
  const total = text ? undefined : state ? known?.[state as 'online'] : known?.all;
  const option = (value: string, name: string, n: number | undefined) => ({value, text: n === undefined ? name : `${name} ${count(n)}`});
  const items = list.data?.items;
  return (
    <>
      <Head
        title="Devices"
        actions={session.role === 'admin' && <button type="button" class="primary" onClick={() => setQuery({add: '1'})}>Add a device</button>}
      >
        What is in the fleet, whether it answers, and what it serves now.
      </Head>
      <div class="tools">
        <Search value={text} label="Search name or hardware" onChange={(value) => setQuery({query: value})} />
        <Choice
          label="State"
          value={state}
          onChange={(value) => setQuery({state: value})}
          options={[
            option('', 'All', known?.all),
            option('online', 'Online', known?.online),
            option('offline', 'Offline', known?.offline),
            option('never', 'Never seen', known?.never),
          ]}
        />
      </div>
      <Problem error={list.error} />
      {!items ? !list.error && <Loading rows={8} /> : items.length === 0 ? <NoDevices filtered={!!(text || state)} /> : <Rows items={items} />}
      <Pager page={list.page} shown={items?.length ?? 0} size={PAGE} more={list.more} total={total} onPage={list.step} />
      {query.get('add') && <AddDevice onClose={() => { setQuery({add: undefined}); list.reload(); summary.reload(); }} />}
    </>
  );
}

function NoDevices({filtered}: {filtered: boolean}) {
  if (filtered) return <Empty title="No device is like that">Search for part of a name or of the hardware, or show all states.</Empty>;
  return (
    <Empty title="No devices yet" command={`fleetfit agent --server ${location.origin} --token-file TOKEN --name pi4`}>
      Add a device here, which gives a token for it; then start the agent on the device:
    </Empty>
  );
}

function Rows({items}: {items: DeviceRow[]}) {
  return (
    <table class="list rows">
      <thead>
        <tr><th>Device</th><th>State</th><th>Hardware</th><th>Serves</th><th class="num">Latency</th><th class="num">Jobs</th><th>Last seen</th></tr>
      </thead>
      <tbody>
        {items.map((device) => (
          <tr key={device.name}>
            <td class="main"><a href={link(['devices', device.name])}>{device.name}</a></td>
            <td><State state={device.state} /></td>
            <td class="soft">{device.hardware || '–'}</td>
            <td class={'code' + (device.serving?.subnet ? '' : ' absent')} data-label="Serves">{device.serving?.subnet ?? '–'}</td>
            <td class={'num' + (device.serving?.subnet ? '' : ' absent')} data-label="Latency">{milliseconds(device.serving?.latency_ms)}</td>
            <td class="num" data-label="Jobs">{device.jobs ? count(device.jobs.waiting + device.jobs.running) : '–'}</td>
            <td class="soft" data-label="Last seen">{ago(device.last_seen)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function AddDevice({onClose}: {onClose: () => void}) {
  const [added, setAdded] = useState<NewDevice>();
  const [name, setName] = useState('');
  const {busy, error, act} = useAction();
  const submit = (event: Event) => {
    event.preventDefault();
    void act(async () => setAdded(await api.addDevice(name.trim())));
  };
  if (added) {
    return (
      <Dialog title={`${added.name} is added`} onClose={onClose}>
        <p>Its token is shown only now. Put it into a file on the device:</p>
        <Command text={added.token} label="Copy token" />
        <p>Then start the agent there:</p>
        <Command text={`fleetfit agent --server ${location.origin} --token-file TOKEN_FILE --name ${added.name}`} />
        <footer><a class="button primary" href={link(['devices', added.name])}>Open {added.name}</a></footer>
      </Dialog>
    );
  }
  return (
    <Dialog title="Add a device" onClose={onClose}>
      <form onSubmit={submit}>
        <Field label="Name" hint="Letters, digits, dots, dashes and underscores: what the device is called everywhere.">
          <input
            name="name"
            required
            maxLength={100}
            pattern="[A-Za-z0-9][A-Za-z0-9._\-]*"
            placeholder="pi4-kitchen"
            autoFocus
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </Field>
        <Problem error={error} />
        <footer><button type="submit" class="primary" disabled={busy}>Add</button></footer>
      </form>
    </Dialog>
  );
}
