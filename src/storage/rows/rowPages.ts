import { rowFormats, type RowFormat } from "../../domain/rows/rowFormat.ts";

/** Rows a page holds at most. Pages, not rows, are what is stored: one row of SQL for 4096 rows of data. */
export const pageRows = 4096;

/** Format code of a row that is no JSON. */
export const unreadableCode = 255;

/** Columns of up to `pageRows` consecutive rows. */
export interface RowPage {
  rows: number;
  /** Physical line on which each row begins. */
  lines: Uint32Array<ArrayBuffer>;
  /** Line on which it ends, where that can differ (JSON arrays). */
  lastLines: Uint32Array<ArrayBuffer> | null;
  offsets: Float64Array<ArrayBuffer>;
  lengths: Uint32Array<ArrayBuffer>;
  /** Position in `rowFormats`, or `unreadableCode`. */
  formats: Uint8Array<ArrayBuffer>;
  /** 32 bytes a row. */
  hashes: Uint8Array<ArrayBuffer>;
  /** 32 bytes prompt hash and 32 bytes answer hash a row, zeros for none; null where they were not asked for. */
  turns: Uint8Array<ArrayBuffer> | null;
}

/** Counts over rows, added up while pages are made. */
export interface RowTotals {
  /** All rows, also those that are no JSON. */
  rows: number;
  lines: number;
  unreadable: number;
  formats: Record<RowFormat, number>;
}

export function emptyTotals(): RowTotals {
  return { rows: 0, lines: 0, unreadable: 0, formats: Object.fromEntries(rowFormats.map((format) => [format, 0])) as Record<RowFormat, number> };
}

/** Adds `more` to `totals`. */
export function addTotals(totals: RowTotals, more: RowTotals): void {
  totals.rows += more.rows;
  totals.lines += more.lines;
  totals.unreadable += more.unreadable;
  for (const format of rowFormats) totals.formats[format] += more.formats[format];
}

export interface PageBuilderOptions {
  turns: boolean;
  lastLines: boolean;
}

/** Fills pages row by row. Hashes are given as 32 characters of latin1, the cheapest form Node's crypto has. */
export class PageBuilder {
  private readonly options: PageBuilderOptions;
  private page: RowPage;
  private hashes: Buffer;
  private turns: Buffer | null;
  private readonly full: RowPage[] = [];
  private readonly counts = new Uint32Array(256);
  private rows = 0;

  constructor(options: PageBuilderOptions) {
    this.options = options;
    this.page = emptyPage(options);
    this.hashes = bufferOf(this.page.hashes);
    this.turns = this.page.turns === null ? null : bufferOf(this.page.turns);
  }

  add(line: number, offset: number, length: number, format: number, hash: string, lastLine = line): void {
    if (this.page.rows === pageRows) this.next();
    const { page } = this;
    const i = page.rows++;
    page.lines[i] = line;
    page.offsets[i] = offset;
    page.lengths[i] = length;
    page.formats[i] = format;
    if (page.lastLines !== null) page.lastLines[i] = lastLine;
    if (hash !== "") this.hashes.write(hash, i * 32, "latin1");
    this.counts[format] = (this.counts[format] as number) + 1;
    this.rows++;
  }

  /** Hashes of the prompt and the answer of the row added last. */
  addTurns(prompt: string, answer: string): void {
    const at = (this.page.rows - 1) * 64;
    if (prompt !== "") this.turns?.write(prompt, at, "latin1");
    if (answer !== "") this.turns?.write(answer, at + 32, "latin1");
  }

  /** Hands out the pages that are full, and with `all` also the one being filled. */
  take(all: boolean): RowPage[] {
    if (all && this.page.rows > 0) this.next();
    return this.full.splice(0);
  }

  /** What was counted since the last call. */
  takeTotals(lines: number): RowTotals {
    const totals = emptyTotals();
    totals.rows = this.rows;
    totals.lines = lines;
    totals.unreadable = this.counts[unreadableCode] as number;
    rowFormats.forEach((format, code) => (totals.formats[format] = this.counts[code] as number));
    this.counts.fill(0);
    this.rows = 0;
    return totals;
  }

  private next(): void {
    this.full.push(trimPage(this.page));
    this.page = emptyPage(this.options);
    this.hashes = bufferOf(this.page.hashes);
    this.turns = this.page.turns === null ? null : bufferOf(this.page.turns);
  }
}

/** The buffers of a page, to move them to another thread without a copy. */
export function buffersOf(page: RowPage): ArrayBuffer[] {
  const arrays = [page.lines, page.offsets, page.lengths, page.formats, page.hashes, page.lastLines, page.turns];
  return arrays.flatMap((array) => (array === null ? [] : [array.buffer]));
}

/** Hex form of the hash at `at`; null for a hash of zeros, which stands for none. */
export function hexAt(bytes: Uint8Array, at: number): string | null {
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset + at, 32).toString("hex");
  return hex === noHash ? null : hex;
}

const noHash = "0".repeat(64);

function emptyPage({ turns, lastLines }: PageBuilderOptions): RowPage {
  return {
    rows: 0,
    lines: new Uint32Array(pageRows),
    lastLines: lastLines ? new Uint32Array(pageRows) : null,
    offsets: new Float64Array(pageRows),
    lengths: new Uint32Array(pageRows),
    formats: new Uint8Array(pageRows),
    hashes: new Uint8Array(pageRows * 32),
    turns: turns ? new Uint8Array(pageRows * 64) : null,
  };
}

function trimPage(page: RowPage): RowPage {
  const n = page.rows;
  if (n === pageRows) return page;
  return {
    rows: n,
    lines: page.lines.slice(0, n),
    lastLines: page.lastLines?.slice(0, n) ?? null,
    offsets: page.offsets.slice(0, n),
    lengths: page.lengths.slice(0, n),
    formats: page.formats.slice(0, n),
    hashes: page.hashes.slice(0, n * 32),
    turns: page.turns?.slice(0, n * 64) ?? null,
  };
}

function bufferOf(bytes: Uint8Array<ArrayBuffer>): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}
