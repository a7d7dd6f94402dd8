// A server that answers as docs/fleet.md says, from data made up by a seed: for work on the page without a build of fleetfit, and for
// fleets and studies that would take long to fill. node tests/mock.mjs [--devices N] [--trials N] [--empty] [--port N] [--dist FOLDER]
import {createHash} from 'node:crypto';
import {readFileSync, existsSync} from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import {fileURLToPath} from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
export const ADMIN = 'mock-admin-token';
export const VIEWER = 'mock-viewer-token';
const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const TYPES = {'.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml'};

/** Uniform numbers in [0, 1) (mulberry32). */
function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const sha = (text) => createHash('sha256').update(text).digest('hex');
const iso = (ms) => new Date(ms).toISOString();

const BOARDS = [
  ['pi4', 'Raspberry Pi 4, 4 × Cortex-A72, 4 GB', 9], ['pi5', 'Raspberry Pi 5, 4 × Cortex-A76, 8 GB', 3.4], ['pixel3', 'Google Pixel 3, Snapdragon 845', 4.1],
  ['pixel6', 'Google Pixel 6, Tensor G1', 2.3], ['s23', 'Samsung S23, Snapdragon 8 Gen 2', 1.2], ['jetson-nano', 'Jetson Nano, 4 × Cortex-A57', 7.6],
  ['rock5', 'Rock 5B, RK3588', 2.9], ['nuc', 'Intel NUC 12, i5-1240P', 0.9], ['xeon', 'Xeon Gold 6240, 18 cores', 0.6], ['t490', 'ThinkPad T490, i7-8565U', 1.1],
  ['imx8', 'NXP i.MX 8M Plus, 4 × Cortex-A53', 14], ['beagle-x15', 'BeagleBoard X15, 2 × Cortex-A15', 17],
];
const NETWORKS = [
  ['mobilenet_v3_small', 2.1], ['shufflenet_v2_x0_5', 1.6], ['squeezenet1_1', 4.1], ['mobilenet_v2', 5.9], ['mobilenet_v3_large', 4.6], ['mnasnet1_0', 6.1], ['efficientnet_b0', 8.4],
  ['regnet_y_400mf', 7.0], ['googlenet', 19], ['resnet18', 22], ['densenet121', 41], ['efficientnet_b3', 24], ['resnet34', 44], ['resnet50', 49], ['inception_v3', 68], ['resnext50_32x4d', 58],
  ['convnext_tiny', 61], ['vgg11', 84], ['resnet101', 93], ['vgg16', 172],
];

export class Fleet {
  constructor({devices = 27, trials = 400, now = Date.now()} = {}) {
    this.now0 = now;
    this.tokens = [
      {id: 1, name: 'anna', role: 'admin', secret: ADMIN, created: iso(now - 40 * 86400e3), expires: iso(now + 50 * 86400e3)},
      {id: 2, name: 'wall display', role: 'viewer', secret: VIEWER, created: iso(now - 12 * 86400e3)},
    ];
    this.devices = new Map();
    this.jobs = [];
    this.events = [];
    this.files = [];
    this.measurements = [];
    this.paretos = new Map();
    this.studies = new Map();
    this.audit = [];
    this.streams = new Set();
    this.log('anna', 'token.create', 'viewer "wall display"');
    if (devices > 0) this.fill(devices, trials);
  }

  log(name, action, detail) {
    this.audit.push({id: this.audit.length + 1, time: iso(Date.now()), name, action, detail});
  }

  emit(kind, device, job, body, time = Date.now()) {
    const event = {id: this.events.length + 1, time: iso(time), device, job, kind, body};
    this.events.push(event);
    for (const stream of this.streams) stream.write(`id: ${event.id}\ndata: ${JSON.stringify(event)}\n\n`);
    return event;
  }

  addDevice(name, more = {}) {
    const device = {name, state: 'never', agent_version: null, hardware: null, last_seen: null, serving: null, probe: {}, created: iso(Date.now()), ...more};
    this.devices.set(name, device);
    return device;
  }

