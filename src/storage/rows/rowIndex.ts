import type { RowProblem } from "../../domain/rows/readRow.ts";
import type { RowFormat } from "../../domain/rows/rowFormat.ts";
import type { FileNote } from "./rowSource.ts";

/** One row of a dataset file. */
export interface IndexedRow {
  /** Physical line (counted from 1) on which the row begins; `lastLine` differs for elements of a JSON array. */
  line: number;
  lastLine: number;
  /** In bytes of the (unpacked) file. */
  offset: number;
  length: number;
  /** Null where the row is no JSON. */
  full: string | null;
  /** Null where the row has none; undefined where the file was indexed without them. */
  prompt: string | null | undefined;
  answer: string | null | undefined;
  /** Null where the row is no JSON. */
  format: RowFormat | null;
}

export interface FileSummary {
  path: string;
  /** Rows, also those that are no JSON (`unreadable`). */
  rows: number;
  unreadable: number;
  lines: number;
  bytes: number;
  formats: Record<RowFormat, number>;
  /** How many problems of each kind rows have; `problems()` lists them. */
  problems: { error: number; warning: number; info: number };
  /** About the file as a whole: byte order mark, archive that ends early … */
  notes: FileNote[];
  shape: "lines" | "array";
  packed: "plain" | "gzip";
  /** True where the last line has no LF: it may still be being written. */
  openEnd: boolean;
  hasTurns: boolean;
  /** What the last `update` had to do. */
  how: "unchanged" | "appended" | "rebuilt";
}

export interface UpdateOptions {
  /** Also the prompt and answer hashes: about twice the work. They stay once they were asked for. */
  turns?: boolean;
  signal?: AbortSignal;
  onProgress?: (progress: { bytes: number; total: number; rows: number }) => void;
}

export interface RowLocation {
  path: string;
  line: number;
  offset: number;
}

export type HashKind = "full" | "prompt" | "answer";

/** What the rest of the code may ask about rows of dataset files. Everything in it can be rebuilt from the files. */
export interface RowIndex {
  /**
   * Brings the index of a file up to date: nothing, only what was appended, or all of it. Bad rows do not stop it.
   * Throws AppError("not-found" | "cancelled" | "index-unusable"); then the index is as it was.
   */
  update(path: string, options?: UpdateOptions): Promise<FileSummary>;
  /** As of the last update; null for a file that was never indexed. */
  summary(path: string): FileSummary | null;
  /** The row that begins on, or spans, a line. */
  row(path: string, line: number): IndexedRow | null;
  /** Rows on the lines from `first` to `last`, both included. */
  rows(path: string, first: number, last: number): IndexedRow[];
  /** The first problems of a file, at most 1000 of them. */
  problems(path: string, first?: number, last?: number): RowProblem[];
  /** Where rows with one of these hashes are, in all files or one of them. */
  places(hashes: readonly string[], kind?: HashKind, path?: string): Map<string, RowLocation[]>;
  /** The indexed files. */
  paths(): string[];
  forget(path: string): Promise<void>;
  dispose(): void;
}
