import { t } from "../../util/l10n.ts";
import { compatibility } from "./compatibility.ts";
import { pairProbes, type DriftCell, type DriftRow } from "./drift.ts";
import { firstByKey } from "./sortPlaces.ts";
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
  /** 1 passed, 0 failed, -1 not run. */
  correctAt(place: number): number;
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
  /** Places of the scored probes in `probes`, the most drifted first, as many as were asked for. */
  order: Uint32Array;
  /** Scored probes, all of them. */
  scored: number;
  /** Places of the probes that were skipped when they were scored. */
  skipped: Uint32Array;
  row(place: number, probe: ProbeRow): DriftRow;
  /** The largest ΔNLL of the checkpoints that count. */
  worst(place: number): number | null;
}

/** `from`: the first checkpoint that counts for the order; `limit`: how many places are put in order. Null: no checkpoint was scored. */
export function driftColumns(reference: TraceData | null, checkpoints: readonly ComparedTrace[], sortBy: "worst" | "last" = "worst", from = 0, limit = Infinity): DriftColumns | null {
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
  const scored = placesOf(probes, 1);
  return {
    anchor,
    probes,
    columns,
    // Places are in the order of their rows, and equal keys keep it.
    order: firstByKey(scored, keysOf(counted, probes.rows.length, sortBy), limit),
    scored: scored.length,
    worst: (place) => worstAt(counted, place),
    skipped: placesOf(probes, 0),
    row(place, { row, line, hash, prompt, reference: text, tags }) {
      const cells = columns.map((one) => one.cell(place));
      return { row, line, hash, prompt, reference: text, tags, cells, worst: worstAt(counted, place), last: lastAt(counted, place), withinNoise: cells.every((cell) => cell.delta === null || cell.withinNoise) };
    },
  };
}

/** What the probes are sorted by; -Infinity where nothing is compared. Column by column: that is how they lie in memory. */
function keysOf(deltas: readonly Float64Array[], count: number, sortBy: "worst" | "last"): Float64Array {
  const keys = new Float64Array(count).fill(-Infinity);
  for (const delta of deltas) {
    for (let place = 0; place < count; place++) {
      const value = delta[place] as number;
      // NaN is neither larger nor equal to itself.
      if (sortBy === "worst" ? value > (keys[place] as number) : !Number.isNaN(value)) keys[place] = value;
    }
  }
  return keys;
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

/** Traces that were found to have the same probes, and what then pairs them: that is asked again for every other reference. */
const pairs = new WeakMap<ProbeColumns, WeakMap<ProbeColumns, Int32Array>>();
const selves = new WeakMap<ProbeColumns, Int32Array>();

/** For each place of the anchor the place of the same probe in the other trace; -1 where one of them has not scored it. */
function pairPlaces(anchor: TraceData, other: TraceData): Int32Array {
  const [ours, theirs] = [columnsOf(anchor), columnsOf(other)];
  const known = pairs.get(ours)?.get(theirs);
  if (known !== undefined) return known;
  const found = sameProbes(anchor, other, ours, theirs) ? selfPlaces(ours, theirs) : matchedPlaces(anchor, other, ours, theirs);
  pairs.set(ours, (pairs.get(ours) ?? new WeakMap<ProbeColumns, Int32Array>()).set(theirs, found));
  return found;
}

/** Every place is its own partner. One array for all traces of a set that scored the same ones. */
function selfPlaces(ours: ProbeColumns, theirs: ProbeColumns): Int32Array {
  let self = selves.get(ours);
  if (self === undefined) {
    self = new Int32Array(ours.scored.length);
    for (let place = 0; place < self.length; place++) self[place] = ours.scored[place] === 1 ? place : -1;
    selves.set(ours, self);
  }
  for (let place = 0; place < self.length; place++) if (self[place] !== -1 && theirs.scored[place] !== 1) return self.map((at) => (theirs.scored[at] === 1 ? at : -1));
  return self;
}

function matchedPlaces(anchor: TraceData, other: TraceData, ours: ProbeColumns, theirs: ProbeColumns): Int32Array {
  const found = new Int32Array(ours.rows.length).fill(-1);
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
  if (trace === null) return { label, comparable: false, note: notScored(label), delta: null, noise: 0, cell: () => empty(notScored(label)), correctAt: () => -1 };
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
    correctAt(at) {
      const place = now[at] as number;
      return place < 0 ? -1 : (scores.correct[place] as number);
    },
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
  const delta = new Float64Array(now.length);
  for (let at = 0; at < now.length; at++) {
    const place = now[at] as number;
    const from = before[at] as number;
    delta[at] = place >= 0 && from >= 0 ? (nll[place] as number) - (start[from] as number) : NaN;
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
