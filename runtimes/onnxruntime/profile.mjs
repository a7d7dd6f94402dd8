// What ONNX Runtime's profile says about operators.
import fs from 'node:fs';
import {Failure} from './failure.mjs';

const SUFFIX = '_kernel_time';
const RENAMING = new Set(['Flatten', 'Identity', 'Reshape', 'Squeeze', 'Unsqueeze']);
// What is left at least: an operator that ran took some time.
const LEAST_SHARE = 0.1;

/**
 * Mean times of the operators in a profile of `coldRuns` for warming up and then `runs` others, in the order of execution:
 * [{name, type, kernel, ms}]. What profiling itself costs is taken off.
 */
export function operatorTimes(file, coldRuns, runs) {
  const events = JSON.parse(fs.readFileSync(file, 'utf8')).filter((event) => event.ph === 'X');
  const modelRuns = events.filter((event) => event.name === 'model_run').sort((a, b) => a.ts - b.ts);
  if (modelRuns.length !== coldRuns + runs) {
    throw new Failure('invalid_input', `ONNX Runtime's profile holds ${modelRuns.length} of ${coldRuns + runs} runs; ask for fewer`);
  }
  const begin = modelRuns[coldRuns].ts;
  const operators = new Map();
  for (const event of events.sort((a, b) => a.ts - b.ts)) {
    if (event.cat !== 'Node' || event.ts < begin || !event.name.endsWith(SUFFIX)) continue;
    // Nodes whose channels ONNX Runtime laid out in blocks get this suffix.
    const name = event.name.slice(0, -SUFFIX.length).replace(/_nchwc$/, '');
    const {op_name: type, provider, node_index: index} = event.args;
    const key = `${index} ${name}`;
    if (!operators.has(key)) operators.set(key, {name, type, kernel: `${type}/${provider}`, times: []});
    operators.get(key).times.push(event.dur / 1000);
  }
  const cost = costOfProfiling([...operators.values()]);
  return withFixedNames([...operators.values()].map(({times, ...operator}) => {
    const mean = times.reduce((sum, ms) => sum + ms, 0) / runs;
    return {...operator, ms: Math.max(mean - cost, LEAST_SHARE * mean)};
  }));
}

/**
 * ONNX Runtime puts its notes about an operator together before it stops the clock. Operators that give a tensor another shape
 * do next to nothing else: the shortest time that one of them took tells how long that takes in this network.
 */
function costOfProfiling(operators) {
  const costs = operators.filter(({type}) => RENAMING.has(type)).flatMap(({times}) => times);
  return costs.length > 0 ? costs.reduce((least, ms) => Math.min(least, ms)) : 0;  // too many to be arguments
}

/** Operators that ONNX Runtime puts in itself are named again in each session: counts them in their order instead. */
function withFixedNames(operators) {
  const counts = new Map();
  return operators.map((operator) => {
    if (!operator.name.match(/^Reorder(Input|Output)(_token_\d+)?$/)) return operator;
    const count = (counts.get(operator.type) ?? 0) + 1;
    counts.set(operator.type, count);
    return {...operator, name: `${operator.type}_${count}`};
  });
}
