import { quantileOf } from "./quantile.ts";

/** No density is taken to be smaller: a tolerance in nats would grow without limit where hardly any row is undecided. */
export const leastDensity = 0.02;

/**
 * Density of start margins at 0, how many rows a nat of margin costs: Gaussian kernel with Silverman's bandwidth
 * 0.9·min(sd, IQR/1.34)·n^(−1/5) (Silverman 1986, Density Estimation, eq. 3.31), at least `leastDensity`.
 */
export function densityAtZero(margins: Float64Array): number {
  const n = margins.length;
  const mean = margins.reduce((sum, value) => sum + value, 0) / n;
  const sd = Math.sqrt(margins.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (n - 1));
  const sorted = Float64Array.from(margins).sort();
  const spreads = [sd, (quantileOf(sorted, 0.75) - quantileOf(sorted, 0.25)) / 1.34].filter((spread) => spread > 0);
  if (spreads.length === 0) return leastDensity;
  const width = 0.9 * Math.min(...spreads) * n ** -0.2;
  const sum = margins.reduce((total, value) => total + Math.exp(-0.5 * (value / width) ** 2), 0);
  return Math.max(leastDensity, sum / (n * width * Math.sqrt(2 * Math.PI)));
}
