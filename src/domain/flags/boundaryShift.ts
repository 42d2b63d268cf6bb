import { clusterMeans, type Clusters } from "./clusters.ts";
import { cleanMargin } from "./margins.ts";

/** A row's change of margin counts up to this many nats either way: one row cannot decide. */
export const changeClip = 2;

/** The regression of changes on start margins, as far as the start alone fixes it. One place a cluster. */
export interface BoundaryFit {
  clusters: Clusters;
  /** Start margin of every row. */
  margins: Float64Array;
  start: Float64Array;
  /** How much each change counts in the intercept (sums to 1) and in the slope. */
  intercept: Float64Array;
  slope: Float64Array;
  /** 1 − leverage, at least 1e-6. */
  slack: Float64Array;
}

/**
 * OLS of the change d on the start margin a: d = b + (τ − 1)·a + e. b is the boundary shift, the change for rows the start was
 * undecided on; a change of temperature alone (m = τ·a) has b = 0. Without spread in a there is only the mean.
 * earlywarning research §7.3.
 */
export function fitBoundary(margins: Float64Array, clusters: Clusters): BoundaryFit {
  const start = clusterMeans(margins, clusters);
  const n = start.length;
  const mean = start.reduce((sum, value) => sum + value, 0) / n;
  const squares = start.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const spread = Math.sqrt(squares / n) > 1e-6;
  const slope = start.map((value) => (spread ? (value - mean) / squares : 0));
  return {
    clusters,
    margins,
    start,
    slope,
    intercept: slope.map((value) => 1 / n - mean * value),
    slack: start.map((value, i) => Math.max(1 - 1 / n - (value - mean) * (slope[i] as number), 1e-6)),
  };
}

/** Clipped change of every cluster's margin. */
export function marginChanges(fit: BoundaryFit, now: Float64Array): Float64Array {
  const changes = fit.margins.map((start, row) => Math.min(changeClip, Math.max(-changeClip, cleanMargin(now[row] as number) - start)));
  return clusterMeans(changes, fit.clusters);
}

/**
 * Values whose mean is the boundary shift b and whose spread is that of its estimate, the uncertainty of τ included:
 * b + n·w·e/(1 − h), centred (HC3, MacKinnon & White 1985).
 */
export function pseudoValues(fit: BoundaryFit, changes: Float64Array): Float64Array {
  const n = changes.length;
  const b = dot(fit.intercept, changes);
  const tilt = dot(fit.slope, changes);
  const parts = changes.map((change, i) => ((fit.intercept[i] as number) * n * (change - b - tilt * (fit.start[i] as number))) / (fit.slack[i] as number));
  const mean = parts.reduce((sum, value) => sum + value, 0) / n;
  return parts.map((value) => b + value - mean);
}

/** What rescoring can do to the intercept: 3 standard errors of independent noise `sd` a row; 3·sd/√n where all rows count alike. */
export function shiftNoise(fit: BoundaryFit, sd: number): number {
  return 3 * sd * Math.sqrt(dot(fit.intercept, fit.intercept));
}

function dot(a: Float64Array, b: Float64Array): number {
  return a.reduce((sum, value, i) => sum + value * (b[i] as number), 0);
}
