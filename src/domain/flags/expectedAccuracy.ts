import { clusterMeans, type Clusters } from "./clusters.ts";
import { lossLimits } from "./defaults.ts";
import { cleanMargin } from "./margins.ts";

/** How right a row is, 0 … 1: a step at margin 0 (teacher forcing right or wrong) made smooth over `scale` nats. */
export function softRight(margin: number, scale: number): number {
  return 1 / (1 + Math.exp(-margin / scale));
}

/**
 * Change of expected accuracy of every cluster, as a share (0.02 = 2 points). Unlike the answers themselves it moves before a
 * row tips over, so it has less sampling noise; unlike the margin it ignores what happens far from the decision.
 */
export function accuracyChanges(start: Float64Array, now: Float64Array, scale: number, clusters: Clusters): Float64Array {
  return clusterMeans(start.map((margin, row) => softRight(cleanMargin(now[row] as number), scale) - softRight(margin, scale)), clusters);
}

/** What rescoring can do to its mean, as a share: 3 standard errors of noise `sd` nats a row; the logistic's slope is at most 1/(4·scale). */
export function accuracyNoise(n: number, sd: number, scale: number): number {
  return (3 * sd) / (4 * scale) / Math.sqrt(n);
}

/** Points of expected accuracy from which the detector `limit` alarms, at a false-alarm budget of `alpha` a run. */
export function lossLimit(alpha: number): number {
  const [first, ...later] = lossLimits as [(typeof lossLimits)[number], ...typeof lossLimits];
  return (later.findLast((one) => one.alpha <= alpha + 1e-9) ?? first).points;
}