  fill(devices, trials) {
    const uniform = random(11);
    for (let i = 0; i < devices; ++i) {
      const [board, hardware, factor] = BOARDS[i % BOARDS.length];
      const state = i === 4 ? 'offline' : i < 12 ? 'online' : uniform() < 0.86 ? 'online' : uniform() < 0.7 ? 'offline' : 'never';
      const name = i < BOARDS.length ? board : `${board}-${String(Math.floor(i / BOARDS.length)).padStart(3, '0')}`;
      this.addDevice(name, {
        state, factor: factor * (0.92 + 0.16 * uniform()), created: iso(this.now0 - 30 * 86400e3),
        ...(state === 'never' ? {} : {
          agent_version: '0.1.0', hardware, last_seen: iso(this.now0 - (state === 'online' ? 4000 * uniform() : 3600e3 * (1 + 40 * uniform()))),
          probe: {hardware: {cpu: hardware, cores: 4, memory_bytes: 4e9, governor: 'performance', kernel: '6.1.0'}, peak: {gflop_per_s: 96 / factor, gb_per_s: 22 / Math.sqrt(factor)}, runtimes: 'xnnpack, own'},
        }),
        ...(state === 'online' && uniform() < 0.5 ? {serving: {bundle: 'mobilenet_v2.ffb', subnet: 'o-s1-m2-o-s2', latency_ms: 4.4 * (0.8 + 0.3 * uniform()), budget_ms: 5, accuracy: 0.902 + 0.02 * uniform()}} : {}),
      });
    }
    for (const [name, cost] of NETWORKS) this.files.push({hash: sha(name), name: name + '.onnx', bytes: Math.round(cost * 2.6e6), kind: 'onnx'});
    this.files.push({hash: sha('bundle'), name: 'mobilenet_v2.ffb', bytes: 31_500_000, kind: 'bundle'});
    for (const device of [...this.devices.values()].slice(0, 60)) if (device.state !== 'never') this.fillMeasurements(device, uniform);
    this.fillServing('pi4');
    const kinds = ['measure', 'measure', 'probe', 'adapt', 'run'];
    for (let i = 0; i < 64; ++i) {
      const device = [...this.devices.values()][i % Math.min(devices, 12)];
      const kind = kinds[i % kinds.length];
      const created = this.now0 - (64 - i) * 171e3;
      const state = i > 61 ? 'waiting' : i > 58 ? 'running' : i % 17 === 9 ? 'failed' : i % 29 === 20 ? 'cancelled' : 'finished';
      this.jobs.push({
        id: i + 1, device: device.name, kind, state, attempt: state === 'waiting' ? 0 : 1, created: iso(created), started: state === 'waiting' ? null : iso(created + 2000),
        finished: ['waiting', 'running'].includes(state) ? null : iso(created + 2000 + 20e3 * uniform()), reason: state === 'failed' ? 'the child process was killed: it took more than 512 MB' : state === 'cancelled' ? 'cancelled by anna' : '',
        request: kind === 'measure' ? {model: sha(NETWORKS[i % 20][0]), name: NETWORKS[i % 20][0] + '.onnx', settings: {threads: 1 + (i % 4), precision: 'fp32'}, ops: true} : kind === 'probe' ? {seconds: 10} : {bundle: sha('bundle'), data: 'fashion-mnist', budget_ms: 5},
        result: {},
      });
      if (i > 40) this.emit('job', device.name, i + 1, {kind, state, reason: state === 'failed' ? 'it took more than 512 MB' : ''}, created + 15e3);
    }
    this.emit('device', 's23', null, {state: 'offline'}, this.now0 - 62e3);
    this.addStudy('fashion-resnet', trials, false);
    this.addStudy('kws-transformer', 81, true);
  }

  fillMeasurements(device, uniform) {
    for (const [name, cost] of NETWORKS) {
      if (uniform() < 0.07) continue;
      const median = cost * device.factor * (0.45 + 1.1 * uniform());
      const width = 0.004 + 0.02 * uniform();
      const failed = uniform() < 0.015;
      this.measure(device.name, name, {median, width, failed, unstable: uniform() < 0.04, started: this.now0 - 86400e3 * 3 * uniform()});
    }
  }

