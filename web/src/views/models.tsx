import {api, type Session} from '../api';
import {bytes, count, milliseconds, plusMinus, shortHash, ago} from '../format';
import {useNews} from '../live';
import {Card, Empty, Head, Loading, Pager, Problem, State, useAction, useLoad, usePages} from '../parts';
import {link} from '../route';

const PAGE = 50;

export function Models({session}: {session: Session}) {
  const list = usePages((after) => api.models({limit: PAGE, ...(after ? {after} : {})}), []);
  const {busy, error, act} = useAction();
  useNews((event) => event.kind === 'job', list.reload, 1500);
  const items = list.data?.items;
  const upload = (event: Event) => {
    const input = event.currentTarget as HTMLInputElement;
    const file = input.files?.[0];
    if (file) void act(async () => { await api.upload(file); input.value = ''; list.reload(); });
  };
  return (
    <>
      <Head
        title="Models"
        actions={session.role === 'admin' && <label class="button primary">{busy ? 'Uploading …' : 'Upload a model'}<input class="unseen" type="file" accept=".onnx,.tflite,.ffb" disabled={busy} onChange={upload} /></label>}
      >
        What was measured, and on how many devices.
      </Head>
      <Problem error={error ?? list.error} />
      {!items ? !list.error && <Loading rows={8} /> : items.length === 0 ? (
        <Empty title="No models yet" command="fleetfit model zoo mobilenet_v2 -o mobilenet_v2.onnx">Upload an ONNX file, or take one of the zoo and upload it:</Empty>
      ) : (
        <table class="list rows">
          <thead><tr><th>Model</th><th class="num">Measured on</th><th class="num">Size</th><th>Hash</th></tr></thead>
          <tbody>
            {items.map((model) => (
              <tr key={model.hash}>
                <td class="main"><a href={link(['models', model.hash], {name: model.name})}>{model.name}</a></td>
                <td class="num" data-label="Measured on">{count(model.measured_on)} {model.measured_on === 1 ? 'device' : 'devices'}</td>
                <td class="num" data-label="Size">{bytes(model.bytes)}</td>
                <td class="code soft" data-label="Hash" title={model.hash}>{shortHash(model.hash)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <Pager page={list.page} shown={items?.length ?? 0} size={PAGE} more={list.more} onPage={list.step} />
    </>
  );
}

export function ModelView({hash, name}: {hash: string; name: string}) {
  const loaded = useLoad(() => api.measurements({model: hash, limit: 200}), [hash]);
  const items = loaded.data?.items ?? [];
  const title = name || items[0]?.model || shortHash(hash);
  const sorted = [...items].sort((a, b) => (a.latency_ms?.median ?? Infinity) - (b.latency_ms?.median ?? Infinity));
  const slowest = Math.max(0, ...items.map((one) => one.latency_ms?.median ?? 0));
  return (
    <>
      <Head title={title}><span class="code">{shortHash(hash)}</span> · quickest device first</Head>
      <Problem error={loaded.error} />
      {!loaded.data ? !loaded.error && <Loading rows={6} /> : items.length === 0 ? (
        <Empty title="This model was not measured yet">Open one of the <a href={link(['devices'])}>devices</a> and press <em>Measure</em>.</Empty>
      ) : (
        <Card>
          <table class="bars">
            <thead class="unseen"><tr><th>Device</th><th>Bar</th><th>Median</th><th>Interval</th><th>State</th><th>When</th></tr></thead>
            <tbody>
              {sorted.map((one) => (
                <tr key={one.id}>
                  <th scope="row"><a href={link(['devices', one.device.split('.')[0] ?? one.device], {tab: 'measurements', measurement: String(one.id)})}>{one.device}</a></th>
                  <td class="bar"><i style={{width: `${(100 * (one.latency_ms?.median ?? 0)) / (slowest || 1)}%`}} /></td>
                  <td class="num">{milliseconds(one.latency_ms?.median)}</td>
                  <td class="num soft">{one.latency_ms ? plusMinus(one.latency_ms.median, one.latency_ms.ci95) : ''}</td>
                  <td>{one.status === 'ok' ? '' : <State state={one.status} />}</td>
                  <td class="soft nowrap">{ago(one.started)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Card>
      )}
    </>
  );
}
