import type { ProbeRow, TokenScores, TraceMeta, TraceSummaryRow } from "../../protocol/trace.ts";

/** What the drift maths needs of a trace. `TraceReader` of the storage room is one; tests make theirs by hand. */
export interface TraceData {
  readonly meta: TraceMeta;
  readonly segments: readonly string[];
  probes(): ProbeRow[];
  tokens(row: number): TokenScores | null;
  /** Raw bytes of a token; tokens that are only part of a character are not valid UTF-8 on their own. */
  tokenBytes(id: number): Uint8Array | null;
  summary(): TraceSummaryRow[];
}

/** A trace and the name of its checkpoint (`M2`, `search 20`). */
export interface LabelledTrace {
  label: string;
  /** null: this checkpoint was not scored. */
  trace: TraceData | null;
}

/** A checkpoint to compare. `reference` replaces the common reference, e.g. by the start of its own stage. */
export interface ComparedTrace extends LabelledTrace {
  reference?: TraceData | null;
}
