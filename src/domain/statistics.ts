import { mean, sampleStandardDeviation } from "simple-statistics";
import { incompleteBeta, normalQuantile, studentCdf, studentQuantile } from "./quantiles.ts";
import { formatNumber } from "./format.ts";

export interface Interval {
  low: number;
  high: number;
}

/**
 * Wilson's score interval for a share. Sound for small n and for 0 or n passes, where the normal interval has width 0.
 * Wilson 1927; Brown, Cai & DasGupta 2001, Statistical Science 16(2), eq. 4.
 */
export function wilsonInterval(correct: number, n: number, level = 0.95): Interval {
  if (n <= 0) return { low: 0, high: 1 };
  const z = normalQuantile(0.5 + level / 2);
  const share = correct / n;
  const middle = (share + (z * z) / (2 * n)) / (1 + (z * z) / n);
  const half = (z / (1 + (z * z) / n)) * Math.sqrt((share * (1 - share)) / n + (z * z) / (4 * n * n));
  return { low: Math.max(0, middle - half), high: Math.min(1, middle + half) };
}

/** Exact interval for a share (Clopper & Pearson 1934), by bisection on the binomial tails. Used for false-alarm rates. */
export function clopperPearson(correct: number, n: number, level = 0.95): Interval {
  const tail = (1 - level) / 2;
  const solve = (a: number, b: number, target: number): number => {
    let [low, high] = [0, 1];
    for (let round = 0; round < 60; round += 1) {
      const middle = (low + high) / 2;
      if (incompleteBeta(middle, a, b) < target) low = middle;
      else high = middle;
    }
    return (low + high) / 2;
  };
  return { low: correct === 0 ? 0 : solve(correct, n - correct + 1, tail), high: correct === n ? 1 : solve(correct + 1, n - correct, 1 - tail) };
}

/** Which difference counts as evidence. `lost`: more items lost than gained. */
export type Alternative = "two-sided" | "lost" | "gained";

/**
 * McNemar's exact test on paired pass/fail results: under no difference, `lost` of the `lost + gained` items that changed is
 * Binomial(½). McNemar 1947; earlywarning research §10.
 */
export function mcnemarExact(lost: number, gained: number, alternative: Alternative = "two-sided"): number {
  const n = lost + gained;
  if (n === 0) return 1;
  const atLeast = (k: number): number => (k <= 0 ? 1 : incompleteBeta(0.5, k, n - k + 1));
  if (alternative === "lost") return atLeast(lost);
  if (alternative === "gained") return atLeast(gained);
  return Math.min(1, 2 * atLeast(Math.max(lost, gained)));
}

export interface PairedItems<T> {
  pairs: { id: string; a: T; b: T }[];
  /** Items of one side only: counted and left out. */
  onlyA: number;
  onlyB: number;
}

/** Matches the items of two runs by id. */
export function pairById<T>(a: ReadonlyMap<string, T>, b: ReadonlyMap<string, T>): PairedItems<T> {
  const pairs = [...a].flatMap(([id, value]) => (b.has(id) ? [{ id, a: value, b: b.get(id) as T }] : []));
  return { pairs, onlyA: a.size - pairs.length, onlyB: b.size - pairs.length };
}

/**
 * Which p-values stay below `level` after Holm's step-down correction, and the adjusted p-values, in the given order.
 * Holm 1979, Scandinavian Journal of Statistics 6(2).
 */
export function holm(pValues: readonly number[], level = 0.05): { adjusted: number[]; rejected: boolean[] } {
  const order = pValues.map((p, index) => ({ p, index })).sort((a, b) => a.p - b.p);
  const adjusted = new Array<number>(pValues.length);
  let highest = 0;
  order.forEach(({ p, index }, rank) => {
    highest = Math.max(highest, Math.min(1, (pValues.length - rank) * p));
    adjusted[index] = highest;
  });
  return { adjusted, rejected: adjusted.map((p) => p <= level) };
}

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

/**
 * The smallest change of an accuracy that a paired comparison of n items can show:
 * (z_{1−α/m} + z_{power})·√(discordance / n), discordance = share of items that change. earlywarning research §2.
 */
export function minimumDetectableDifference(n: number, discordance: number, options: { level?: number; power?: number; sides?: 1 | 2; tests?: number } = {}): number {
  const { level = 0.05, power = 0.8, sides = 1, tests = 1 } = options;
  return ((normalQuantile(1 - level / sides / tests) + normalQuantile(power)) * Math.sqrt(discordance)) / Math.sqrt(n);
}

/** Items needed in each of two separate groups to tell their shares apart (two-sided, normal approximation; Fleiss 1981 §3.2). */
export function itemsNeeded(shareA: number, shareB: number, options: { level?: number; power?: number } = {}): number {
  const { level = 0.05, power = 0.8 } = options;
  const z = normalQuantile(1 - level / 2) + normalQuantile(power);
  return Math.ceil((z * z * (shareA * (1 - shareA) + shareB * (1 - shareB))) / (shareA - shareB) ** 2);
}

/** Fewer items than this are shown but never judged (earlywarning research §0.5). */
export const fewestItems = 32;

/** The sentence for a set too small to judge by (case S02), or null. */
export function tooFewItems(n: number): string | null {
  if (n >= fewestItems) return null;
  return n === 0 ? "No items: nothing was checked." : `Too few items: one item is ${formatNumber(100 / n, 1)} points.`;
}
