import type { WireNumber } from "./numbers.ts";
import type { CheckMark } from "./webview.ts";

/**
 * Everything the dataset page and the extension host can say to each other. The page says `ready`, the host answers with
 * the state and sends it again whenever it changes; rows are asked for by blocks, as they come into sight.
 */
export type ToDatasetPage =
  | { type: "state"; state: DatasetState }
  /** The rows of one block, as far as they are known. Sent again when their marks are known, or more of them are. */
  | { type: "block"; version: number; block: number; lines: DatasetLine[] }
  | { type: "detail"; version: number; detail: DatasetDetail }
  /** How far the search has come, 0 to 1. */
  | { type: "finding"; turn: number; share: number }
  /** `row` null: the text is nowhere in the file. `wrapped`: found only after going on from the other end. */
  | { type: "found"; turn: number; row: number | null; wrapped: boolean; problem: string | null }
  /** `exact` false: there is no row on that line, the next one (or the last) is meant. */
  | { type: "wentTo"; turn: number; row: number | null; exact: boolean };

export type FromDatasetPage =
  | { type: "ready" }
  /** The blocks in sight, the most wanted first. Replaces what was wanted before. */
  | { type: "want"; version: number; blocks: number[] }
  | { type: "choose"; version: number; row: number; whole: boolean }
  /** `turn` counts the page's requests: an answer to an older one is of no use. */
  | { type: "find"; turn: number; text: string; matchCase: boolean; from: number; direction: 1 | -1 }
  | { type: "cancelFind" }
  | { type: "goTo"; turn: number; line: number }
  | { type: "reread" }
  | { type: "openDrift"; row: number }
  | { type: "openText"; line: number }
  | { type: "showLog" }
  /** Something in the page failed: for the log. */
  | { type: "error"; message: string };

/** Rows that are asked for together. */
export const blockRows = 64;

export interface DatasetState {
  /** Counts how often the file was opened: blocks of another version are not of this file. */
  version: number;
  name: string;
  kind: "lines" | "gzip" | "zstd" | "parquet";
  /** Rows known so far, and whether that is all of them. */
  rows: number;
  complete: boolean;
  /** Bytes of the file looked through, and all of them. */
  done: number;
  total: number;
  /** One per checkpoint of the pipeline; empty without one. */
  columns: { label: string; title: string }[];
  /** Whether any run has replayed anything. */
  replay: boolean;
  notes: string[];
  /** The file on disk is no longer what is shown. */
  changed: boolean;
  /** Whether the text editor can show this file. */
  text: boolean;
  /** Set instead of rows when there is nothing to show. */
  empty: { kind: "none" | "error"; title: string; detail: string } | null;
}

export interface DatasetLine {
  row: number;
  line: number;
  preview: string;
  problem: string | null;
  /** What the row has to do with replay buffers, in words; null: nothing, or not known yet. */
  replay: string | null;
  /** Null where the row is no probe, or not known yet. */
  probe: DatasetProbe | null;
}

/** A probe row's drift: one mark and change per column. */
export interface DatasetProbe {
  skill: string;
  split: string;
  /** Change of the reference's log-probability in nats (−ΔNLL); null: not scored there, or not compared. */
  changes: (WireNumber | null)[];
  beyondNoise: boolean[];
  checks: CheckMark[];
}

export interface DatasetDetail {
  row: number;
  line: number;
  /** Bytes of the row, and whether only its beginning is here. */
  length: number;
  cut: boolean;
  /** Asking again with `whole` would show more. */
  more: boolean;
  problems: string[];
  /** The row in reading order; empty where it has no turns. */
  turns: { role: string; text: string }[];
  /** The row as indented JSON, or as it is where it is none. */
  text: string;
  replay: string | null;
  probe: DatasetProbe | null;
}
