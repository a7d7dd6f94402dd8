// What the tests talk to: the server of a fleetfit program over a store of its own, or the stand-in; both by the API alone.
import {execFileSync, spawn, spawnSync} from 'node:child_process';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {ADMIN, startMock} from './mock.mjs';

const STUDY = `name: branin
parameters: {training: {x: {range: [-5, 10]}, y: {range: [0, 15]}}}
objective: {minimize: value}
budget: {kind: epochs, max_epochs: 1, max_trials: 200}
algorithm: {model: tpe}
`;

/** {url, admin, modelFile, bundleFile, measured(), startStudy(), tellTrials(n), close()} with an empty store. */
export function startBackend({dist, fleetfit}) {
  return fleetfit ? startServer(fleetfit) : startStandIn(dist);
}

async function startStandIn(dist) {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'fleetfit-web-'));
  const mock = await startMock({dist, devices: 0});
  const file = (name) => {
    writeFileSync(path.join(folder, name), name);
    return path.join(folder, name);
  };
  return {
    url: mock.url,
    admin: ADMIN,
    modelFile: file('net.onnx'),
    bundleFile: file('net.ffb'),
    measured: () => ({conditions: {}, protocol: {}}),
    startStudy: () => mock.fleet.addStudy('branin', 0, false),
    tellTrials: (n) => void (mock.fleet.studies.get('branin').trials += n),
    close: () => {
      mock.close();
      rmSync(folder, {recursive: true});
    },
  };
}

async function startServer(fleetfit) {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'fleetfit-web-'));
  const run = (...args) => execFileSync(fleetfit, [...args, '--store', 'sqlite:fleet.db'], {cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe']});
  const admin = JSON.parse(run('token', 'create', '--role', 'admin', '--name', 'anna', '--json')).token;
  run('model', 'zoo', 'resnet20', '--width', '0.5', '--image', '8', '--channels', '1', '--classes', '3', '-o', 'net.onnx');
  run('bundle', 'draft', 'net.onnx', '-o', 'net.ffb', '--granularity', '0.5', '--merge', '0', '--shrink', '0.5');
  writeFileSync(path.join(folder, 'study.yaml'), STUDY);
  const server = spawn(fleetfit, ['server', '--listen', '127.0.0.1:0', '--json', '--store', 'sqlite:fleet.db'], {cwd: folder, stdio: ['ignore', 'pipe', 'pipe']});
  let complaints = '';
  server.stderr.on('data', (chunk) => (complaints += chunk));
  const url = await new Promise((done, fail) => {
    let text = '';
    server.stdout.on('data', (chunk) => {
      text += chunk;
      const found = /"url":\s*"([^"]+)"/.exec(text);
      if (found) done(found[1]);
    });
    server.on('exit', (status) => fail(new Error(`fleetfit server ended with ${status}: ${complaints}`)));
  });
  return {
    url,
    admin,
    modelFile: path.join(folder, 'net.onnx'),
    bundleFile: path.join(folder, 'net.ffb'),
    measured: () => measureOnce(fleetfit, folder),
    startStudy: () => void run('study', 'create', 'study.yaml'),
    tellTrials: (n) => {
      for (let i = 0; i < n; ++i) {
        const {trial} = JSON.parse(run('study', 'ask', 'branin', '--json'));
        run('study', 'tell', 'branin', String(trial), '--values', JSON.stringify({value: 10 / (trial + 1)}));
      }
    },
    close: async () => {
      server.removeAllListeners('exit');
      const ended = new Promise((done) => server.once('exit', done));
      server.kill('SIGTERM');
      await ended;
      rmSync(folder, {recursive: true});
    },
  };
}

/** What `fleetfit measure` prints, whether it has settled or not. */
function measureOnce(fleetfit, folder) {
  const args = ['measure', 'net.onnx', '--ops', '--max-time', '0.2', '--json', '--store', 'memory:'];
  const done = spawnSync(fleetfit, args, {cwd: folder, encoding: 'utf8'});
  return JSON.parse(done.stdout)[0];
}

/** A device as the server sees it: says by the API what an agent would. */
export class Agent {
  constructor(url, name, token) {
    Object.assign(this, {url, name, token, sequence: 0});
  }

  async call(at, body) {
    const reply = await fetch(`${this.url}/api/v1/agent/${at}`, {method: 'POST', headers: {Authorization: `Bearer ${this.token}`, 'Content-Type': 'application/json'}, body: JSON.stringify(body)});
    const text = await reply.text();
    if (!reply.ok) throw new Error(`${at}: ${reply.status} ${text}`);
    return text ? JSON.parse(text) : null;
  }

  register(hardware = 'Raspberry Pi 4, 4 × Cortex-A72') {
    return this.call('register', {name: this.name, version: '0.1.0', hardware, probe: {cores: 4}});
  }

  async claim() {
    return (await this.call('claim', {most: 1})).jobs[0];
  }

  finish(job, result) {
    return this.call('results', {results: [{job: job.id, attempt: job.attempt, state: 'finished', reason: '', result}]});
  }

  event(kind, body, job) {
    return this.call('events', {events: [{sequence: ++this.sequence, time: new Date().toISOString(), kind, body, ...(job ? {job: job.id} : {})}]});
  }

  serve(serving, job) {
    return this.call('heartbeat', {running: [{id: job.id, attempt: job.attempt}], serving});
  }
}

/** The same with times of our own. */
export function measurement(measured, job, median) {
  const ci95 = [median * 0.99, median * 1.01];
  return {
    ...measured, device: 'local', model: job.request.name, hash: job.request.model, device_fingerprint: 'a'.repeat(16), status: 'ok', reason: '',
    latency_ms: {median, mean: median * 1.01, p90: median * 1.1, p99: median * 1.2, ci95, session_ci95: ci95},
    runs: 200, overhead_ms: median * 0.05, peak_memory_bytes: 12_000_000, energy_mj: null,
    ops: [{name: 'conv1', type: 'Conv', kernel: 'gemm', latency_ms: median * 0.6}, {name: 'conv2', type: 'Conv', kernel: 'gemm', latency_ms: median * 0.25}, {name: 'add', type: 'Add', kernel: 'add', latency_ms: median * 0.1}],
    started: new Date().toISOString(),
  };
}

/** What `fleetfit adapt` prints, as far as the page reads it. */
export const adaptation = {
  best: {subnet: 'o-s1', latency_ms: 4.2, accuracy: 0.91}, budget_ms: 5, evaluated: 40,
  pool: [{subnet: 's1-s1', latency_ms: 2.1, accuracy: 0.87}, {subnet: 'o-s1', latency_ms: 4.2, accuracy: 0.91}, {subnet: 'o-o', latency_ms: 6.3, accuracy: 0.93}],
};
