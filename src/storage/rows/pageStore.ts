import type { RowProblem } from "../../domain/rows/readRow.ts";
import type { FileNote } from "./rowSource.ts";
import type { RowPage, RowTotals } from "./rowPages.ts";

/** Consecutive pages that were written together. Segments are never changed, only added and dropped. */
export interface SegmentInfo {
  id: number;
  /** One entry a page. */
  pages: { firstLine: number; lastLine: number; rows: number }[];
}

/** What is remembered of one file. */
export interface FileRecord {
  path: string;
  /** Goes up with every change, so that of two windows that update at once one notices. */
  revision: number;
  size: number;
  mtimeMs: number;
  /** Where the next update goes on: after the last LF. */
  end: { offset: number; line: number };
  /** Of the first `end.offset` bytes. */
  prefix: string;
  segments: SegmentInfo[];
  /** The segment of a last row without LF; it is replaced by the next update. */
  tail: SegmentInfo | null;
  /** Counts over `segments`, and of the tail. */
  totals: RowTotals;
  tailTotals: RowTotals;
  problems: { error: number; warning: number; info: number };
  tailProblems: { error: number; warning: number; info: number };
  notes: FileNote[];
  shape: "lines" | "array";
  packed: "plain" | "gzip";
  hasTurns: boolean;
}

/** Keeps pages. Two implementations behind one row index: memory and SQLite. Writing may have to wait for another window. */
export interface PageStore {
  load(path: string): FileRecord | null;
  paths(): string[];
  newSegment(): Promise<number>;
  write(segment: number, firstPage: number, pages: readonly RowPage[], problems: readonly RowProblem[]): Promise<void>;
  /** Makes the record the current one if `revision` still is; false: another window was faster, nothing changed. */
  commit(record: FileRecord, expectedRevision: number): Promise<boolean>;
  drop(segments: readonly number[]): Promise<void>;
  page(segment: number, index: number): RowPage | null;
  /** The hashes of a page only, for searching. */
  hashes(segment: number, index: number, kind: "full" | "turns"): Uint8Array | null;
  problems(segment: number, first: number, last: number, limit: number): RowProblem[];
  forget(path: string): Promise<void>;
  dispose(): void;
}
