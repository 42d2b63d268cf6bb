import { mean, sampleStandardDeviation } from "simple-statistics";
import { studentCdf, studentQuantile } from "./quantiles.ts";
import type { Interval } from "./shares.ts";

export interface MeanEstimate {
  mean: number;
  n: number;
  standardError: number;
  /** Degrees of freedom: n − 1, or clusters − 1. */
  df: number;
  interval: Interval;
  clusters: number | null;
}

/**
 * Mean with a t interval. With `clusters` (a group per value) the standard error counts groups, not items:
 * SE² = Σ_g (Σ_{i∈g} (x_i − x̄))² / n² · G/(G−1); the last factor is left out with `smallSample: false`.
 * Miller 2024 (arXiv 2411.00640) §2.2; earlywarning research §10.
 */
export function meanEstimate(values: readonly number[], options: { level?: number; clusters?: readonly string[]; smallSample?: boolean } = {}): MeanEstimate {
  const { level = 0.95, clusters, smallSample = true } = options;
  const n = values.length;
  if (n === 0) return { mean: NaN, n, standardError: NaN, df: 0, interval: { low: NaN, high: NaN }, clusters: clusters === undefined ? null : 0 };
  const middle = mean([...values]);
  let standardError = n < 2 ? NaN : sampleStandardDeviation([...values]) / Math.sqrt(n);
  let groups = n;
  if (clusters !== undefined) {
    const sums = new Map<string, number>();
    values.forEach((value, index) => sums.set(clusters[index] ?? "", (sums.get(clusters[index] ?? "") ?? 0) + value - middle));
    groups = sums.size;
    const squares = [...sums.values()].reduce((total, sum) => total + sum * sum, 0);
    standardError = groups < 2 ? NaN : Math.sqrt(squares * (smallSample ? groups / (groups - 1) : 1)) / n;
  }
  const df = groups - 1;
  const half = df < 1 ? NaN : studentQuantile(0.5 + level / 2, df) * standardError;
  return { mean: middle, n, standardError, df, interval: { low: middle - half, high: middle + half }, clusters: clusters === undefined ? null : groups };
}

export interface PairedDifference extends MeanEstimate {
  /** Two-sided p-value of "no difference"; NaN when every difference is the same. */
  p: number;
}

/** Mean of b − a over the same items, with its t interval and two-sided p-value. */
export function pairedDifference(a: readonly number[], b: readonly number[], options: Parameters<typeof meanEstimate>[1] = {}): PairedDifference {
  const estimate = meanEstimate(a.map((value, index) => (b[index] as number) - value), options);
  const t = Math.abs(estimate.mean / estimate.standardError);
  return { ...estimate, p: Number.isFinite(t) ? 2 * (1 - studentCdf(t, estimate.df)) : NaN };
}