  measure(device, name, {median, width = 0.01, failed = false, unstable = false, started = Date.now()}) {
    const operators = [];
    for (let i = 0; i < 26; ++i) {
      const type = ['Conv', 'Conv', 'DepthwiseConv', 'Conv', 'Add', 'Relu6'][i % 6];
      const share = {Conv: 0.055, DepthwiseConv: 0.04, Add: 0.009, Relu6: 0.006}[type] * (0.5 + (i % 5) / 4);
      operators.push({name: `features.${i}/${type.toLowerCase()}`, type, kernel: type === 'Conv' ? 'xnn gemm 6x16' : 'xnn dwconv', latency_ms: share * median});
    }
    const measurement = {
      id: this.measurements.length + 1, model: name, hash: sha(name), device, status: failed ? 'failed' : unstable ? 'unstable' : 'ok', reason: failed ? 'out of memory' : unstable ? 'the interval did not settle in 10 s' : '',
      latency_ms: failed ? null : {median, mean: median * 1.01, p90: median * 1.06, p99: median * 1.19, ci95: [median * (1 - width * (unstable ? 6 : 1)), median * (1 + width * 1.1 * (unstable ? 6 : 1))]},
      runs: 412, overhead_ms: failed ? null : median * 0.03, peak_memory_bytes: Math.round(2.2e7 + median * 4e5), energy_mj: failed ? null : {value: median * 3.1, source: 'modelled'}, started: iso(started), ops: operators,
    };
    this.measurements.push(measurement);
    return measurement;
  }

  fillServing(name) {
    const device = this.devices.get(name);
    if (!device) return;
    const subnets = ['m2-m2-s2-s2', 's1-m2-s2-s2', 's1-m2-o-s2', 'o-m2-o-s2', 'o-s1-m2-o-s2', 'o-s1-o-o-s2', 'o-o-o-o-s1', 'o-o-o-o-o'];
    const points = subnets.map((design, i) => ({design, latency_ms: 1.7 + 0.5 * i + 0.05 * i * i, accuracy: 0.874 + 0.052 * (1 - Math.exp(-i / 2.4))}));
    this.paretos.set(name, {points, chosen: subnets[4], budget_ms: 5});
    device.serving = {bundle: 'mobilenet_v2.ffb', subnet: subnets[4], latency_ms: 4.62, budget_ms: 5, accuracy: points[4].accuracy};
    const uniform = random(5);
    let at = 4;
    const begin = this.now0 - 150e3;
    for (let second = 0; second < 150; ++second) {
      const load = second > 48 && second < 104 ? 1.55 : 1;
      const wanted = load > 1 ? 2 : 4;
      if (at !== wanted && (second === 51 || second === 106)) {
        this.emit('switch', name, 60, {from: subnets[at], to: subnets[wanted], ratio: load, switch_us: 3.4, prepared: true, reason: load > 1 ? 'over budget' : 'room'}, begin + second * 1000 - 400);
        at = wanted;
      }
      this.emit('latency', name, 60, {latency_ms: points[at].latency_ms * load * (0.96 + 0.08 * uniform()), budget_ms: 5, subnet: subnets[at], requests: 210}, begin + second * 1000);
    }
  }

  addStudy(name, trials, done) {
    this.studies.set(name, {name, created: iso(this.now0 - 5 * 3600e3), done, trials, seed: name.length});
  }

  study(name) {
    const study = this.studies.get(name);
    if (!study) return null;
    const n = study.trials;
    const counts = {waiting: study.done ? 0 : 12, running: study.done ? 0 : Math.min(4, n), finished: Math.floor(n * 0.31), stopped: Math.floor(n * 0.66), failed: Math.floor(n * 0.01), all: n};
    const charts = this.charts(study);
    const sorted = [...charts.history].sort((a, b) => b.value - a.value).slice(0, 10);
    const best = sorted.map((one) => ({trial: one.trial, status: 'finished', params: {learning_rate: 0.01 + (one.trial % 7) / 100, layers: 18 + 16 * (one.trial % 2), batch: 64}, accuracy: one.value, objective: {accuracy: one.value, 'latency on pi4, ms': 8 + (one.trial % 11)}, feasible: true}));
    const running = [...Array(counts.running).keys()].map((i) => ({trial: n + i, status: 'running', params: {learning_rate: 0.02, layers: 18 + 16 * (i % 2), batch: 64}, accuracy: null, progress: `epoch ${i + 1}, accuracy 0.${6 + i}1`, objective: null, feasible: null}));
    return {name, created: study.created, done: study.done, objective: charts.objective, counts, trials_total: n, tuning: {time_s: n * 41, energy_j: null}, best, running};
  }

