import type { FlagBody } from "../../protocol/journal.ts";
import type { RunSpec, Split } from "../../protocol/runSpec.ts";
import { columnsOf, type TraceData } from "../drift/traceData.ts";
import { lookSteps } from "../run/lookSteps.ts";
import type { RunState } from "../run/runState.ts";
import { clustersOf } from "./clusters.ts";
import { flagDefaults } from "./defaults.ts";
import type { DetectorId, DetectorSetup, MarginKind, OpenSeries, SeriesStart, Verdict } from "./detector.ts";
import { detectors } from "./detectors.ts";
import { lookProgress } from "./lookProgress.ts";
import { decisionOf, decisionTokens, rowMargin, tokenMargins } from "./margins.ts";
import { whyNotMeasurable } from "./measurable.ts";
import { panelOf, type Panel } from "./panel.ts";
import { takeLook, takeTest, watchSeries, type RunWatch, type WatchState } from "./states.ts";

/** What a run's verdicts are made of again: its traces, and what the traces do not say of their rows. */
export interface RecomputeInput {
  spec: RunSpec;
  state: RunState;
  /** Opens a trace by its path in the journal. */
  open(trace: string): TraceData;
  /** The `group` of the probe row on a line; undefined: none. */
  groupOf(set: { skill: string; split: Split }, line: number): string | undefined;
  /** The training or replay file in which that row is too; null: none. */
  foundIn(set: { skill: string; split: Split }, line: number): string | null;
  /** Instead of what the run was watched with. */
  detector?: DetectorId | undefined;
  /** Points of accuracy, or nats for the detector `nll`, instead of the run's. */
  tolerance?: number | undefined;
}

/** What one look finds. `entered`: states that the flag takes here, in order; `calm` is never entered. */
export interface RecomputedLook {
  step: number;
  progress: number;
  verdict: Verdict;
  state: WatchState;
  entered: Exclude<WatchState, "calm">[];
}

export interface RecomputedSeries {
  id: string;
  skill: string;
  split: Split;
  /** Independent rows of the panel. */
  n: number;
  weak: boolean;
  dropped: number;
  /** Why it cannot be watched; then there are no looks. */
  reason: string | null;
  looks: RecomputedLook[];
}

export interface Recomputed {
  detector: DetectorId;
  margin: MarginKind;
  alpha: number;
  /** Points of accuracy, or nats for `nll`. */
  tolerance: number;
  /** Planned looks; null for a command. */
  looks: number | null;
  series: RecomputedSeries[];
}

/** Everything the run's flags say, from its traces alone. Deterministic: the same traces give the same verdicts. */
export function recomputeFlags(input: RecomputeInput): Recomputed {
  const { spec, state } = input;
  const settings = settingsOf(input);
  const steps = [...new Set(state.probes.map(({ step }) => step))].filter((step) => step > 0).sort((a, b) => a - b);
  const last = spec.recipe === "command" ? null : state.total;
  const planned = last === null ? null : settings.older && state.status === "done" ? steps.length : lookSteps(spec.probe.every, last).length;
  const margin = flagDefaults.margin;
  const found = setsOf(state).map((set) => readSet(input, set, steps, margin));
  const setup: DetectorSetup = { alpha: spec.flags.alpha, series: 1, looks: planned, tolerance: settings.points, tolerance_nats: settings.nats, scale: flagDefaults.scale };
  const reasons = new Map(found.map((one) => [one, reasonOf(one, settings.detector, setup)]));
  const watched = found.filter((one) => reasons.get(one) === null);
  setup.series = Math.max(1, watched.length);
  const opened = new Map(watched.map((one) => [one.id, detectors[settings.detector].open(one.start, setup)]));
  let watch: RunWatch = watchSeries(watched.map(({ id }) => id));
  const looks = new Map<string, RecomputedLook[]>(found.map(({ id }) => [id, []]));
  for (const [place, step] of steps.entries()) {
    for (const one of watched) {
      const scores = one.at.get(step);
      if (scores === undefined) continue;
      const progress = lookProgress(step, last, place + 1);
      const verdict = (opened.get(one.id) as OpenSeries).look({ step, progress, nll: scores.nll, margins: scores.margins });
      const entered: RecomputedLook["entered"] = [];
      const taken = takeLook(watch, one.id, step, verdict);
      watch = taken.watch;
      if (taken.raised !== null && taken.raised !== "calm") entered.push(taken.raised);
      if (taken.asks && scores.correct !== null) {
        const { before, now } = clusterTurns(one, scores.correct);
        const tested = takeTest(watch, one.id, step, before, now);
        watch = tested.watch;
        entered.push(tested.raised);
      }
      looks.get(one.id)?.push({ step, progress, verdict, state: watch.get(one.id)?.state ?? "calm", entered });
    }
  }
  const series = found.map((one) => ({ id: one.id, skill: one.skill, split: one.split, n: one.panel.n, weak: one.panel.weak, dropped: one.panel.dropped.length, reason: reasons.get(one) ?? null, looks: looks.get(one.id) ?? [] }));
  return { detector: settings.detector, margin, alpha: spec.flags.alpha, tolerance: settings.detector === "nll" ? settings.nats : settings.points, looks: planned, series };
}

