import type { ProbeRow, TokenScores, TraceMeta, TraceSummaryRow } from "../../protocol/trace.ts";

/** What the drift maths needs of a trace. `TraceReader` of the storage room is one; tests make theirs by hand. */
export interface TraceData {
  readonly meta: TraceMeta;
  readonly segments: readonly string[];
  /** All probes with their texts, in the order of their rows. Of a large set that is a lot: ask for `columnsOf` and `probeAt` where they do. */
  probes(): ProbeRow[];
  /** The numbers of all probes, where they can be had without the texts. */
  columns?(): ProbeColumns;
  /** The probe with this row number, where it can be had without all others. */
  probe?(row: number): ProbeRow | null;
  /** The prompts of many rows alone, by row, where they can be had without the rest. */
  prompts?(rows: readonly number[]): ReadonlyMap<number, string>;
  tokens(row: number): TokenScores | null;
  /** Raw bytes of a token; tokens that are only part of a character are not valid UTF-8 on their own. */
  tokenBytes(id: number): Uint8Array | null;
  summary(): TraceSummaryRow[];
}

/** The numbers of all probes of a trace without their texts: one place per probe, in the order of their rows. */
export interface ProbeColumns {
  rows: Uint32Array;
  lines: Uint32Array;
  /** Of the whole reference in nats; NaN where it is no number. */
  nll: Float64Array;
  /** 1 passed, 0 failed, -1 not run. */
  correct: Int8Array;
  /** 1 where the probe was scored, 0 where it was skipped. */
  scored: Uint8Array;
}

const made = new WeakMap<readonly ProbeRow[], ProbeColumns>();

export function columnsOf(trace: TraceData): ProbeColumns {
  if (trace.columns !== undefined) return trace.columns();
  const probes = trace.probes();
  let columns = made.get(probes);
  if (columns === undefined) {
    columns = {
      rows: Uint32Array.from(probes, ({ row }) => row),
      lines: Uint32Array.from(probes, ({ line }) => line),
      nll: Float64Array.from(probes, ({ nll }) => nll),
      correct: Int8Array.from(probes, ({ correct }) => (correct === null ? -1 : Number(correct))),
      scored: Uint8Array.from(probes, ({ status }) => Number(status === "ok")),
    };
    made.set(probes, columns);
  }
  return columns;
}

export function probeAt(trace: TraceData, row: number): ProbeRow | null {
  return trace.probe === undefined ? (trace.probes().find((probe) => probe.row === row) ?? null) : trace.probe(row);
}

export function promptsOf(trace: TraceData, rows: readonly number[]): ReadonlyMap<number, string> {
  return trace.prompts?.(rows) ?? new Map(rows.flatMap((row) => {
    const probe = probeAt(trace, row);
    return probe === null ? [] : [[row, probe.prompt]];
  }));
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
