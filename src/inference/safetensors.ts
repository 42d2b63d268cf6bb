import { open, stat, type FileHandle } from "node:fs/promises";
import { basename } from "node:path";
import { AppError } from "../util/errors.ts";

/** One tensor of a file; `begin` and `end` are offsets in the file. */
export interface TensorPlace {
  path: string;
  dtype: "F32" | "F16" | "BF16";
  shape: number[];
  begin: number;
  end: number;
}

const sizes = { F32: 4, F16: 2, BF16: 2 } as const;
/** The limit of the safetensors library. */
const maxHeader = 100_000_000;
const wait = "It may still be being written: wait until it is complete.";

/** The tensors of a safetensors file, every field of the header checked. AppError("bad-input") says what is wrong. */
export async function readHeader(path: string): Promise<Map<string, TensorPlace>> {
  const name = basename(path);
  const { size } = await stat(path);
  const file = await open(path);
  try {
    if (size < 8) throw refuse(`${name} is shorter (${size} bytes) than the length field of a safetensors file. ${wait}`);
    const length = Number((await readAt(file, name, 0, 8)).readBigUInt64LE());
    if (length > maxHeader) throw refuse(`${name} is no safetensors file: it claims a header of ${length} bytes.`);
    if (8 + length > size) throw refuse(`${name} has ${size} bytes, fewer than its header needs (${8 + length}). ${wait}`);
    return checked(path, parse(name, (await readAt(file, name, 8, length)).toString("utf8")), 8 + length, size);
  } finally {
    await file.close();
  }
}

/** The values of a tensor as float32. */
export async function readTensor(file: FileHandle, place: TensorPlace): Promise<Float32Array> {
  const bytes = await readAt(file, basename(place.path), place.begin, place.end - place.begin);
  if (place.dtype === "F32") return new Float32Array(bytes.buffer, 0, bytes.length / 4);
  const halves = new Uint16Array(bytes.buffer, 0, bytes.length / 2);
  return place.dtype === "BF16" ? fromBfloat16(halves) : fromFloat16(halves);
}

export function countOf({ shape }: Pick<TensorPlace, "shape">): number {
  return shape.reduce((product, size) => product * size, 1);
}

function parse(name: string, text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // The sentence below says it.
  }
  throw refuse(`${name} has a header that is no JSON object.`);
}

/** Types, sizes and offsets; the tensors must fill the file without gap or overlap. */
function checked(path: string, header: Record<string, unknown>, base: number, size: number): Map<string, TensorPlace> {
  const name = basename(path);
  const tensors = new Map<string, TensorPlace>();
  for (const [key, value] of Object.entries(header)) {
    if (key === "__metadata__") continue;
    const { dtype, shape, data_offsets: offsets } = (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>;
    if (dtype !== "F32" && dtype !== "F16" && dtype !== "BF16") throw refuse(`${name}: the tensor ${key} has the type ${String(dtype)}; live scoring reads F32, F16 and BF16.`);
    if (!areSizes(shape) || !areSizes(offsets) || offsets.length !== 2) throw refuse(`${name}: the shape or the offsets of the tensor ${key} are not lists of whole numbers.`);
    const [begin, end] = offsets as [number, number];
    const place: TensorPlace = { path, dtype, shape, begin: base + begin, end: base + end };
    if (countOf(place) * sizes[dtype] !== end - begin) throw refuse(`${name}: the tensor ${key} of shape [${shape.join(", ")}] needs ${countOf(place) * sizes[dtype]} bytes and has ${end - begin}.`);
    tensors.set(key, place);
  }
  let at = base;
  for (const [key, { begin, end }] of [...tensors].sort(([, a], [, b]) => a.begin - b.begin || a.end - b.end)) {
    if (begin !== at) throw refuse(`${name}: the tensor ${key} begins at byte ${begin} and not at ${at}, where the one before it ends.`);
    at = end;
  }
  if (size < at) throw refuse(`${name} has ${size} of ${at} bytes. ${wait}`);
  if (size > at) throw refuse(`${name} has ${size} bytes, ${size - at} more than its header describes.`);
  return tensors;
}

function areSizes(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((item) => Number.isSafeInteger(item) && item >= 0);
}

async function readAt(file: FileHandle, name: string, position: number, length: number): Promise<Buffer<ArrayBuffer>> {
  const bytes = Buffer.from(new ArrayBuffer(length));
  for (let done = 0; done < length; ) {
    // One read takes at most 2 GiB.
    const { bytesRead } = await file.read(bytes, done, Math.min(length - done, 1 << 30), position + done);
    if (bytesRead === 0) throw refuse(`${name} became shorter while it was read. ${wait}`);
    done += bytesRead;
  }
  return bytes;
}

function fromBfloat16(halves: Uint16Array): Float32Array {
  const bits = new Uint32Array(halves.length);
  for (let i = 0; i < halves.length; i++) bits[i] = (halves[i] as number) << 16;
  return new Float32Array(bits.buffer);
}

let float16: Float32Array | undefined;

/** Through a table of all 65,536 values: Node 22 has no Float16Array. */
function fromFloat16(halves: Uint16Array): Float32Array {
  float16 ??= Float32Array.from({ length: 65_536 }, (_, half) => {
    const [sign, exponent, fraction] = [half & 0x8000 ? -1 : 1, (half >> 10) & 31, half & 1023];
    if (exponent === 31) return fraction === 0 ? sign * Infinity : NaN;
    return sign * (exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15));
  });
  const values = new Float32Array(halves.length);
  for (let i = 0; i < halves.length; i++) values[i] = float16[halves[i] as number] as number;
  return values;
}

function refuse(message: string): AppError {
  return new AppError("bad-input", message);
}
