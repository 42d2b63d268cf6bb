import { isUtf8 } from "node:buffer";
import { RowScanner } from "../../domain/rows/rowScanner.ts";
import { PageBuilder, type PageBuilderOptions } from "./rowPages.ts";
import { RowHasher } from "./rowHasher.ts";

/** Bytes read at a time. Small enough for the caches, large enough that a read costs nothing. */
export const chunkBytes = 128 * 1024;

/** A row longer than this is not read, only named. */
export const maxRowBytes = 64 * 1024 * 1024;

const lf = 10;
const cr = 13;

/**
 * Indexes JSON Lines that are read straight into the scanner's bytes: the caller fills `target()`, then calls `advance`.
 * Memory is bounded by the longest row, at most `maxRow` bytes.
 */
export class LineIndexer {
  readonly pages: PageBuilder;
  readonly hasher: RowHasher;
  /** Number of the line, and offset of the byte, that comes next. */
  line: number;
  offset: number;
  private readonly scanner: RowScanner;
  private readonly maxRow: number;
  private view: Buffer;
  private filled = 0;
  /** Bytes of a row that is being skipped because it is too long; -1: none is. */
  private skipped = -1;

  constructor(options: Pick<PageBuilderOptions, "turns"> & { line: number; offset: number; maxRow?: number; scanner?: RowScanner }) {
    this.scanner = options.scanner ?? new RowScanner(chunkBytes);
    this.line = options.line;
    this.offset = options.offset;
    this.maxRow = options.maxRow ?? maxRowBytes;
    this.pages = new PageBuilder({ turns: options.turns, lastLines: false });
    this.hasher = new RowHasher(this.scanner, this.pages, options.turns);
    this.view = Buffer.from(this.scanner.bytes.buffer);
  }

  /** Where the next bytes of the file go; never empty. */
  target(): Buffer {
    const { scanner } = this;
    if (this.filled >= scanner.capacity - 1) this.grow(Math.min(scanner.capacity * 4, this.maxRow + chunkBytes));
    else if (this.filled < chunkBytes / 2 && scanner.capacity > chunkBytes) this.grow(chunkBytes);
    return this.view.subarray(this.filled, scanner.capacity - 1);
  }

  /** Takes `count` bytes that were put into `target()`. */
  advance(count: number): void {
    const searchFrom = this.filled;
    this.filled += count;
    const last = this.view.lastIndexOf(lf, this.filled - 1);
    if (last < searchFrom || this.filled === 0) return this.checkLength();
    this.rows(last);
    this.view.copyWithin(0, last + 1, this.filled);
    this.filled -= last + 1;
    this.checkLength();
  }

  /** Adds what follows the last LF, when the file has ended. True if that was a row. */
  finish(): boolean {
    if (this.skipped >= 0) this.endSkipped(this.filled);
    else if (!this.isBlank(0, this.filled)) {
      const end = this.view[this.filled - 1] === cr ? this.filled - 1 : this.filled;
      this.hasher.add(0, end, { line: this.line, offset: this.offset }, isUtf8(this.view.subarray(0, end)), false);
      return true;
    }
    return false;
  }

  private rows(last: number): void {
    const { view, hasher } = this;
    let start = 0;
    if (this.skipped >= 0) {
      const end = view.indexOf(lf);
      this.endSkipped(end);
      this.line++;
      this.offset += 1;
      start = end + 1;
    }
    const valid = isUtf8(view.subarray(start, last + 1));
    const base = this.offset - start;
    let line = this.line;
    while (start <= last) {
      const end = view.indexOf(lf, start);
      const rowEnd = end > start && view[end - 1] === cr ? end - 1 : end;
      // Most rows begin with a brace: only others can be blank.
      if ((view[start] as number) > 32 || !this.isBlank(start, rowEnd)) {
        hasher.addLine(start, rowEnd, line, base + start, valid || isUtf8(view.subarray(start, rowEnd)));
      }
      line++;
      start = end + 1;
    }
    this.line = line;
    this.offset = base + start;
  }

  private checkLength(): void {
    if (this.skipped < 0 && this.filled <= this.maxRow) return;
    this.skipped = Math.max(this.skipped, 0) + this.filled;
    this.filled = 0;
  }

  private endSkipped(rest: number): void {
    const length = this.skipped + rest;
    this.hasher.addTooLong({ line: this.line, offset: this.offset }, length, this.maxRow);
    this.offset += length;
    this.skipped = -1;
  }

  private isBlank(start: number, end: number): boolean {
    for (let i = start; i < end; i++) {
      const byte = this.view[i] as number;
      if (byte !== 32 && byte !== 9 && byte !== cr) return false;
    }
    return true;
  }

  private grow(capacity: number): void {
    this.scanner.reserve(capacity, this.filled);
    this.view = Buffer.from(this.scanner.bytes.buffer);
  }
}
