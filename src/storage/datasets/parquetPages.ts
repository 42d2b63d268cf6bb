import { levelWidth } from "./parquetLevels.ts";
import { ShortRead, readThrift, type ThriftFields } from "./thriftFields.ts";

/** As in a page index: one or more pages that begin with the beginning of a row. */
export interface PageLocation {
  offset: bigint;
  compressed_page_size: number;
  first_row_index: bigint;
}

/** What must be known of a column chunk. */
export interface PagedColumn {
  /** Bytes of the file in which its pages are. */
  start: number;
  end: number;
  /** How many lists its values are inside of. */
  repetition: number;
  unpack(bytes: Uint8Array, length: number): Uint8Array;
}

export type Slice = (from: number, to: number) => ArrayBufferLike | Promise<ArrayBufferLike>;

export const pageKinds = { data: 0, dictionary: 2, dataV2: 3 } as const;
/** Bytes read for a page header; it is longer where its statistics hold long values. */
const headerBytes = 512;
const longestHeader = 16 * 1024 * 1024;

/**
 * Where the pages of a column chunk are, for files without a page index: without it a reader must unpack whole columns of a
 * row group for every look. The headers are gone through once, as far as rows are asked for. Pages of lists say in their
 * repetition levels where rows begin, so they are unpacked for that, one at a time.
 */
export class ColumnPages {
  readonly locations: PageLocation[] = [];
  /** Unpacked bytes per location. */
  readonly unpacked: number[] = [];
  private readonly slice: Slice;
  private readonly column: PagedColumn;
  private at: number;
  /** Rows that begin in the pages gone through. */
  private rows = 0;
  private walking: Promise<void> = Promise.resolve();

  constructor(slice: Slice, column: PagedColumn) {
    this.slice = slice;
    this.column = column;
    this.at = column.start;
  }

  /** Goes on until the pages up to `row` of the row group, without it, are known. One walk at a time. */
  upTo(row: number): Promise<void> {
    const walk = this.walking.then(() => this.walk(row));
    this.walking = walk.catch(() => {});
    return walk;
  }

  /** Unpacked bytes of the pages that these rows are in. */
  bytesOf(from: number, to: number): number {
    return this.locations.reduce((sum, { first_row_index: first }, place) => {
      const next = this.locations[place + 1];
      return Number(first) < to && (next === undefined || Number(next.first_row_index) > from) ? sum + (this.unpacked[place] as number) : sum;
    }, 0);
  }

  private async walk(row: number): Promise<void> {
    // The page in which the last row begins may go on in the next one: known is what lies before the last location.
    while (this.at < this.column.end && Number(this.locations.at(-1)?.first_row_index ?? 0n) < row) await this.step();
  }

  private async step(): Promise<void> {
    const { fields, end: body } = await readHeader(this.slice, this.at, this.column.end);
    const [kind, unpacked, packed] = [numberIn(fields, 1), numberIn(fields, 2), numberIn(fields, 3)];
    const after = body + packed;
    if (kind === pageKinds.data || kind === pageKinds.dataV2) {
      const { rows, begins } = await this.rowsOf(fields, kind, body, packed, unpacked);
      const last = this.locations.at(-1);
      if (!begins && last !== undefined) {
        last.compressed_page_size = after - Number(last.offset);
        this.unpacked[this.unpacked.length - 1] = (this.unpacked.at(-1) ?? 0) + unpacked;
      } else {
        this.locations.push({ offset: BigInt(this.at), compressed_page_size: after - this.at, first_row_index: BigInt(this.rows) });
        this.unpacked.push(unpacked);
      }
      this.rows += rows;
    } else if (kind !== pageKinds.dictionary && this.locations.length > 0) {
      // A page of another kind (an index) belongs to the pages before it.
      const last = this.locations.at(-1) as PageLocation;
      last.compressed_page_size = after - Number(last.offset);
    }
    this.at = after;
  }

  /** How many rows begin in a page, and whether the first of its values begins one. */
  private async rowsOf(fields: ThriftFields, kind: number, body: number, packed: number, unpacked: number): Promise<{ rows: number; begins: boolean }> {
    if (kind === pageKinds.dataV2) return { rows: numberIn(fields[8], 3), begins: true };
    const values = numberIn(fields[5], 1);
    if (this.column.repetition === 0) return { rows: values, begins: true };
    const bytes = this.column.unpack(new Uint8Array(await this.slice(body, body + packed)), unpacked);
    return rowStarts(bytes, values, levelWidth(this.column.repetition));
  }
}

/** The header of the page at a place of the file, and where it ends. */
export async function readHeader(slice: Slice, at: number, limit: number): Promise<{ fields: ThriftFields; end: number }> {
  for (let length = headerBytes; ; length *= 8) {
    const bytes = new Uint8Array(await slice(at, Math.min(limit, at + length)));
    try {
      const { fields, end } = readThrift(bytes);
      return { fields, end: at + end };
    } catch (error) {
      if (!(error instanceof ShortRead) || at + length >= limit || length > longestHeader) throw error;
    }
  }
}

export function numberIn(fields: ThriftFields[number], field: number): number {
  const value = typeof fields === "object" ? fields[field] : undefined;
  if (typeof value !== "number") throw new Error("a page header is damaged");
  return value;
}

/** Repetition levels of a page, in the hybrid of runs and packed bits: 0 begins a row. */
export function rowStarts(bytes: Uint8Array, values: number, width: number): { rows: number; begins: boolean } {
  let [at, seen, rows, begins] = [4, 0, 0, false];
  const take = (level: number, count: number): void => {
    if (seen === 0) begins = level === 0;
    if (level === 0) rows += Math.min(count, values - seen);
    seen += count;
  };
  const byte = (): number => {
    const value = bytes[at++];
    if (value === undefined) throw new Error("the levels of a page are damaged");
    return value;
  };
  while (seen < values) {
    let [head, scale] = [0, 1];
    for (let part = 128; part >= 128; scale *= 128) head += ((part = byte()) & 0x7f) * scale;
    if (head % 2 === 0) {
      let level = 0;
      for (let i = 0; i < Math.ceil(width / 8); i++) level += byte() * 256 ** i;
      if (head === 0) throw new Error("the levels of a page are damaged");
      take(level, head / 2);
      continue;
    }
    let [bits, held] = [0, 0];
    for (let i = 0; i < ((head - 1) / 2) * 8 && seen < values; i++) {
      for (; held < width; held += 8) bits |= byte() << held;
      take(bits & ((1 << width) - 1), 1);
      [bits, held] = [bits >> width, held - width];
    }
  }
  return { rows, begins };
}