/** With what the run was watched: its flags say it, else run.json. Runs without `tolerance_nats` are older than the choice: theirs was in nats. */
function settingsOf({ spec, state, detector, tolerance }: RecomputeInput): { detector: DetectorId; points: number; nats: number; older: boolean } {
  const { flags } = spec;
  const told: Pick<FlagBody, "detector"> | undefined = state.flagHistory[0];
  const older = flags.tolerance_nats === undefined && told?.detector === undefined;
  const chosen = detector ?? (older ? "nll" : (told?.detector ?? flags.detector ?? flagDefaults.detector));
  const points = older ? flagDefaults.tolerance : flags.tolerance;
  const nats = flags.tolerance_nats ?? (older ? flags.tolerance : flagDefaults.tolerance_nats);
  return { detector: chosen, older, points: chosen === "nll" ? points : (tolerance ?? points), nats: chosen === "nll" ? (tolerance ?? nats) : nats };
}

interface ReadSet {
  id: string;
  skill: string;
  split: Split;
  panel: Panel;
  start: SeriesStart;
  /** Of all rows that might be in the panel, at the start. */
  right: { right: number; checked: number };
  alternatives: number;
  rows: number;
  /** The panel's rows at each look; `correct` null where the check was not run on all of them. */
  at: Map<number, { nll: Float64Array; margins: Float64Array; correct: boolean[] | null }>;
}

function setsOf(state: RunState): { skill: string; split: Split }[] {
  return state.probes.filter(({ step }) => step === 0).map(({ skill, split }) => ({ skill, split }));
}

