import { t } from "../../util/l10n.ts";
import { compatibility } from "./compatibility.ts";
import { pairProbes, type DriftCell, type DriftRow } from "./drift.ts";
import { sequenceNoise } from "./tokenClasses.ts";
import { columnsOf, type ComparedTrace, type ProbeColumns, type TraceData } from "./traceData.ts";
import type { ProbeRow } from "../../protocol/trace.ts";

/** One checkpoint of the table: its numbers by the places of the anchor's probes. */
export interface DriftColumn {
  label: string;
  comparable: boolean;
  /** Why it cannot be compared, or what differs in its settings. */
  note: string | null;
  /** ΔNLL; NaN where there is none. Null: there is none at all. */
  delta: Float64Array | null;
  noise: number;
  cell(place: number): DriftCell;
}

/**
 * The drift of all prompts of a probe set as numbers, in their order: a hundred thousand prompts are sorted without one of
 * their texts, and a row is made where it is looked at.
 */
export interface DriftColumns {
  /** Whose prompts they are: the reference, or the first trace where there is none. */
  anchor: TraceData;
  probes: ProbeColumns;
  columns: DriftColumn[];
  /** Places of the scored probes in `probes`, the most drifted first. */
  order: Uint32Array;
  /** Places of the probes that were skipped when they were scored. */
  skipped: Uint32Array;
  row(place: number, probe: ProbeRow): DriftRow;
}

/** `from`: the first checkpoint that counts for the order. Null: no checkpoint was scored. */
export function driftColumns(reference: TraceData | null, checkpoints: readonly ComparedTrace[], sortBy: "worst" | "last" = "worst", from = 0): DriftColumns | null {
  const anchor = reference ?? checkpoints.find((one) => one.trace !== null)?.trace ?? null;
  if (anchor === null) return null;
  const probes = columnsOf(anchor);
  const partners = new Map<TraceData, Int32Array>();
  const partnersOf = (trace: TraceData): Int32Array => {
    const known = partners.get(trace) ?? pairPlaces(anchor, trace);
    partners.set(trace, known);
    return known;
  };
  const columns = checkpoints.map((checkpoint) => column(checkpoint, reference, partnersOf));
  const counted = columns.slice(from).flatMap(({ delta }) => delta ?? []);
  const value = sortBy === "worst" ? worstAt : lastAt;
  const keys = new Float64Array(probes.rows.length);
  for (let place = 0; place < keys.length; place++) keys[place] = value(counted, place) ?? -Infinity;
  const order = placesOf(probes, 1).sort((a, b) => (keys[b] as number) - (keys[a] as number) || (probes.rows[a] as number) - (probes.rows[b] as number));
  return {
    anchor,
    probes,
    columns,
    order,
    skipped: placesOf(probes, 0),
    row(place, { row, line, hash, prompt, reference: text, tags }) {
      const cells = columns.map((one) => one.cell(place));
      return { row, line, hash, prompt, reference: text, tags, cells, worst: worstAt(counted, place), last: lastAt(counted, place), withinNoise: cells.every((cell) => cell.delta === null || cell.withinNoise) };
    },
  };
}

/** Places of the probes that were scored (1) or skipped (0). Plain loops, here and below: they run a hundred thousand times. */
function placesOf({ scored }: ProbeColumns, wanted: 0 | 1): Uint32Array {
  const places = new Uint32Array(scored.length);
  let count = 0;
  for (let place = 0; place < scored.length; place++) if (scored[place] === wanted) places[count++] = place;
  return places.subarray(0, count);
}

export function notScored(label: string): string {
  return t("{0} has not been scored on these prompts.", label);
}

