import type { Split } from "../../protocol/runSpec.ts";

/** `nll`: change of the whole answer's likelihood; the others look at margins (see the files of their names). */
export type DetectorId = "limit" | "nll" | "shift" | "soft" | "strict";

export const detectorIds: readonly DetectorId[] = ["limit", "nll", "shift", "soft", "strict"];

/** Which tokens a row's margin is the least of. */
export type MarginKind = "all" | "decision";

/** Unit of a verdict: nats of margin or NLL, or points of accuracy (2 is two points). */
export type FlagUnit = "nats" | "points";

/** What rescoring the start checkpoint changes (batch size, order, padding), in nats. */
export interface SeriesNoise {
  /** 99th percentile over rows of the change of the NLL. */
  nll_q99: number;
  /** Root mean square over rows of the change of the margin. */
  margin_sd: number;
}

/** One skill × split at the stage's start, panel rows only. All arrays have one place a row. */
export interface SeriesStart {
  /** `math.id`: together with the run's seed it fixes the resamples. */
  id: string;
  skill: string;
  split: Split;
  /** The run's seed, as u32. */
  seed: number;
  /** Least margin of the row's tokens of the chosen kind, nats; positive where teacher forcing is right. */
  margins: Float64Array;
  /** Sum over the reference's tokens, nats. */
  nll: Float64Array;
  correct: readonly boolean[];
  noise: SeriesNoise;
  /** Rows with the same number belong together and count once; negative: a row of its own. */
  groups?: Int32Array;
}

/** The same rows under a later checkpoint. `progress`: how much of the budget may be spent by now, 0 … 1 (see lookProgress.ts). */
export interface LookScores {
  step: number;
  progress: number;
  nll: Float64Array;
  margins: Float64Array;
}

/** What a look found. `estimate` > 0 always means loss. */
export interface Verdict {
  estimate: number;
  /** Ends of the 90 % band; of `nll`: the lower bound at its own level, the upper one at one-sided 90 %. */
  low: number;
  high: number;
  unit: FlagUnit;
  /** The loss from which on a flag is due: the tolerance; of `nll` with the noise on top. */
  threshold: number;
  alarm: boolean;
  /** `high` is below the threshold: a loss worth a flag is excluded. */
  clear: boolean;
  /** Share of the run's false-alarm budget that this series has used so far. */
  spent: number;
}

/** How a series is watched. */
export interface DetectorSetup {
  /** False-alarm budget of the run, over all its series and looks. */
  alpha: number;
  /** Measurable series that share it. */
  series: number;
  /** Planned looks after step 0; null where their number is not known (command runs). */
  looks: number | null;
  /** Points of accuracy that may be lost. */
  tolerance: number;
  /** The same for `nll`, in nats. */
  tolerance_nats: number;
  /** Nats of margin in which `limit` and `soft` count an answer as lost by degrees. */
  scale: number;
}

export interface OpenSeries {
  /** The loss that is tolerated, and what rescoring alone can look like: where noise exceeds it the series is not measurable. */
  readonly tolerance: number;
  readonly noise: number;
  readonly unit: FlagUnit;
  /** The next look. Looks come in the order of their steps; each is scored once. */
  look(scores: LookScores): Verdict;
}

export interface Detector {
  readonly id: DetectorId;
  open(start: SeriesStart, setup: DetectorSetup): OpenSeries;
}
