// Reproducible values for the inputs of a model.
import {arrayOf} from './npy.mjs';
import {Failure} from './failure.mjs';

/** A generator of whole numbers of 32 bits. */
function generator(seed) {
  let state = seed;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let z = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
    z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
    return (z ^ (z >>> 16)) >>> 0;
  };
}

/** The bits of a float16, for numbers that are zero or k/512 with |k| up to 512. */
function halfBits(value) {
  if (value === 0) return 0;
  const bits = new Uint32Array(new Float32Array([value]).buffer)[0];
  return ((bits >>> 16) & 0x8000) | ((((bits >>> 23) & 0xff) - 112) << 10) | ((bits >>> 13) & 0x3ff);
}

// How each type makes a value from 32 random bits. Wide whole numbers are often indices, for which 0 and 1 are
// valid nearly everywhere.
const VALUE = {
  float32: (bits) => (bits >>> 8) / 2 ** 23 - 1,
  float64: (bits) => (bits >>> 8) / 2 ** 23 - 1,
  float16: (bits) => (bits >>> 22) / 512 - 1,
  int8: (bits) => (bits >>> 24) - 128,
  uint8: (bits) => bits >>> 24,
  int64: (bits) => BigInt(bits >>> 31),
  uint64: (bits) => BigInt(bits >>> 31),
};
const zeroOrOne = (bits) => bits >>> 31;

function shapeOf(input) {
  return input.shape.map((extent, i) => {
    if (typeof extent === 'number') return extent;
    if (i === 0) return 1;
    throw new Failure('unsupported', `input ${input.name}: dimension ${i} (${extent || 'without a name'}) is open; only the first may be`);
  });
}

/** The values of input number `position` as {type, dims, data}. */
export function randomInput(input, position) {
  const array = input.isTensor ? arrayOf(input.type) : undefined;
  if (!array) throw new Failure('unsupported', `input ${input.name}: it is no tensor of numbers`);
  const dims = shapeOf(input);
  const count = dims.reduce((a, b) => a * b, 1);
  const next = generator(position + 1);
  const value = VALUE[input.type] ?? zeroOrOne;
  const data = new array(count);
  const asBits = input.type === 'float16' && array === Uint16Array;
  for (let i = 0; i < count; ++i) data[i] = asBits ? halfBits(value(next())) : value(next());
  return {type: input.type, dims, data};
}
