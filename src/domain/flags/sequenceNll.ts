import { studentQuantile } from "../statistics/quantiles.ts";
import { clusterMeans, type Clusters } from "./clusters.ts";

/** A row whose answer became impossible counts as this many nats, so that means stay finite. */
export const nllClip = 1000;

/** Rise of the sequence NLL of every cluster since the start, nats. What is no number counts as lost. */
export function nllChanges(start: Float64Array, now: Float64Array, clusters: Clusters): Float64Array {
  const changes = start.map((before, row) => {
    const change = (now[row] as number) - before;
    return Number.isNaN(change) ? nllClip : Math.min(nllClip, Math.max(-nllClip, change));
  });
  return clusterMeans(changes, clusters);
}

/**
 * Mean, one-sided lower bound at `level`, one-sided upper bound at `upperLevel`. The lower bound is Student's t, and where the
 * values are skewed to the left (most rows a little worse, a few much better) Hall's (1992) transformation of it, with the
 * skewness taken 1.5-fold: decision 0009 has the simulation.
 */
export function meanBounds(values: Float64Array, level: number, upperLevel = 0.1): { mean: number; low: number; high: number } {
  const n = values.length;
  const mean = values.reduce((sum, value) => sum + value, 0) / n;
  const spread = Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (n - 1));
  const error = spread / Math.sqrt(n);
  if (error === 0) return { mean, low: mean, high: mean };
  let below = error * studentQuantile(1 - level, n - 1);
  const skew = 1.5 * skewness(values, mean);
  if (skew < 0) {
    const x = below / spread - skew / (6 * n);
    below = Math.max(below, ((spread * 3) / skew) * (Math.cbrt(1 + skew * x) - 1));
  }
  return { mean, low: mean - below, high: mean + error * studentQuantile(1 - upperLevel, n - 1) };
}

/** Adjusted Fisher–Pearson skewness G1; 0 for values without spread. */
function skewness(values: Float64Array, mean: number): number {
  const n = values.length;
  const moment = (power: number): number => values.reduce((sum, value) => sum + (value - mean) ** power, 0) / n;
  const second = moment(2);
  return second > 0 ? ((moment(3) / second ** 1.5) * Math.sqrt(n * (n - 1))) / (n - 2) : 0;
}
