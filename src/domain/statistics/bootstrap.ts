import { mean, quantileSorted, sampleStandardDeviation } from "simple-statistics";
import { normalCdf, normalQuantile } from "./quantiles.ts";
import { seededRandom } from "./random.ts";
import type { Interval } from "./shares.ts";

export interface BootstrapOptions {
  level?: number;
  resamples?: number;
  /** The same seed gives the same interval. */
  seed?: number;
  /** `bca` corrects bias and skew (Efron 1987); `percentile` is the plain one. */
  method?: "percentile" | "bca";
}

export interface Bootstrapped {
  estimate: number;
  standardError: number;
  interval: Interval;
  /** Resamples for which the statistic was a number. */
  resamples: number;
}

/**
 * Interval of any statistic by resampling. `strata` are the sizes of the sets that are drawn from separately (rows of each
 * probe set, or their groups; seeds are a set of their own, so rows and seeds are crossed: the pigeonhole bootstrap of
 * Owen 2007, Annals of Applied Statistics 1(2), which is never too narrow for crossed data). `statistic` gets how often each
 * unit was drawn, strata one after the other; it may say NaN where it has no value.
 */
export function bootstrap(strata: readonly number[], statistic: (drawn: Float64Array) => number, options: BootstrapOptions = {}): Bootstrapped {
  const { level = 0.95, resamples = 2000, seed = 0, method = "percentile" } = options;
  const units = strata.reduce((sum, size) => sum + size, 0);
  const drawn = new Float64Array(units).fill(1);
  const estimate = statistic(drawn);
  const random = seededRandom(seed);
  const values: number[] = [];
  for (let round = 0; round < resamples; round += 1) {
    drawn.fill(0);
    let first = 0;
    for (const size of strata) {
      for (let draw = 0; draw < size; draw += 1) {
        const at = first + Math.floor(random() * size);
        drawn[at] = (drawn[at] as number) + 1;
      }
      first += size;
    }
    const value = statistic(drawn);
    if (!Number.isNaN(value)) values.push(value);
  }
  if (values.length < 2 || Number.isNaN(estimate)) return { estimate, standardError: NaN, interval: { low: NaN, high: NaN }, resamples: values.length };
  values.sort((a, b) => a - b);
  const tail = (1 - level) / 2;
  const [low, high] = method === "bca" ? bcaTails(strata, statistic, estimate, values, tail) : [tail, 1 - tail];
  return {
    estimate,
    standardError: sampleStandardDeviation(values),
    interval: { low: quantileSorted(values, low), high: quantileSorted(values, high) },
    resamples: values.length,
  };
}

/** Efron 1987, JASA 82; the acceleration of several strata as in Davison & Hinkley 1997, eq. 5.30. */
function bcaTails(strata: readonly number[], statistic: (drawn: Float64Array) => number, estimate: number, sorted: readonly number[], tail: number): [number, number] {
  const below = sorted.filter((value) => value < estimate).length + sorted.filter((value) => value === estimate).length / 2;
  const bias = normalQuantile(below / sorted.length);
  if (!Number.isFinite(bias)) return [tail, 1 - tail];
  const drawn = new Float64Array(strata.reduce((sum, size) => sum + size, 0)).fill(1);
  let [cubes, squares, first] = [0, 0, 0];
  for (const size of strata) {
    const without = Array.from({ length: size }, (_, index) => {
      drawn[first + index] = 0;
      const value = statistic(drawn);
      drawn[first + index] = 1;
      return value;
    });
    first += size;
    if (size < 2 || without.some(Number.isNaN)) continue;
    const middle = mean(without);
    for (const value of without) {
      const influence = (size - 1) * (middle - value);
      cubes += influence ** 3 / size ** 3;
      squares += influence ** 2 / size ** 2;
    }
  }
  const acceleration = squares > 0 ? cubes / (6 * squares ** 1.5) : 0;
  const corrected = (p: number): number => {
    const z = bias + normalQuantile(p);
    return Math.min(1, Math.max(0, normalCdf(bias + z / (1 - acceleration * z))));
  };
  return [corrected(tail), corrected(1 - tail)];
}

/** Mean of b − a over the same items by bootstrap; with `clusters` whole groups are drawn. */
export function pairedBootstrap(a: readonly number[], b: readonly number[], options: BootstrapOptions & { clusters?: readonly string[] } = {}): Bootstrapped & { clusters: number } {
  const groups = new Map<string, { sum: number; n: number }>();
  a.forEach((value, index) => {
    const key = options.clusters === undefined ? String(index) : options.clusters[index] ?? "";
    const group = groups.get(key) ?? { sum: 0, n: 0 };
    groups.set(key, { sum: group.sum + (b[index] as number) - value, n: group.n + 1 });
  });
  const list = [...groups.values()];
  const meanOf = (drawn: Float64Array): number => {
    let [sum, n] = [0, 0];
    list.forEach((group, index) => {
      sum += (drawn[index] as number) * group.sum;
      n += (drawn[index] as number) * group.n;
    });
    return sum / n;
  };
  return { ...bootstrap([list.length], meanOf, options), clusters: list.length };
}