  charts(study) {
    const uniform = random(study.seed);
    const n = study.trials;
    const points = Math.min(n, 2000);
    const history = [];
    const lines = [];
    const plane = [];
    let best = 0;
    for (let i = 0; i < points; ++i) {
      const trial = Math.floor((i * n) / points);
      const rate = 10 ** (-4 + 3 * uniform());
      const layers = Math.floor(4 * uniform());
      const batch = 16 * 2 ** Math.floor(5 * uniform());
      const decay = 10 ** (-6 + 4 * uniform());
      const value = 0.93 - 0.05 * Math.abs(Math.log10(rate) + 2.2) - 0.008 * Math.abs(layers - 2) - 0.12 * uniform() * Math.exp((-2 * i) / points) - 0.02 * uniform();
      best = Math.max(best, value);
      history.push({trial, value, best});
      lines.push({trial, values: [rate, batch, decay, layers, value], best: false});
      plane.push({trial, x: 3 + 5 * layers + batch / 40 + 4 * uniform(), y: value, front: false});
    }
    const limit = [...history].sort((a, b) => b.value - a.value)[Math.floor(points / 10)]?.value ?? 1;
    for (const line of lines) line.best = line.values[4] > limit;
    let top = -Infinity;
    for (const point of [...plane].sort((a, b) => a.x - b.x)) if (point.y > top) (point.front = true), (top = point.y);
    const rungs = [1, 3, 9, 27].map((epochs, level) => ({bracket: 0, level, budget: {epochs, data_fraction: 1}, ended: Math.floor(n / 3 ** level), promoted: level < 3 ? Math.floor(n / 3 ** (level + 1)) : 0, best_accuracy: 0.84 + 0.028 * level}));
    return {
      objective: ['accuracy', 'latency on pi4, ms'], trials_total: n, trials_seen: points, history,
      pareto: {x: 'latency on pi4, ms', y: 'accuracy', points: plane}, rungs,
      parallel: {axes: [{name: 'learning rate', log: true}, {name: 'batch', log: true}, {name: 'weight decay', log: true}, {name: 'network', values: ['resnet18', 'resnet34', 'resnet50', 'resnet101']}, {name: 'accuracy'}], lines},
    };
  }
}

const counted = (items, key) => items.reduce((all, one) => ({...all, [one[key]]: (all[one[key]] ?? 0) + 1}), {});

function page(items, query, key) {
  const limit = Math.min(1000, Number(query.get('limit') ?? 100));
  const after = query.get('after');
  const from = after ? items.findIndex((one) => String(one[key]) === after) + 1 : 0;
  const some = items.slice(from, from + limit);
  return {items: some, next: from + limit < items.length ? some[some.length - 1][key] : null};
}

class Failure extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

function rank(values) {
  const order = values.map((v, i) => [v, i]).sort((a, b) => a[0] - b[0]);
  const ranks = [];
  order.forEach(([, i], r) => (ranks[i] = r));
  return ranks;
}

function spearman(a, b) {
  const [x, y] = [rank(a), rank(b)];
  const n = a.length;
  const d = x.reduce((sum, v, i) => sum + (v - y[i]) ** 2, 0);
  return 1 - (6 * d) / (n * (n * n - 1));
}

/** Newest measurement of each model on each device. */
function newest(fleet) {
  const cells = new Map();
  for (const one of fleet.measurements) cells.set(one.model + '\n' + one.device, one);
  return [...cells.values()];
}

const bare = ({factor, probe, created, ...row}) => row;
const counts = (fleet, name) => {
  const mine = fleet.jobs.filter((job) => job.device === name);
  return {waiting: mine.filter((job) => job.state === 'waiting').length, running: mine.filter((job) => job.state === 'running').length};
};
const shown = ({secret, ...token}) => token;

