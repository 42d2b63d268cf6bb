import { wilsonInterval } from "../statistics/shares.ts";
import { fewestPanelRows } from "./defaults.ts";
import type { DetectorId, FlagUnit } from "./detector.ts";

/** What decides whether a series can be watched at all. */
export interface Measurability {
  detector: DetectorId;
  /** Rows of the probe set, and those of them that occur in training or replay data. */
  rows: number;
  dropped: number;
  /** Rows of the panel, groups counted once. */
  n: number;
  /** Results of the check at the stage's start. */
  right: number;
  checked: number;
  /** Alternatives that the trace keeps a token. */
  alternatives: number;
  /** Of the opened series (`OpenSeries`). */
  noise: number;
  tolerance: number;
  unit: FlagUnit;
}

/** A skill whose accuracy may be below this at the start has nothing to forget. */
const leastAccuracy = 0.2;

/**
 * The sentence that says why a series cannot be watched; null where it can. It is written into the journal, so it stays
 * English and equal to the runner's.
 */
export function whyNotMeasurable(series: Measurability): string | null {
  const { detector, rows, dropped, n, right, checked, alternatives, noise, tolerance, unit } = series;
  if (n < fewestPanelRows) {
    if (n === 0 && dropped > 0) return `All ${dropped} probe rows also occur in this run's training or replay data, so they would hide forgetting. Add probes that are in neither.`;
    if (dropped > 0) return `Only ${n} probe rows are left; ${dropped} of ${rows} also occur in this run's training or replay data. Add probes that are in neither.`;
    return `Only ${n} probe rows could be scored; at least ${fewestPanelRows} are needed. Add probes.`;
  }
  if (wilsonInterval(right, checked).low < leastAccuracy) return `The skill was not there at the stage's start (${right} of ${checked} right), so there is nothing to forget.`;
  if (detector !== "nll" && alternatives < 2) return "The traces keep fewer than two alternatives a token, so there are no decision margins. Set probe.top_k to at least 2.";
  if (noise > tolerance && (tolerance > 0 || detector === "nll")) {
    return `Scoring noise of ${threeDigits(noise)} ${unit} exceeds the tolerance of ${threeDigits(tolerance)}. Score in float32 or raise the tolerance.`;
  }
  return null;
}

function threeDigits(value: number): string {
  return String(Number(value.toPrecision(3)));
}
