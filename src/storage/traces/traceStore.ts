import type { ProbeRow, TokenScores, TraceMeta, TraceSummaryRow } from "../../protocol/trace.ts";

export type { TraceSummaryRow } from "../../protocol/trace.ts";

/** One opened trace file. Reading is lazy: tokens are decoded one row at a time. */
export interface TraceReader {
  readonly path: string;
  readonly meta: TraceMeta;
  readonly segments: readonly string[];
  probes(): ProbeRow[];
  tokens(row: number): TokenScores | null;
  /** Raw bytes of a token; tokens that are only part of a character are not valid UTF-8 on their own. */
  tokenBytes(id: number): Uint8Array | null;
  summary(): TraceSummaryRow[];
  close(): void;
}

export interface TraceStore {
  /** Throws AppError("trace-unreadable" | "newer-schema" | "sqlite-missing"). */
  open(path: string): TraceReader;
}
