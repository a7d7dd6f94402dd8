// ONNX Runtime as a runtime of fleetfit: JSON lines on stdin and stdout, as docs/formats/runtime.md says.
import fs from 'node:fs';
import {createRequire} from 'node:module';
import os from 'node:os';
import path from 'node:path';
import ort from 'onnxruntime-node';
import {Failure} from './failure.mjs';
import {randomInput} from './inputs.mjs';
import {linesOf} from './lines.mjs';
import {readNpy, writeNpy} from './npy.mjs';
import {operatorTimes} from './profile.mjs';

const PROTOCOL = 1;
const MOST_RUNS = 100000;
// The first run finds out how much memory is needed, the second takes it in one piece: both wait for the system's pages.
const COLD_RUNS = 2;
const MOST_REQUEST_BYTES = 1 << 20;
const VERSION = createRequire(import.meta.url)('onnxruntime-node/package.json').version;

ort.env.logLevel = 'error';  // its hints would fill stderr

/** The loaded model: {file, options, session, feeds}, or null. */
let loaded = null;

const isWhole = (value, min, max) => Number.isInteger(value) && value >= min && value <= max;

const oneLine = (error) => String(error.message).replace(/\s+/g, ' ').trim();

function need(condition, problem) {
  if (!condition) throw new Failure('invalid_input', `request: ${problem}`);
}

function theLoaded() {
  if (!loaded) throw new Failure('invalid_input', 'no model is loaded');
  return loaded;
}

/** ONNX Runtime tells what went wrong in its message alone. */
function loadFailure(file, error) {
  const message = oneLine(error)
    .replace(/^Load model from .*? failed:/, '')
    .replace(/\/\S+\.cc:\d+ .*?\) +(?=[A-Z])/, '');  // the place in its own code
  const cannot = /NOT_IMPLEMENTED|Could not find an implementation|not a registered function|is not supported|Unsupported/i;
  return new Failure(cannot.test(message) ? 'unsupported' : 'invalid_input', `${file}: ${message}`);
}

async function openSession(file, options) {
  try {
    return await ort.InferenceSession.create(file, options);
  } catch (error) {
    throw loadFailure(file, error);
  }
}

async function unload() {
  const before = loaded;
  loaded = null;
  if (before) await before.session.release();
  return {};
}

async function load({model, threads = 1}) {
  need(typeof model === 'string', 'model is a path');
  need(isWhole(threads, 1, 4096), 'threads is a whole number from 1');
  await unload();
  if (!fs.existsSync(model)) throw new Failure('not_found', `${model} does not exist`);
  const options = {
    intraOpNumThreads: threads, interOpNumThreads: 1, graphOptimizationLevel: 'all', executionMode: 'sequential',
  };
  const session = await openSession(model, options);
  try {
    const feeds = {};
    session.inputMetadata.forEach((input, i) => {
      const {type, dims, data} = randomInput(input, i);
      feeds[input.name] = new ort.Tensor(type, data, dims);
    });
    loaded = {file: model, options, session, feeds};
  } catch (error) {
    await session.release();
    throw error;
  }
  return {choices: ''};
}

/** The most memory that this process has held. */
function peakMemoryBytes() {
  const match = /^VmHWM:\s+(\d+) kB$/m.exec(fs.readFileSync('/proc/self/status', 'utf8'));
  return match ? Number(match[1]) * 1024 : 0;
}

async function timesOf(session, feeds, runs) {
  const times = [];
  for (let i = 0; i < runs; ++i) {
    const begin = process.hrtime.bigint();
    await session.run(feeds);
    times.push(Number(process.hrtime.bigint() - begin) / 1e6);
  }
  return times;
}

/** Runs in a session of its own, since profiling takes time and a session profiles always or never. */
async function profile({file, options, feeds}, runs) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'fleetfit-profile-'));
  try {
    const session = await openSession(file, {
      ...options, enableProfiling: true, profileFilePrefix: path.join(folder, 'profile'),
    });
    try {
      await timesOf(session, feeds, COLD_RUNS);  // nobody else can warm this session up
      const times = await timesOf(session, feeds, runs);
      session.endProfiling();
      const [written] = fs.readdirSync(folder);
      return {times_ms: times, operators: operatorTimes(path.join(folder, written), COLD_RUNS, runs)};
    } finally {
      await session.release();
    }
  } finally {
    fs.rmSync(folder, {recursive: true, force: true});
  }
}

async function run({runs, per_operator: perOperator = false}) {
  need(isWhole(runs, 1, MOST_RUNS), `runs is a whole number from 1 to ${MOST_RUNS}`);
  need(typeof perOperator === 'boolean', 'per_operator is true or false');
  const model = theLoaded();
  const reply = perOperator ? await profile(model, runs) : {times_ms: await timesOf(model.session, model.feeds, runs)};
  return {...reply, peak_memory_bytes: peakMemoryBytes()};
}

function readInputs(names, files) {
  const feeds = {};
  for (const name of names) {
    if (typeof files[name] !== 'string') throw new Failure('invalid_input', `input ${name} is missing`);
    const {type, dims, data} = readNpy(files[name]);
    feeds[name] = new ort.Tensor(type, data, dims);
  }
  const unknown = Object.keys(files).find((name) => !names.includes(name));
  if (unknown !== undefined) throw new Failure('invalid_input', `the model has no input ${unknown}`);
  return feeds;
}

async function compute({inputs, folder}) {
  need(inputs !== null && typeof inputs === 'object' && !Array.isArray(inputs), 'inputs is an object');
  need(typeof folder === 'string', 'folder is a path');
  const {session} = theLoaded();
  const results = await session.run(readInputs(session.inputNames, inputs));
  const outputs = session.outputNames.map((name, i) => {
    const file = `output_${i}.npy`;
    writeNpy(path.join(folder, file), results[name]);
    return {name, file};
  });
  return {outputs};
}

function info() {
  return {protocol: PROTOCOL, name: 'onnxruntime', version: VERSION, build: `onnxruntime-node ${VERSION} cpu`};
}

const OPS = new Map(Object.entries({info, load, run, compute, unload}));

async function answer(line) {
  let id = null;
  try {
    need(!line.tooLong, `it is longer than ${MOST_REQUEST_BYTES} bytes`);
    const request = JSON.parse(line.text);
    need(request !== null && isWhole(request.id, -(2 ** 53), 2 ** 53), 'it is no object with a whole number as id');
    id = request.id;
    const op = OPS.get(request.op);
    if (!op) throw new Failure('unsupported', `there is no op '${String(request.op).slice(0, 100)}'`);
    return {id, ok: true, ...await op(request)};
  } catch (error) {
    const code = error instanceof Failure ? error.code : 'invalid_input';
    return {id, ok: false, error: {code, message: oneLine(error)}};
  }
}

for await (const line of linesOf(process.stdin, MOST_REQUEST_BYTES)) {
  process.stdout.write(JSON.stringify(await answer(line)) + '\n');
}