/** For each place of the anchor the place of the same probe in the other trace; -1 where one of them has not scored it. */
function pairPlaces(anchor: TraceData, other: TraceData): Int32Array {
  const [ours, theirs] = [columnsOf(anchor), columnsOf(other)];
  const found = new Int32Array(ours.rows.length).fill(-1);
  if (sameProbes(anchor, other, ours, theirs)) {
    for (let place = 0; place < found.length; place++) if (ours.scored[place] === 1 && theirs.scored[place] === 1) found[place] = place;
    return found;
  }
  const placeOf = (columns: ProbeColumns): ReadonlyMap<number, number> => new Map(Array.from(columns.rows, (row, place) => [row, place]));
  const [here, there] = [placeOf(ours), placeOf(theirs)];
  for (const pair of pairProbes(anchor.probes(), other.probes())) found[here.get(pair.reference.row) as number] = there.get(pair.other.row) as number;
  return found;
}

/** The hash of a probe set is one over all its rows in their order: the same hash, the same rows. */
function sameProbes(anchor: TraceData, other: TraceData, ours: ProbeColumns, theirs: ProbeColumns): boolean {
  if (anchor === other) return true;
  if (anchor.meta.probe_set_hash !== other.meta.probe_set_hash || ours.rows.length !== theirs.rows.length) return false;
  for (let place = 0; place < ours.rows.length; place++) if (ours.rows[place] !== theirs.rows[place] || ours.lines[place] !== theirs.lines[place]) return false;
  return true;
}

function column(checkpoint: ComparedTrace, common: TraceData | null, partnersOf: (trace: TraceData) => Int32Array): DriftColumn {
  const { label, trace } = checkpoint;
  const empty = (why: string): DriftCell => ({ label, delta: null, nll: null, withinNoise: true, correct: null, why });
  if (trace === null) return { label, comparable: false, note: notScored(label), delta: null, noise: 0, cell: () => empty(notScored(label)) };
  const reference = checkpoint.reference === undefined ? common : checkpoint.reference;
  const settings = reference === null ? null : compatibility(reference.meta, trace.meta);
  const why = settings === null ? t("There is no reference checkpoint to compare with.") : settings.comparable ? null : settings.message;
  const noise = reference === null ? 0 : sequenceNoise(reference.meta, trace.meta);
  const note = why ?? settings?.message ?? null;
  const [now, scores] = [partnersOf(trace), columnsOf(trace)];
  const before = reference === null || why !== null ? null : partnersOf(reference);
  const starts = reference === null ? scores : columnsOf(reference);
  const delta = before === null ? null : differences(scores.nll, now, starts.nll, before);
  return {
    label,
    comparable: why === null,
    note,
    delta,
    noise,
    cell(at) {
      const place = now[at] as number;
      if (place < 0) return empty(note ?? t("This prompt was not scored under {0}.", label));
      const change = delta === null || Number.isNaN(delta[at]) ? null : (delta[at] as number);
      const correct = scores.correct[place] as number;
      return { label, delta: change, nll: scores.nll[place] as number, withinNoise: change === null || Math.abs(change) <= noise, correct: correct < 0 ? null : correct === 1, why: change === null ? (why ?? noDelta(label, before !== null && (before[at] as number) >= 0)) : null };
    },
  };
}

function differences(nll: Float64Array, now: Int32Array, start: Float64Array, before: Int32Array): Float64Array {
  const delta = new Float64Array(now.length).fill(NaN);
  for (let at = 0; at < now.length; at++) {
    const [place, from] = [now[at] as number, before[at] as number];
    if (place >= 0 && from >= 0) delta[at] = (nll[place] as number) - (start[from] as number);
  }
  return delta;
}

function worstAt(deltas: readonly Float64Array[], place: number): number | null {
  let worst: number | null = null;
  for (const delta of deltas) {
    const value = delta[place] as number;
    if (!Number.isNaN(value) && (worst === null || value > worst)) worst = value;
  }
  return worst;
}

function lastAt(deltas: readonly Float64Array[], place: number): number | null {
  return deltas.findLast((delta) => !Number.isNaN(delta[place]))?.[place] ?? null;
}

function noDelta(label: string, started: boolean): string {
  return started ? t("A score is no number (NaN): the weights or logits of {0}, or of its reference, are broken.", label) : t("The reference checkpoint has not scored this prompt.");
}
