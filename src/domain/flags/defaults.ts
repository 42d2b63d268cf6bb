import type { DetectorId, MarginKind } from "./detector.ts";

/**
 * What watches a run where seesaw.yaml says nothing. The battery decides these (REPORT_CARD.md); the runner has the same in
 * `seesaw_runner/flags/defaults.py`, and nothing else may repeat them.
 */
export const flagDefaults = {
  detector: "limit" as DetectorId,
  margin: "all" as MarginKind,
  /** Nats of margin over which an answer counts as lost by degrees. */
  scale: 1,
  /** False-alarm budget of a run. */
  alpha: 0.1,
  /** Points of accuracy. */
  tolerance: 2,
  /** Of the detector `nll`. */
  tolerance_nats: 0.2,
} as const;

/**
 * Of the detector `limit`: the loss, in points of expected accuracy on 64 rows, that at most this share of bank A's 48 healthy
 * runs went beyond at any look of any skill. A smaller budget than the first has the first one's limit.
 */
export const lossLimits: readonly { alpha: number; points: number }[] = [
  { alpha: 0.02, points: 9.75 },
  { alpha: 0.05, points: 4.5 },
  { alpha: 0.1, points: 4.36 },
  { alpha: 0.15, points: 3.48 },
  { alpha: 0.2, points: 2.94 },
  { alpha: 0.3, points: 2.39 },
];

/** Level of the paired tests that confirm a flag, over all series of a run (Holm). */
export const confirmLevel = 0.05;

/** Rows, or clusters, below which nothing is judged, and below which a flag says that its panel is weak. */
export const fewestPanelRows = 32;
export const strongPanelRows = 64;

/** Share of rows whose result changes either way without a loss, to say what a check can see before it has been run. */
export const usualChurn = 0.05;
