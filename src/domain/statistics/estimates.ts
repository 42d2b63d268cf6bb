import { normalQuantile, studentQuantile } from "./quantiles.ts";
import type { Interval } from "./shares.ts";

/** A number with an interval at any level, so that several can be joined and a p-value can be read off. */
export interface Estimate {
  value: number;
  interval(level: number): Interval;
}

/**
 * Σ weight·estimate of independent estimates. Each limit adds the distances of the parts' own limits in squares (MOVER: Zou &
 * Donner 2008, Statistics in Medicine 27): where the parts are score intervals, the sum too has a width when every row agrees.
 */
export function combine(parts: readonly { weight: number; estimate: Estimate }[]): Estimate {
  const value = parts.reduce((sum, { weight, estimate }) => sum + weight * estimate.value, 0);
  return {
    value,
    interval(level) {
      let [down, up] = [0, 0];
      for (const { weight, estimate } of parts) {
        const { low, high } = estimate.interval(level);
        const [a, b] = [weight * (estimate.value - low), weight * (high - estimate.value)];
        down += (weight >= 0 ? a : b) ** 2;
        up += (weight >= 0 ? b : a) ** 2;
      }
      return { low: value - Math.sqrt(down), high: value + Math.sqrt(up) };
    },
  };
}

/**
 * top / bottom of two estimates that correlate by `correlation`: the values r for which the interval of top − r·bottom holds
 * 0 (MOVER-R: Donner & Zou 2012, Statistical Methods in Medical Research 21; with correlation as in Fagerland et al. 2014).
 * The upper limit is Infinity where `bottom` may be 0.
 */
export function ratio(top: Estimate, bottom: Estimate, correlation: number): Estimate {
  const value = top.value / bottom.value;
  return {
    value,
    interval(level) {
      const [a, b] = [top.interval(level), bottom.interval(level)];
      const edge = (x: number, y: number, r: number): number => Math.sqrt(Math.max(0, x * x + r * r * y * y - 2 * correlation * r * x * y));
      const below = (r: number): boolean => top.value - r * bottom.value - edge(top.value - a.low, b.high - bottom.value, r) > 0;
      const above = (r: number): boolean => top.value - r * bottom.value + edge(a.high - top.value, bottom.value - b.low, r) < 0;
      return { low: value <= 0 ? Math.min(0, value) : bisect(0, value, below), high: firstAbove(value, above) };
    },
  };
}

/** Where `holds` changes between `from`, at which it holds, and `to`; `from` itself if it holds nowhere. */
function bisect(from: number, to: number, holds: (r: number) => boolean): number {
  if (!holds(from)) return from;
  let [yes, no] = [from, to];
  for (let round = 0; round < 60; round += 1) {
    const middle = (yes + no) / 2;
    if (holds(middle)) yes = middle;
    else no = middle;
  }
  return (yes + no) / 2;
}

/** The first r at or above `from` for which `holds`; Infinity where there is none. */
function firstAbove(from: number, holds: (r: number) => boolean): number {
  let high = Math.max(1, 2 * Math.abs(from));
  while (!holds(high)) {
    high *= 2;
    if (high > 1e6) return Infinity;
  }
  return bisect(high, Math.max(0, from), holds);
}

/** How far runs of unlike seeds differ, next to the error of the rows. */
export interface SeedSpread {
  /** Standard error of the seeds' mean, s/√S. */
  error: number;
  /** Degrees of freedom of both together: (A + B)² / (B² / (S−1)) (Satterthwaite 1946). */
  df: number;
}

/** The spread of the seeds' values beside an estimate that only knows that of the rows; null for one seed, and where they agree. */
export function seedSpread(rows: Estimate, values: readonly number[]): SeedSpread | null {
  const seeds = values.length;
  if (seeds < 2) return null;
  const middle = values.reduce((sum, value) => sum + value, 0) / seeds;
  const between = values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (seeds - 1) / seeds;
  if (between === 0) return null;
  const usual = rows.interval(0.95);
  const within = ((usual.high - usual.low) / 2 / normalQuantile(0.975)) ** 2;
  return { error: Math.sqrt(between), df: Math.min(1e6, (within + between) ** 2 / (between ** 2 / (seeds - 1))) };
}

/**
 * Adds the variation between runs of unlike seeds to an estimate that only knows that of the rows. With A the rows' error (from
 * their 95 % interval) and B that of the seeds, squared, the limits are joined in squares, each side at the t quantile of
 * `seedSpread`: wide where seeds decide, as z where rows do. What rows and seeds do together is in both A and B: on the safe
 * side (crossed data: Owen 2007). One seed: nothing is added.
 */
export function withSeeds(rows: Estimate, values: readonly number[]): Estimate {
  const spread = seedSpread(rows, values);
  if (spread === null) return rows;
  return {
    value: rows.value,
    interval(level) {
      const t = studentQuantile(0.5 + level / 2, spread.df);
      const wider = t / normalQuantile(0.5 + level / 2);
      const { low, high } = rows.interval(level);
      return { low: rows.value - Math.hypot(wider * (rows.value - low), t * spread.error), high: rows.value + Math.hypot(wider * (high - rows.value), t * spread.error) };
    },
  };
}

/** Two-sided p-value of "the value is `wanted`": 1 − the level at which the interval begins to hold it. Agrees with the interval by construction. */
export function pValue(estimate: Estimate, wanted = 0): number {
  if (Number.isNaN(estimate.value)) return NaN;
  if (Math.abs(estimate.value - wanted) < 1e-12) return 1;
  const excluded = (p: number): boolean => {
    const { low, high } = estimate.interval(1 - p);
    return wanted < low || wanted > high;
  };
  // The p-value is the smallest p whose interval leaves `wanted` out: searched on a logarithmic scale.
  let [no, yes] = [Math.log(1e-12), 0];
  if (excluded(1e-12)) return 1e-12;
  for (let round = 0; round < 50; round += 1) {
    const middle = (no + yes) / 2;
    if (excluded(Math.exp(middle))) yes = middle;
    else no = middle;
  }
  return Math.exp(yes);
}
