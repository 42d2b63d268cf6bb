import type { SqliteValue } from "../sqliteDriver.ts";

/** Decodes the little-endian arrays of a trace. Blobs may begin at any address, so the bytes are copied first. */

const hostIsLittleEndian = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

/** The bytes of a blob. Throws RangeError when the value is none. */
export function bytesOf(value: SqliteValue | undefined): Uint8Array {
  if (value instanceof Uint8Array) return value;
  if (typeof value === "string") return new TextEncoder().encode(value);
  throw new RangeError("a blob is missing");
}

/** u32 array; `expected` items, if given. */
export function readUints(value: SqliteValue | undefined, name: string, expected?: number): Uint32Array {
  return new Uint32Array(words(value, name, expected));
}

/** f32 array; `expected` items, if given. */
export function readFloats(value: SqliteValue | undefined, name: string, expected?: number): Float32Array {
  return new Float32Array(words(value, name, expected));
}

function words(value: SqliteValue | undefined, name: string, expected: number | undefined): ArrayBuffer {
  const bytes = bytesOf(value);
  if (bytes.length % 4 !== 0 || (expected !== undefined && bytes.length !== 4 * expected)) {
    throw new RangeError(`${name} has ${bytes.length} bytes${expected === undefined ? "" : ` instead of ${4 * expected}`}`);
  }
  const copy = new Uint8Array(bytes.length);
  copy.set(bytes);
  if (!hostIsLittleEndian) for (let at = 0; at < copy.length; at += 4) copy.subarray(at, at + 4).reverse();
  return copy.buffer;
}
