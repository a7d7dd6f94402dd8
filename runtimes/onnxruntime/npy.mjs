// Tensors as files of numpy (.npy, formats 1.0 and 2.0, little-endian, C order).
import fs from 'node:fs';

// Type in the file -> ONNX Runtime's name of it and the array that holds the values.
const TYPES = new Map([
  ['<f2', {name: 'float16', array: globalThis.Float16Array ?? Uint16Array}],
  ['<f4', {name: 'float32', array: Float32Array}],
  ['<f8', {name: 'float64', array: Float64Array}],
  ['|i1', {name: 'int8', array: Int8Array}],
  ['|u1', {name: 'uint8', array: Uint8Array}],
  ['<i2', {name: 'int16', array: Int16Array}],
  ['<u2', {name: 'uint16', array: Uint16Array}],
  ['<i4', {name: 'int32', array: Int32Array}],
  ['<u4', {name: 'uint32', array: Uint32Array}],
  ['<i8', {name: 'int64', array: BigInt64Array}],
  ['<u8', {name: 'uint64', array: BigUint64Array}],
  ['|b1', {name: 'bool', array: Uint8Array}],
]);

const HEADER = /^\{'descr': '([^']+)', 'fortran_order': (True|False), 'shape': \(([\d, ]*)\), *\}\s*$/;

/** The array type that holds the values of a type, by ONNX Runtime's name of it. */
export function arrayOf(typeName) {
  return [...TYPES.values()].find((type) => type.name === typeName)?.array;
}

/** {type, dims, data} of a file. Throws an Error that names it. */
export function readNpy(file) {
  const bytes = fs.readFileSync(file);
  const major = bytes[6];
  if (bytes.length < 12 || bytes.toString('latin1', 0, 6) !== '\x93NUMPY' || (major !== 1 && major !== 2)) {
    throw new Error(`${file}: it is no .npy file of format 1.0 or 2.0`);
  }
  const begin = major === 1 ? 10 : 12;
  const length = major === 1 ? bytes.readUInt16LE(8) : bytes.readUInt32LE(8);
  const header = HEADER.exec(bytes.toString('latin1', begin, begin + length));
  const type = header && TYPES.get(header[1]);
  if (!type || header[2] === 'True') throw new Error(`${file}: its header is broken or of a type that is not supported`);

  const dims = header[3].split(',').filter((text) => text.trim() !== '').map(Number);
  const count = dims.reduce((a, b) => a * b, 1);
  // A copy, as arrays of numbers have to begin at a multiple of their size.
  const values = Uint8Array.prototype.slice.call(bytes, begin + length);
  if (values.length !== count * type.array.BYTES_PER_ELEMENT) {
    throw new Error(`${file}: it holds ${values.length} bytes of values, not those of ${count} elements`);
  }
  return {type: type.name, dims, data: new type.array(values.buffer)};
}

/** Writes a tensor of ONNX Runtime. */
export function writeNpy(file, tensor) {
  const descr = [...TYPES.keys()].find((key) => TYPES.get(key).name === tensor.type);
  if (!descr) throw new Error(`${file}: .npy files cannot hold ${tensor.type}`);
  const shape = `(${tensor.dims.join(', ')}${tensor.dims.length === 1 ? ',' : ''})`;
  const dictionary = `{'descr': '${descr}', 'fortran_order': False, 'shape': ${shape}, }`;
  const total = Math.ceil((10 + dictionary.length + 1) / 64) * 64;
  const start = Buffer.from('\x93NUMPY\x01\x00\x00\x00', 'latin1');
  start.writeUInt16LE(total - 10, 8);
  const {buffer, byteOffset, byteLength} = tensor.data;
  fs.writeFileSync(file, Buffer.concat([
    start, Buffer.from(dictionary.padEnd(total - 11) + '\n', 'latin1'), Buffer.from(buffer, byteOffset, byteLength),
  ]));
}
