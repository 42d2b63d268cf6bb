import type { ProbeRow } from "../../protocol/trace.ts";
import type { ComparedTrace, TraceData } from "./traceData.ts";
import type { TokenVerdict } from "./tokenClasses.ts";
import { compatibility } from "./compatibility.ts";
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
 * `reference` null: nothing can be compared, only the checks are shown.
 */
export function driftTable(reference: TraceData | null, checkpoints: readonly ComparedTrace[], sortBy: "worst" | "last" = "worst"): DriftTable {
  const anchor = reference ?? checkpoints.find((one) => one.trace !== null)?.trace ?? null;
  if (anchor === null) return { rows: [], notes: checkpoints.map(({ label }) => ({ label, comparable: false, message: notScored(label) })), skipped: [] };
  const probes = anchor.probes();
  const columns = checkpoints.map((checkpoint) => column(checkpoint, reference, probes));
  const rows = probes.filter((probe) => probe.status === "ok").map((probe) => {
    const cells = columns.map((one) => one.cells.get(probe.row) ?? emptyCell(one.label, one.note ?? `This prompt was not scored under ${one.label}.`));
    const deltas = cells.flatMap((cell) => (cell.delta === null ? [] : [cell.delta]));
    const { row, line, hash, prompt, reference: text, tags } = probe;
    return {
      row, line, hash, prompt, reference: text, tags, cells,
      worst: deltas.length === 0 ? null : Math.max(...deltas), last: deltas.at(-1) ?? null, withinNoise: cells.every((cell) => cell.delta === null || cell.withinNoise),
    };
  });
  rows.sort((a, b) => (b[sortBy] ?? -Infinity) - (a[sortBy] ?? -Infinity) || a.row - b.row);
  return {
    rows,
    notes: columns.map(({ label, comparable, note }) => ({ label, comparable, message: note })),
    skipped: probes.filter((probe) => probe.status === "skipped").map(({ row, line, reason }) => ({ row, line, reason: reason ?? "It was skipped when scored." })),
  };
}

interface Column {
  label: string;
  comparable: boolean;
  note: string | null;
  cells: Map<number, DriftCell>;
}

function column(checkpoint: ComparedTrace, common: TraceData | null, probes: readonly ProbeRow[]): Column {
  const { label, trace } = checkpoint;
  const cells = new Map<number, DriftCell>();
  if (trace === null) return { label, comparable: false, note: notScored(label), cells };
  const reference = checkpoint.reference === undefined ? common : checkpoint.reference;
  const settings = reference === null ? null : compatibility(reference.meta, trace.meta);
  const why = settings === null ? "There is no reference checkpoint to compare with." : settings.comparable ? null : settings.message;
  const noise = reference === null ? 0 : sequenceNoise(reference.meta, trace.meta);
  const before = new Map(reference === null ? [] : pairProbes(probes, reference.probes()).map((pair) => [pair.reference.row, pair.other]));
  for (const { reference: probe, other: now } of pairProbes(probes, trace.probes())) {
    const start = why === null ? before.get(probe.row) : undefined;
    const difference = start === undefined ? null : now.nll - start.nll;
    const delta = Number.isNaN(difference) ? null : difference;
    const withinNoise = delta === null || Math.abs(delta) <= noise;
    cells.set(probe.row, { label, delta, nll: now.nll, withinNoise, correct: now.correct, why: delta === null ? why ?? noDelta(label, start) : null });
  }
  return { label, comparable: why === null, note: why ?? settings?.message ?? null, cells };
}

function emptyCell(label: string, why: string): DriftCell {
  return { label, delta: null, nll: null, withinNoise: true, correct: null, why };
}

function noDelta(label: string, start: ProbeRow | undefined): string {
  return start === undefined ? "The reference checkpoint has not scored this prompt." : `A score is no number (NaN): the weights or logits of ${label}, or of its reference, are broken.`;
}

function notScored(label: string): string {
  return `${label} has not been scored on these prompts.`;
}
