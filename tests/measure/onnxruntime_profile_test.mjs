// What runtimes/onnxruntime makes of ONNX Runtime's profiles.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import test from 'node:test';
import {operatorTimes} from '../../runtimes/onnxruntime/profile.mjs';

/** A profile of runs, each a list of [name, type, microseconds], as ONNX Runtime writes it. */
function profileOf(runs) {
  const events = [];
  let ts = 0;
  for (const run of runs) {
    const nodes = run.map(([name, type, dur], i) => {
      const args = {op_name: type, provider: 'CPUExecutionProvider', node_index: String(i)};
      return {cat: 'Node', ph: 'X', name: `${name}_kernel_time`, ts: (ts += 10), dur, args};
    });
    events.push({cat: 'Session', ph: 'X', name: 'model_run', ts: nodes[0].ts - 5, dur: 1000}, ...nodes);
    ts += 1000;
  }
  return events;
}

function timesOf(runs, coldRuns, countedRuns = runs.length - coldRuns) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'fleetfit-profile-test-'));
  try {
    const file = path.join(folder, 'profile.json');
    fs.writeFileSync(file, JSON.stringify(profileOf(runs)));
    const operators = operatorTimes(file, coldRuns, countedRuns);
    return Object.fromEntries(operators.map(({name, ms}) => [name, Math.round(1e6 * ms) / 1e3]));
  } finally {
    fs.rmSync(folder, {recursive: true});
  }
}

test('the mean over all runs but the cold ones', () => {
  const run = (us) => [['conv', 'Conv', us]];
  assert.deepEqual(timesOf([run(900), run(100), run(110)], 1), {conv: 105});
});

test('what profiling costs, as operators show that do nothing else, is taken off', () => {
  const run = [['conv', 'Conv', 100], ['relu', 'Relu', 5], ['copy', 'Reshape', 30], ['flatten', 'Flatten', 4]];
  assert.deepEqual(timesOf([run], 0), {conv: 96, relu: 1, copy: 26, flatten: 0.4});
  const disturbed = run.map(([name, type, us]) => [name, type, name === 'flatten' ? 94 : us]);
  assert.deepEqual(timesOf([run, disturbed, run], 0), {conv: 96, relu: 1, copy: 26, flatten: 30});
});

test('operators of its own are counted, blocks of channels have no name of their own', () => {
  const run = [['ReorderInput_token_7', 'ReorderInput', 9], ['conv_nchwc', 'Conv', 50], ['ReorderInput_token_8', 'ReorderInput', 8]];
  assert.deepEqual(timesOf([run], 0), {ReorderInput_1: 9, conv: 50, ReorderInput_2: 8});
});

test('a profile that lacks runs is refused', () => {
  assert.throws(() => timesOf([[['conv', 'Conv', 1]]], 0, 2), /holds 1 of 2 runs/);
});
