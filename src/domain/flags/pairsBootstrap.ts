/**
 * The resamples that every margin detector of a series uses: rows (or clusters) drawn with replacement, the same rows at
 * every look, so that the joint law of the looks is kept (pairs bootstrap). Which rows are drawn depends on the series and
 * the run's seed alone, by a counter-based generator, so that TypeScript and numpy draw the same.
 */

/** Resamples. The level of a series is spent in units of 1/4000. */
export const resamples = 4000;

/** Below this variance a look has no spread at all. */
export const noSpread = 1e-10;

/** Seed of a series' draws: FNV-1a (32 bits) of its id in UTF-8, XOR the run's seed. */
export function seriesSeed(id: string, runSeed: number): number {
  return (fnv1a(id) ^ runSeed) >>> 0;
}

export function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}

/** Draw number `q` from 0: a row of n, by splitmix32 of a counter. */
export function drawnRow(seed: number, q: number, n: number): number {
  let z = (seed + Math.imul(q + 1, 0x9e3779b9)) | 0;
  z ^= z >>> 16;
  z = Math.imul(z, 0x21f0aaad);
  z ^= z >>> 15;
  z = Math.imul(z, 0x735a2d97);
  z ^= z >>> 15;
  return Math.floor(((z >>> 0) / 4294967296) * n);
}

/** How often each of n rows is in each resample, resample after resample. */
export function resampleCounts(seed: number, n: number): Uint8Array {
  const counts = new Uint8Array(resamples * n);
  for (let b = 0, q = 0; b < resamples; b += 1) {
    for (let draw = 0; draw < n; draw += 1, q += 1) {
      const at = b * n + drawnRow(seed, q, n);
      counts[at] = (counts[at] as number) + 1;
    }
  }
  return counts;
}

/** A look's values resampled. */
export interface Resampled {
  n: number;
  mean: number;
  /** Σ(x − mean)²/n, and the standard error of the mean √(variance/(n−1)). */
  variance: number;
  error: number;
  /** (mean of the resample − mean) / its own standard error, for every resample. */
  z: Float64Array;
}

/** Studentises the mean of `values` (one a row or cluster) on every resample. */
export function resample(counts: Uint8Array, values: Float64Array): Resampled {
  const n = values.length;
  const mean = values.reduce((sum, value) => sum + value, 0) / n;
  const centred = values.map((value) => value - mean);
  const squares = centred.map((value) => value * value);
  const variance = squares.reduce((sum, value) => sum + value, 0) / n;
  const z = new Float64Array(resamples);
  for (let b = 0, at = 0; b < resamples; b += 1) {
    let [sum, square] = [0, 0];
    for (let row = 0; row < n; row += 1, at += 1) {
      const count = counts[at] as number;
      sum += count * (centred[row] as number);
      square += count * (squares[row] as number);
    }
    const middle = sum / n;
    z[b] = middle / Math.sqrt(Math.max(square / n - middle * middle, noSpread) / (n - 1));
  }
  return { n, mean, variance, error: Math.sqrt(variance / (n - 1)), z };
}

/**
 * The loss (minus the mean) and its 90 % band by percentile-t: the 200th smallest and the 200th largest of the 4000. Each end
 * alone is a one-sided 95 % bound. Hall 1992, The Bootstrap and Edgeworth Expansion, §3.3.
 */
export function lossBand({ mean, error, z }: Resampled): { estimate: number; low: number; high: number } {
  const sorted = Float64Array.from(z).sort();
  const tail = resamples / 20;
  return { estimate: -mean, low: -mean + error * (sorted[tail - 1] as number), high: -mean + error * (sorted[resamples - tail] as number) };
}
