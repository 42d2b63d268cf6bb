import { incompleteBeta, normalQuantile } from "./quantiles.ts";

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
