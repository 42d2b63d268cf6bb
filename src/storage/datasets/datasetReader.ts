import type { Disposable } from "../../util/disposable.ts";
import type { FileNote } from "../rows/rowSource.ts";

export type DatasetKind = "lines" | "gzip" | "zstd" | "parquet";

/** One row as JSON text. */
export interface DatasetRow {
  /** Counted from 0. */
  row: number;
  /** Physical line, counted from 1; in a Parquet file the row counted from 1. */
  line: number;
  /** In bytes of the (unpacked) file; 0 in a Parquet file. */
  offset: number;
  /** Bytes of the whole row. */
  length: number;
  /** The row, or its beginning where it is longer than was asked for. */
  bytes: Uint8Array;
  cut: boolean;
  /** False for a last line without LF: it may still be being written. */
  ended: boolean;
}

export interface DatasetStatus {
  /** Rows known so far. */
  rows: number;
  /** True when the whole file was looked through. */
  complete: boolean;
  /** Bytes of the file that were looked through, and all of them. */
  done: number;
  total: number;
  /** About the file as a whole: an archive that ends early, a JSON array instead of lines … */
  notes: FileNote[];
  /** The file on disk is no longer the one that is shown: open it again. */
  changed: boolean;
}

export interface FindRequest {
  text: string;
  matchCase: boolean;
  /** The first row looked at (forward), or the last (backward). */
  from: number;
  direction: 1 | -1;
}

export interface FindOptions {
  signal: AbortSignal;
  /** `share` of the way, 0 to 1. */
  onProgress?(share: number): void;
}

/**
 * A dataset file of any size, read where it is looked at. Memory does not grow with the file. Every call may be
 * cancelled by its signal and then throws the signal's reason.
 */
export interface DatasetReader extends Disposable {
  readonly kind: DatasetKind;
  readonly path: string;
  status(): DatasetStatus;
  /** Called when the status changed, at most about ten times a second. */
  onDidChange(run: () => void): Disposable;
  /** The rows from `first` on, as far as they are known; each with at most `limit` bytes. */
  rowsFrom(first: number, limit: number, signal?: AbortSignal): AsyncGenerator<DatasetRow>;
  /** The row on a line, or the next one after it; null beyond the last known row. */
  rowOfLine(line: number, signal?: AbortSignal): Promise<number | null>;
  /** The next row in that direction that has the text; null where there is none up to the end. Waits for rows not yet known. */
  find(request: FindRequest, options: FindOptions): Promise<number | null>;
}

export interface OpenDatasetOptions {
  /** Archives are unpacked into a temporary file here. */
  spillDir: string;
  /** Bytes an archive may unpack to; default 64 GiB. */
  spillLimit?: number;
  /** Bytes that must stay free on that disk; default 1 GiB. */
  keepFree?: number;
}
