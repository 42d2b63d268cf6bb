/** Parquet's hybrid of runs and packed bits, in which levels and places of a dictionary are written. */

const damaged = "the levels of a page are damaged";

/** Reads as many values as `into` has room for. */
export function readHybrid(bytes: Uint8Array, from: number, width: number, into: Uint8Array | Uint32Array): void {
  let [at, seen] = [from, 0];
  const byte = (): number => {
    const value = bytes[at++];
    if (value === undefined) throw new Error(damaged);
    return value;
  };
  while (seen < into.length) {
    let [head, scale] = [0, 1];
    for (let part = 128; part >= 128; scale *= 128) head += ((part = byte()) & 0x7f) * scale;
    if (head % 2 === 0) {
      let value = 0;
      for (let i = 0; i < Math.ceil(width / 8); i++) value += byte() * 256 ** i;
      if (head === 0) throw new Error(damaged);
      const end = Math.min(into.length, seen + head / 2);
      into.fill(value, seen, end);
      seen = end;
      continue;
    }
    const end = Math.min(into.length, seen + ((head - 1) / 2) * 8);
    const after = at + ((head - 1) / 2) * width;
    // Not with `<<`: 25 bits and more do not fit beside a byte.
    let [bits, held] = [0, 0];
    const mask = 2 ** width;
    while (seen < end) {
      for (; held < width; held += 8) bits += byte() * 2 ** held;
      into[seen++] = bits % mask;
      bits = Math.floor(bits / mask);
      held -= width;
    }
    at = after;
  }
}

/** The values as one packed run, after their length in four bytes, as a data page begins with. */
export function packedLevels(values: readonly Uint8Array[], width: number): Buffer {
  const count = values.reduce((sum, { length }) => sum + length, 0);
  const groups = Math.ceil(count / 8);
  const head = varint(groups * 2 + 1);
  const packed = Buffer.alloc(4 + head.length + groups * width);
  packed.writeUInt32LE(packed.length - 4, 0);
  packed.set(head, 4);
  let bit = (4 + head.length) * 8;
  for (const part of values) {
    for (const value of part) {
      for (let i = 0; i < width; i++, bit++) if ((value >> i) & 1) packed[bit >> 3] = (packed[bit >> 3] as number) | (1 << (bit & 7));
    }
  }
  return packed;
}

/** A number as Thrift and the hybrid write it: seven bits a byte. */
export function varint(value: number): number[] {
  const bytes: number[] = [];
  for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
  return [...bytes, value];
}

/** Bits that a level needs. */
export function levelWidth(most: number): number {
  return Math.ceil(Math.log2(most + 1));
}