/** A probe set's panel and its scores at the start and at every look. */
function readSet(input: RecomputeInput, set: { skill: string; split: Split }, steps: readonly number[], margin: MarginKind): ReadSet {
  const { spec, state } = input;
  const traceOf = (step: number): TraceData | null => {
    const point = state.probes.find((one) => one.step === step && one.skill === set.skill && one.split === set.split);
    return point === undefined ? null : input.open(point.trace);
  };
  const first = traceOf(0) as TraceData;
  const begin = columnsOf(first);
  const later = steps.flatMap((step) => {
    const trace = traceOf(step);
    return trace === null ? [] : [{ step, trace, columns: columnsOf(trace) }];
  });
  const rowsAt = (seen: (place: number) => boolean): Parameters<typeof panelOf>[0] => [...begin.rows].map((row, place) => {
    const line = begin.lines[place] as number;
    return { row, line, group: input.groupOf(set, line) ?? null, scored: begin.scored[place] === 1 && seen(place), foundIn: begin.scored[place] === 1 ? input.foundIn(set, line) : null };
  });
  const clean = panelOf(rowsAt(() => true));
  const skill = spec.skills.find(({ id }) => id === set.skill);
  const decision = decisionOf(skill?.check.kind ?? "function", skill?.decision ?? null);
  const placeOf = new Map([...begin.rows].map((row, place) => [row, place]));
  const placesOf = (panel: Panel): number[] => [...panel.rows].map((row) => placeOf.get(row) as number);
  const scoresIn = (trace: TraceData, panel: Panel): { nll: Float64Array; margins: Float64Array; alternatives: number } => {
    let alternatives = 2;
    const nll = new Float64Array(panel.rows.length);
    const margins = Float64Array.from(panel.rows, (row, index) => {
      const tokens = trace.tokens(row);
      const each = tokens === null ? null : tokenMargins(tokens);
      nll[index] = tokens === null ? NaN : -tokens.logprob.reduce((sum, value) => sum + value, 0);
      if (each === null || tokens === null) {
        alternatives = 1;
        return NaN;
      }
      if (margin === "all") return rowMargin(each);
      // Which tokens decide is fixed at the start, and the text is the same at every look.
      return rowMargin(each, decisionTokens(decision, [...tokens.segment].map((index) => trace.segments[index] ?? "")));
    });
    return { nll, margins, alternatives };
  };
  const correctAt = (columns: typeof begin, places: readonly number[]): boolean[] | null => (places.every((place) => columns.correct[place] !== -1) ? places.map((place) => columns.correct[place] === 1) : null);
  const noise = (first.meta.noise ?? { nll_q99: 0 }) as { nll_q99: number; margin_sd?: number; decision_sd?: number };
  const cleanPlaces = placesOf(clean);
  const checked = cleanPlaces.filter((place) => begin.correct[place] !== -1);
  const startOf = (panel: Panel): { start: SeriesStart; alternatives: number } => {
    const { nll, margins, alternatives } = scoresIn(first, panel);
    return {
      alternatives,
      start: {
        id: `${set.skill}.${set.split}`, ...set, seed: spec.seed >>> 0, nll, margins,
        correct: correctAt(begin, placesOf(panel)) ?? [],
        noise: { nll_q99: noise.nll_q99, margin_sd: (margin === "all" ? noise.margin_sd : noise.decision_sd) ?? 0 },
        groups: panel.groups,
      },
    };
  };
  // Between the ends of a short stage only some rows are scored: those of every look are the panel of what can be watched at all.
  const seen = panelOf(rowsAt((place) => later.every(({ columns }) => columns.scored[place] === 1)));
  const panel = seen.small && !clean.small && later.length > 0 ? clean : later.length === 0 ? clean : seen;
  const at: ReadSet["at"] = new Map();
  if (panel !== clean || later.every(({ columns }) => cleanPlaces.every((place) => columns.scored[place] === 1))) {
    for (const { step, trace, columns } of later) at.set(step, { ...scoresIn(trace, panel), correct: correctAt(columns, placesOf(panel)) });
  }
  return {
    id: `${set.skill}.${set.split}`, ...set, panel, ...startOf(panel), rows: begin.scored.reduce((sum, value) => sum + value, 0), at,
    right: { right: checked.filter((place) => begin.correct[place] === 1).length, checked: checked.length },
  };
}

function reasonOf({ start, panel, right, alternatives, rows }: ReadSet, detector: DetectorId, setup: DetectorSetup): string | null {
  const known = detector === "nll" || alternatives >= 2;
  const opened = known && !panel.small ? detectors[detector].open(start, setup) : null;
  return whyNotMeasurable({ detector, rows, dropped: panel.dropped.length, n: panel.n, ...right, alternatives, noise: opened?.noise ?? 0, tolerance: opened?.tolerance ?? 0, unit: opened?.unit ?? "nats" });
}

/** Results of the check, groups counted once: one that has fewer right answers than at the start is lost. */
function clusterTurns({ start }: ReadSet, now: readonly boolean[]): { before: boolean[]; now: boolean[] } {
  const clusters = clustersOf(now.length, start.groups);
  if (clusters.n === now.length) return { before: [...start.correct], now: [...now] };
  const turns = new Float64Array(clusters.n);
  now.forEach((right, row) => {
    const cluster = clusters.of[row] as number;
    turns[cluster] = (turns[cluster] as number) + Number(right) - Number(start.correct[row]);
  });
  return { before: [...turns].map((turn) => turn <= 0), now: [...turns].map((turn) => turn >= 0) };
}
