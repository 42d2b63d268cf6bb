/** Finds the first byte at or after `at` that ends a run of plain bytes of a JSON string. */
export type PlainFinder = (at: number) => number;

/** Moves bytes inside the same memory, as `copyWithin` does, with less ado for short runs. */
export type ByteMover = (to: number, from: number, length: number) => void;

export interface FastBytes {
  bytes: Uint8Array<ArrayBuffer>;
  find: PlainFinder | null;
  move: ByteMover;
}

/** What of WebAssembly is used here; the DOM's types are not available in this room. */
interface WasmApi {
  Memory: new (options: { initial: number }) => { buffer: ArrayBuffer };
  Module: new (code: Uint8Array) => object;
  Instance: new (module: object, imports: object) => { exports: Record<string, unknown> };
}

/**
 * Bytes together with two fast functions over them. The finder: inside a JSON string it skips sixteen plain bytes at a time, and escapes that are
 * canonical as they stand (\" \\ \b \f \n \t), and stops at the closing quote, a control character or any other escape.
 * It is null where WebAssembly with SIMD is not available; the scanner then uses its own loop.
 */
export function fastBytes(size: number): FastBytes {
  const wasm = (globalThis as { WebAssembly?: WasmApi }).WebAssembly;
  try {
    if (wasm === undefined) return slowBytes(size);
    module ??= new wasm.Module(moduleBytes());
    const memory = new wasm.Memory({ initial: Math.ceil(size / 65536) });
    const { exports } = new wasm.Instance(module, { m: { m: memory } });
    return { bytes: new Uint8Array(memory.buffer), find: exports["f"] as PlainFinder, move: exports["m"] as ByteMover };
  } catch {
    return slowBytes(size);
  }
}

/** The same without WebAssembly. */
export function slowBytes(size: number): FastBytes {
  const bytes = new Uint8Array(size);
  return { bytes, find: null, move: (to, from, length) => void bytes.copyWithin(to, from, from + length) };
}

let module: object | undefined;

const [i32, v128, block, get, set, tee] = [0x7f, 0x7b, 0x40, 0x20, 0x21, 0x22];
const [end, br, ret, loop, when, simd] = [0x0b, 0x0c, 0x0f, 0x03, 0x04, 0xfd];
const [at, mask, chunk] = [0, 1, 2];
const splat = (byte: number): number[] => [simd, 0x0c, ...new Array<number>(16).fill(byte)];
const constant = (value: number): number[] => [0x41, ...signed(BigInt(value))];
/** Bits (letter − 64) of the letters that may follow a backslash. */
const keptLetters = [..."\\bfnt"].reduce((bits, letter) => bits | (1n << BigInt(letter.charCodeAt(0) - 64)), 0n);
const add = 0x6a;

/** The finder in WebAssembly; its text form stands beside it. */
const finder = [
  ...[2, 1, i32, 1, v128], //                                 (local $mask i32) (local $chunk v128)
  ...[loop, block], //                                        loop
  ...[get, at, simd, 0x00, 0, 0, set, chunk], //                $chunk = v128.load($at)
  ...[get, chunk, ...splat(34), simd, 0x23], //                 i8x16.eq($chunk, '"')
  ...[get, chunk, ...splat(92), simd, 0x23, simd, 0x50], //     v128.or(…, i8x16.eq($chunk, '\'))
  ...[get, chunk, ...splat(32), simd, 0x26, simd, 0x50], //     v128.or(…, i8x16.lt_u($chunk, 32))
  ...[simd, 0x64, tee, mask, 0x45], //                          $mask = i8x16.bitmask(…); i32.eqz($mask)
  ...[when, block], //                                          if  ;; sixteen plain bytes
  ...[get, at, ...constant(16), add, set, at, br, 1], //          $at += 16; continue
  end,
  ...[get, at, get, mask, 0x68, add, set, at], //               $at += i32.ctz($mask)
  ...[get, at, 0x2d, 0, 0, ...constant(92), 0x47], //           if load8_u($at) != '\'
  ...[when, block, get, at, ret, end], //                         return $at
  ...[get, at, 0x2d, 0, 1, tee, mask], //                       $mask = load8_u($at + 1)
  ...[...constant(34), 0x46, when, block], //                   if $mask == '"'
  ...[get, at, ...constant(2), add, set, at, br, 1, end], //      $at += 2; continue
  ...[get, mask, ...constant(64), 0x6b, ...constant(64), 0x49], // if ($mask - 64) <u 64
  ...[when, block, 0x42, ...signed(keptLetters), get, mask], //   if (keptLetters >> ($mask - 64)) & 1
  ...[...constant(64), 0x6b, 0xad, 0x88, 0x42, 1, 0x83, 0xa7],
  ...[when, block, get, at, ...constant(2), add, set, at, br, 2, end, end], // $at += 2; continue
  ...[get, at, ret], //                                         return $at
  ...[end, 0x00, end], //                                     end; unreachable
];

/** (memory.copy (local.get 0) (local.get 1) (local.get 2)) */
const mover = [0, get, 0, get, 1, get, 2, 0xfc, 0x0a, 0, 0, end];

function moduleBytes(): Uint8Array {
  const section = (id: number, body: number[]): number[] => [id, ...unsigned(body.length), ...body];
  return Uint8Array.from([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [2, 0x60, 1, i32, 1, i32, 0x60, 3, i32, i32, i32, 0]), // (type (func (param i32) (result i32))) (type (func (param i32 i32 i32)))
    ...section(2, [1, 1, 0x6d, 1, 0x6d, 2, 0, 1]), //         (import "m" "m" (memory 1))
    ...section(3, [2, 0, 1]),
    ...section(7, [2, 1, 0x66, 0, 0, 1, 0x6d, 0, 1]), //      (export "f" (func 0)) (export "m" (func 1))
    ...section(10, [2, ...unsigned(finder.length), ...finder, ...unsigned(mover.length), ...mover]),
  ]);
}

function unsigned(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...unsigned(value >> 7)];
}

function signed(value: bigint): number[] {
  const low = Number(value & 127n);
  const rest = value >> 7n;
  const done = (rest === 0n && (low & 64) === 0) || (rest === -1n && (low & 64) !== 0);
  return done ? [low] : [low | 128, ...signed(rest)];
}