/** [method, pattern, role, handler(fleet, {params, query, body, token})] */
const ROUTES = [
  ['GET', '/health', null, () => ({status: 'ok', version: '0.1.0'})],
  ['GET', '/session', 'viewer', (_, {token}) => ({role: token.role, name: token.name})],
  ['DELETE', '/session', 'viewer', () => null],
  ['GET', '/summary', 'viewer', (fleet) => {
    const devices = counted([...fleet.devices.values()], 'state');
    const jobs = counted(fleet.jobs, 'state');
    return {
      devices: {all: fleet.devices.size, online: devices.online ?? 0, offline: devices.offline ?? 0, never: devices.never ?? 0},
      jobs: {waiting: 0, running: 0, finished: 0, failed: 0, cancelled: 0, ...jobs},
      models: fleet.files.filter((file) => file.kind === 'onnx').length, measurements: fleet.measurements.length, studies: fleet.studies.size, newest_event: fleet.events.length,
    };
  }],
  ['GET', '/devices', 'viewer', (fleet, {query}) => {
    const text = (query.get('query') ?? '').toLowerCase();
    const state = query.get('state');
    const found = [...fleet.devices.values()].filter((one) => (!state || one.state === state) && (one.name + ' ' + (one.hardware ?? '')).toLowerCase().includes(text)).sort((a, b) => (a.name < b.name ? -1 : 1));
    const some = page(found, query, 'name');
    return {...some, items: some.items.map((one) => ({...bare(one), jobs: counts(fleet, one.name)}))};
  }],
  ['POST', '/devices', 'admin', (fleet, {body, token}) => {
    if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(body.name ?? '')) throw new Failure(400, 'name: 1 to 100 letters, digits, ".", "_" and "-"');
    if (fleet.devices.has(body.name)) throw new Failure(400, `name: there is a device ${body.name}`);
    const secret = sha('secret of ' + body.name);
    fleet.tokens.push({id: fleet.tokens.length + 1, name: body.name, role: 'agent', device: body.name, secret, created: iso(Date.now())});
    fleet.log(token.name, 'device.add', body.name);
    return {...bare(fleet.addDevice(body.name)), token: secret};
  }],
  ['GET', '/devices/:name', 'viewer', (fleet, {params}) => {
    const one = fleet.devices.get(params.name);
    if (!one) throw new Failure(404, `there is no device ${params.name}`);
    const mine = fleet.measurements.filter((m) => m.device === one.name || m.device.startsWith(one.name + '.')).reverse();
    const {factor, ...rest} = one;
    return {...rest, jobs: counts(fleet, one.name), settings: mine.length ? [{name: one.name, runtime: 'xnnpack', threads: 1, precision: 'fp32'}] : [], measurements: mine.slice(0, 50).map(({ops, ...m}) => m)};
  }],
  ['DELETE', '/devices/:name', 'admin', (fleet, {params, token}) => {
    fleet.devices.delete(params.name);
    fleet.log(token.name, 'device.remove', params.name);
    return null;
  }],
  ['GET', '/devices/:name/pareto', 'viewer', (fleet, {params}) => fleet.paretos.get(params.name) ?? {points: [], chosen: null, budget_ms: null}],
  ['GET', '/models', 'viewer', (fleet, {query}) => page(fleet.files.filter((file) => file.kind === 'onnx').map((file) => ({hash: file.hash, name: file.name, bytes: file.bytes, measured_on: new Set(fleet.measurements.filter((m) => m.hash === file.hash).map((m) => m.device)).size})), query, 'hash')],
  ['GET', '/files', 'viewer', (fleet, {query}) => page(fleet.files.filter((file) => !query.get('kind') || file.kind === query.get('kind')), query, 'hash')],
  ['POST', '/files', 'admin', (fleet, {query, raw, token}) => {
    const name = query.get('name') ?? '';
    if (raw.length === 0) throw new Failure(400, `${name} is empty`);
    const file = {hash: createHash('sha256').update(raw).digest('hex'), name, bytes: raw.length, kind: name.endsWith('.ffb') ? 'bundle' : 'onnx'};
    fleet.files.unshift(file);
    fleet.log(token.name, 'file.add', name);
    return file;
  }],
  ['GET', '/latencies', 'viewer', (fleet, {query}) => {
    const wanted = (query.get('devices') ?? '').split(',').filter(Boolean);
    const cells = newest(fleet).filter((one) => wanted.length === 0 || wanted.includes(one.device));
    return {
      models: [...new Set(cells.map((one) => one.model))].slice(0, 100), hashes: [...new Set(cells.map((one) => one.hash))].slice(0, 100), devices: [...new Set(cells.map((one) => one.device))].slice(0, 100),
      cells: cells.map((one) => ({model: one.model, device: one.device, median_ms: one.latency_ms?.median ?? null, ci95: one.latency_ms?.ci95 ?? null, status: one.status, measured: one.started})),
    };
  }],
  ['GET', '/correlations', 'viewer', (fleet) => {
    const cells = newest(fleet).filter((one) => one.latency_ms);
    const devices = [...new Set(cells.map((one) => one.device))].slice(0, 100);
    const columns = devices.map((name) => new Map(cells.filter((one) => one.device === name).map((one) => [one.model, one.latency_ms.median])));
    const common = (i, j) => [...columns[i].keys()].filter((model) => columns[j].has(model));
    return {
      devices, designs: devices.map((_, i) => devices.map((__, j) => common(i, j).length)),
      srcc: devices.map((_, i) => devices.map((__, j) => {
        const models = common(i, j);
        return models.length < 3 ? null : spearman(models.map((m) => columns[i].get(m)), models.map((m) => columns[j].get(m)));
      })),
    };
  }],
  ['GET', '/measurements', 'viewer', (fleet, {query}) => page(newest(fleet).filter((one) => (!query.get('model') || one.hash === query.get('model')) && (!query.get('device') || one.device === query.get('device'))).map(({ops, ...one}) => one), query, 'id')],
  ['GET', '/measurements/:id', 'viewer', (fleet, {params}) => fleet.measurements[Number(params.id) - 1] ?? fail(404, 'there is no such measurement')],
  ['GET', '/jobs', 'viewer', (fleet, {query}) => page([...fleet.jobs].reverse().filter((job) => (!query.get('state') || job.state === query.get('state')) && (!query.get('device') || job.device === query.get('device'))), query, 'id')],
  ['POST', '/jobs', 'admin', (fleet, {body, token}) => {
    if (!fleet.devices.has(body.device)) throw new Failure(404, `there is no device ${body.device}`);
    const job = {id: fleet.jobs.length + 1, device: body.device, kind: body.kind, request: body.request, state: 'waiting', reason: '', attempt: 0, created: iso(Date.now()), started: null, finished: null, result: {}};
    fleet.jobs.push(job);
    fleet.emit('job', job.device, job.id, {kind: job.kind, state: 'waiting'});
    fleet.log(token.name, 'job.add', `${job.kind} ${job.id} on ${job.device}`);
    return job;
  }],
  ['GET', '/jobs/:id', 'viewer', (fleet, {params}) => fleet.jobs[Number(params.id) - 1] ?? fail(404, 'there is no such job')],
  ['DELETE', '/jobs/:id', 'admin', (fleet, {params, token}) => {
    const job = fleet.jobs[Number(params.id) - 1] ?? fail(404, 'there is no such job');
    Object.assign(job, {state: 'cancelled', reason: 'cancelled by ' + token.name, finished: iso(Date.now())});
    fleet.emit('job', job.device, job.id, {kind: job.kind, state: 'cancelled', reason: job.reason});
    fleet.log(token.name, 'job.cancel', `${job.kind} ${job.id}`);
    return job;
  }],
  ['GET', '/studies', 'viewer', (fleet, {query}) => page([...fleet.studies.keys()].map((name) => {
    const study = fleet.study(name);
    return {name, created: study.created, done: study.done, trials: study.counts, best_accuracy: study.best[0]?.accuracy ?? null, tuning: study.tuning};
  }), query, 'name')],
  ['GET', '/studies/:name', 'viewer', (fleet, {params}) => fleet.study(params.name) ?? fail(404, `there is no study ${params.name}`)],
  ['GET', '/studies/:name/charts', 'viewer', (fleet, {params}) => fleet.charts(fleet.studies.get(params.name) ?? fail(404, `there is no study ${params.name}`))],
  ['GET', '/events', 'viewer', (fleet, {query}) => {
    const some = fleet.events.filter((event) => (!query.get('device') || event.device === query.get('device')) && (!query.get('kind') || event.kind === query.get('kind')));
    return {items: some.slice(-Number(query.get('limit') ?? 100)), next: null};
  }],
  ['GET', '/tokens', 'admin', (fleet) => ({items: fleet.tokens.map(shown), next: null})],
  ['POST', '/tokens', 'admin', (fleet, {body, token}) => {
    const made = {id: fleet.tokens.length + 1, name: body.name, role: body.role, secret: sha('token ' + fleet.tokens.length), created: iso(Date.now()), expires: body.expires ?? null};
    fleet.tokens.push(made);
    fleet.log(token.name, 'token.create', `${body.role} "${body.name}"`);
    return {...shown(made), token: made.secret};
  }],
  ['DELETE', '/tokens/:id', 'admin', (fleet, {params, token}) => {
    const one = fleet.tokens.find((each) => each.id === Number(params.id)) ?? fail(404, 'there is no such token');
    one.revoked = iso(Date.now());
    fleet.log(token.name, 'token.revoke', one.name);
    return null;
  }],
  ['GET', '/audit', 'admin', (fleet, {query}) => page([...fleet.audit].reverse(), query, 'id')],
  ['POST', '/agent/register', 'agent', (fleet, {body, token}) => {
    const device = fleet.devices.get(token.device) ?? fail(404, 'no such device');
    Object.assign(device, {state: 'online', agent_version: body.version, hardware: body.hardware, probe: body.probe ?? {}, last_seen: iso(Date.now())});
    fleet.emit('device', device.name, null, {state: 'online'});
    return {};
  }],
  ['POST', '/agent/heartbeat', 'agent', (fleet, {body, token}) => {
    const device = fleet.devices.get(token.device) ?? fail(404, 'no such device');
    Object.assign(device, {state: 'online', last_seen: iso(Date.now()), ...(body.serving ? {serving: body.serving} : {})});
    return {cancel: [], waiting: counts(fleet, device.name).waiting, lease_s: 60};
  }],
  ['POST', '/agent/claim', 'agent', (fleet, {body, token}) => {
    const jobs = fleet.jobs.filter((job) => job.device === token.device && job.state === 'waiting').slice(0, body.most ?? 1);
    for (const job of jobs) {
      Object.assign(job, {state: 'running', attempt: job.attempt + 1, started: iso(Date.now())});
      fleet.emit('job', job.device, job.id, {kind: job.kind, state: 'running'});
    }
    return {jobs: jobs.map((job) => ({id: job.id, attempt: job.attempt, kind: job.kind, request: job.request, lease_s: 60, limits: {}}))};
  }],
  ['POST', '/agent/results', 'agent', (fleet, {body}) => {
    for (const end of body.results) {
      const job = fleet.jobs[end.job - 1];
      Object.assign(job, {state: end.state, reason: end.reason ?? '', result: end.result ?? {}, finished: iso(Date.now())});
      if (job.kind === 'measure' && end.state === 'finished') fleet.measurements.push({...end.result, id: fleet.measurements.length + 1, device: job.device});
      if (job.kind === 'adapt' && end.state === 'finished')
        fleet.paretos.set(job.device, {points: end.result.pool.map((one) => ({design: one.subnet, latency_ms: one.latency_ms, accuracy: one.accuracy})), chosen: end.result.best.subnet, budget_ms: end.result.budget_ms});
      fleet.emit('job', job.device, job.id, {kind: job.kind, state: job.state, reason: job.reason});
    }
    return {};
  }],
  ['POST', '/agent/events', 'agent', (fleet, {body, token}) => {
    for (const event of body.events) fleet.emit(event.kind, token.device, event.job ?? null, event.body, Date.parse(event.time));
    return {};
  }],
];

