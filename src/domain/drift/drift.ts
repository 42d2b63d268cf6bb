import type { ProbeRow } from "../../protocol/trace.ts";
import { t } from "../../util/l10n.ts";
import type { ComparedTrace, TraceData } from "./traceData.ts";
import type { TokenVerdict } from "./tokenClasses.ts";
import { driftColumns, notScored, type DriftColumns } from "./driftColumns.ts";
import { classifyTokens, sequenceNoise, tokenNoise } from "./tokenClasses.ts";

/** The drift of one probe at one checkpoint. */
export interface ProbeDrift {
  row: number;
  hash: string;
  /** ΔNLL of the whole reference in nats: positive = less likely than under the reference checkpoint. */
  delta: number;
  deltaPerToken: number;
  tokens: number;
  withinNoise: boolean;
}

export interface DriftCell {
  label: string;
  /** null where there is nothing to compare; `why` then says so. */
  delta: number | null;
  nll: number | null;
  withinNoise: boolean;
  /** The check: passed, failed, or not run. */
  correct: boolean | null;
  why: string | null;
}

/** One prompt of the drift table. */
export interface DriftRow {
  row: number;
  line: number;
  hash: string;
  prompt: string;
  reference: string;
  tags: string[];
  cells: DriftCell[];
  /** The largest ΔNLL over the checkpoints; null when none could be compared. */
  worst: number | null;
  /** ΔNLL at the last compared checkpoint. */
  last: number | null;
  /** True when no checkpoint is beyond the noise. */
  withinNoise: boolean;
}

export interface DriftTable {
  rows: DriftRow[];
  /** One per checkpoint: why it cannot be compared, or what differs in its settings. */
  notes: { label: string; comparable: boolean; message: string | null }[];
  /** Probes of the reference that were skipped when scored, with the reason. */
  skipped: { row: number; line: number; reason: string }[];
}

/** Pairs the probes of two traces by row hash; the n-th copy of a row meets the n-th copy. */
export function pairProbes(reference: readonly ProbeRow[], other: readonly ProbeRow[]): { reference: ProbeRow; other: ProbeRow }[] {
  const waiting = new Map<string, ProbeRow[]>();
  for (const probe of other) if (probe.status === "ok") waiting.set(probe.hash, [...(waiting.get(probe.hash) ?? []), probe]);
  return reference.filter((probe) => probe.status === "ok").flatMap((probe) => {
    const partner = waiting.get(probe.hash)?.shift();
    return partner === undefined ? [] : [{ reference: probe, other: partner }];
  });
}

/** ΔNLL per probe between two comparable traces, in the reference's row order; NaN where a score is NaN. */
export function probeDrift(reference: TraceData, trace: TraceData): ProbeDrift[] {
  const noise = sequenceNoise(reference.meta, trace.meta);
  return pairProbes(reference.probes(), trace.probes()).map(({ reference: before, other: now }) => {
    const delta = now.nll - before.nll;
    return { row: before.row, hash: before.hash, delta, deltaPerToken: delta / Math.max(1, before.tokens), tokens: before.tokens, withinNoise: Math.abs(delta) <= noise };
  });
}

/** Change of the log-probability per token (now − before; negative: less likely), or null if the tokens are not the same. */
export function tokenDrift(reference: TraceData, trace: TraceData, row: number, otherRow: number = row): { delta: Float64Array; verdicts: TokenVerdict[] } | null {
  const before = reference.tokens(row);
  const now = trace.tokens(otherRow);
  if (before === null || now === null || before.ids.length !== now.ids.length || before.ids.some((id, index) => id !== now.ids[index])) return null;
  const delta = Float64Array.from(now.logprob, (value, index) => value - (before.logprob[index] as number));
  return { delta, verdicts: classifyTokens(before.logprob, now.logprob, now.rank, tokenNoise(reference.meta, trace.meta)) };
}

/**
 * All prompts of a probe set against a reference checkpoint, the most drifted first.
 * `reference` null: nothing can be compared, only the checks are shown. `from`: the first checkpoint that counts for the order.
 */
export function driftTable(reference: TraceData | null, checkpoints: readonly ComparedTrace[], sortBy: "worst" | "last" = "worst", from = 0): DriftTable {
  const found = driftColumns(reference, checkpoints, sortBy, from);
  if (found === null) return { rows: [], notes: checkpoints.map(({ label }) => ({ label, comparable: false, message: notScored(label) })), skipped: [] };
  const probes = found.anchor.probes();
  const at = (place: number): ProbeRow => probes[place] as ProbeRow;
  return {
    rows: Array.from(found.order, (place) => found.row(place, at(place))),
    notes: notesOf(found),
    skipped: Array.from(found.skipped, (place) => {
      const { row, line, reason } = at(place);
      return { row, line, reason: reason ?? t("It was skipped when scored.") };
    }),
  };
}

/** One per checkpoint: why it cannot be compared, or what differs in its settings. */
export function notesOf({ columns }: Pick<DriftColumns, "columns">): DriftTable["notes"] {
  return columns.map(({ label, comparable, note }) => ({ label, comparable, message: note }));
}