function fail(status, message) {
  throw new Failure(status, message);
}

function match(pattern, path) {
  const [a, b] = [pattern.split('/'), path.split('/')];
  if (a.length !== b.length) return null;
  const params = {};
  for (let i = 0; i < a.length; ++i) {
    if (a[i].startsWith(':')) params[a[i].slice(1)] = decodeURIComponent(b[i]);
    else if (a[i] !== b[i]) return null;
  }
  return params;
}

function tokenOf(fleet, request) {
  const cookie = /(?:^|; )session=([^;]+)/.exec(request.headers.cookie ?? '')?.[1];
  const bearer = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1];
  return fleet.tokens.find((token) => !token.revoked && token.secret === (bearer ?? cookie));
}

const ALLOWED = {viewer: ['viewer', 'admin'], admin: ['admin'], agent: ['agent']};

function respond(fleet, request, raw, url) {
  const at = url.pathname.slice('/api/v1'.length);
  const body = raw.length > 0 && (request.headers['content-type'] ?? '').includes('json') ? JSON.parse(raw.toString()) : {};
  if (request.method === 'POST' && at === '/session') {
    const token = fleet.tokens.find((one) => one.secret === body.token && !one.revoked && one.role !== 'agent') ?? fail(401, 'this token is not known, has expired or was revoked');
    return {json: {role: token.role, name: token.name}, cookie: `session=${token.secret}; HttpOnly; SameSite=Strict; Path=/`};
  }
  for (const [method, pattern, role, handler] of ROUTES) {
    const params = method === request.method && match(pattern, at);
    if (!params) continue;
    const token = tokenOf(fleet, request);
    if (role && !token) fail(401, 'sign in first');
    if (role && !ALLOWED[role].includes(token.role)) fail(403, `this is for the role ${role}`);
    const json = handler(fleet, {params, query: url.searchParams, body, raw, token});
    return {json, ...(method === 'DELETE' && at === '/session' ? {cookie: 'session=; Path=/; Max-Age=0'} : {})};
  }
  return fail(404, 'there is no such path');
}

function stream(fleet, request, response) {
  if (!tokenOf(fleet, request)) return response.writeHead(401).end();
  response.writeHead(200, {'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store'});
  response.write(': hello\n\n');
  fleet.streams.add(response);
  request.on('close', () => fleet.streams.delete(response));
}

function file(dist, url, response) {
  const target = path.join(dist, path.normalize(url.pathname === '/' ? '/index.html' : url.pathname));
  if (!target.startsWith(dist) || !existsSync(target)) return response.writeHead(404).end();
  response.writeHead(200, {'Content-Type': TYPES[path.extname(target)], 'Content-Security-Policy': CSP, 'X-Content-Type-Options': 'nosniff'});
  response.end(readFileSync(target));
}

/** Listens on a free port of this machine: {url, fleet, close}. */
export async function startMock({dist = path.join(here, '../dist'), port = 0, ...options} = {}) {
  const fleet = new Fleet(options);
  const server = http.createServer(async (request, response) => {
    const url = new URL(request.url, 'http://localhost');
    if (!url.pathname.startsWith('/api/v1/')) return file(path.resolve(dist), url, response);
    if (url.pathname === '/api/v1/events/stream') return stream(fleet, request, response);
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    try {
      const {json, cookie} = respond(fleet, request, Buffer.concat(chunks), url);
      response.writeHead(200, {'Content-Type': 'application/json', ...(cookie ? {'Set-Cookie': cookie} : {})});
      response.end(JSON.stringify(json));
    } catch (error) {
      response.writeHead(error.status ?? 500, {'Content-Type': 'application/json'});
      response.end(JSON.stringify({error: {code: 'error', message: error.message}}));
    }
  });
  await new Promise((done) => server.listen(port, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    fleet,
    close: () => {
      for (const response of fleet.streams) response.end();
      server.closeAllConnections();
      server.close();
    },
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const flag = (name, otherwise) => {
    const at = process.argv.indexOf('--' + name);
    return at < 0 ? otherwise : process.argv[at + 1];
  };
  const mock = await startMock({
    port: Number(flag('port', 8090)), dist: flag('dist', path.join(here, '../dist')), devices: process.argv.includes('--empty') ? 0 : Number(flag('devices', 27)), trials: Number(flag('trials', 400)),
  });
  console.log(`${mock.url}  tokens: ${ADMIN} (admin), ${VIEWER} (viewer)`);
}
