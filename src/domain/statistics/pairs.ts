import { t } from "../../util/l10n.ts";
import { formatNumber } from "../format.ts";
import { incompleteBeta, normalQuantile } from "./quantiles.ts";
import { wilsonInterval, type Interval } from "./shares.ts";

/** Which difference counts as evidence. `lost`: more items lost than gained. */
export type Alternative = "two-sided" | "lost" | "gained";

/**
 * McNemar's exact test on paired pass/fail results: under no difference, `lost` of the `lost + gained` items that changed is
 * Binomial(½). McNemar 1947; earlywarning research §10. With `midP` half of the probability of what was seen counts: closer
 * to the level than the exact test, which is below it, but not guaranteed to keep it (Fagerland, Lydersen & Laake 2013).
 */
export function mcnemarExact(lost: number, gained: number, alternative: Alternative = "two-sided", midP = false): number {
  const n = lost + gained;
  if (n === 0) return 1;
  const atLeast = (k: number): number => (k <= 0 ? 1 : k > n ? 0 : incompleteBeta(0.5, k, n - k + 1));
  const tail = (k: number): number => (midP ? (atLeast(k) + atLeast(k + 1)) / 2 : atLeast(k));
  if (alternative === "lost") return tail(lost);
  if (alternative === "gained") return tail(gained);
  return Math.min(1, 2 * tail(Math.max(lost, gained)));
}

/** Pass/fail results of the same items, twice. Counts may be means over several runs, so they need not be whole. */
export interface PairCounts {
  /** Passed before and after. */
  kept: number;
  /** Passed before, fails after (1→0). */
  lost: number;
  /** Failed before, passes after (0→1). */
  gained: number;
  n: number;
}

/**
 * Interval of the difference of two paired shares, (gained − lost) / n, by inverting the score test (Tango 1998, Statistics
 * in Medicine 17, eq. 8–10). Unlike mean ± t·SE it has a width where no item, or every item, changed.
 */
export function tangoInterval({ lost, gained, n }: Pick<PairCounts, "lost" | "gained" | "n">, level = 0.95): Interval {
  if (n <= 0) return { low: -1, high: 1 };
  const z = normalQuantile(0.5 + level / 2);
  const score = (delta: number): number => {
    const a = 2 * n;
    const b = -gained - lost + (2 * n - gained + lost) * delta;
    const c = -lost * delta * (1 - delta);
    const losing = Math.max(0, (Math.sqrt(Math.max(0, b * b - 4 * a * c)) - b) / (2 * a));
    const variance = n * (2 * losing + delta * (1 - delta));
    const excess = gained - lost - n * delta;
    return variance <= 0 ? (excess === 0 ? 0 : Math.sign(excess) * Infinity) : excess / Math.sqrt(variance);
  };
  const estimate = (gained - lost) / n;
  const solve = (from: number, to: number, target: number): number => {
    // The score falls as delta rises; `from` is the end where it lies above the target.
    let [above, below] = [from, to];
    for (let round = 0; round < 60; round += 1) {
      const middle = (above + below) / 2;
      if (score(middle) > target) above = middle;
      else below = middle;
    }
    return (above + below) / 2;
  };
  return { low: solve(-1, estimate, z), high: solve(estimate, 1, -z) };
}

/**
 * The same by joining the two Wilson intervals with the items' correlation φ (Newcombe 1998, Statistics in Medicine 17,
 * method 10, φ continuity-corrected). Closed form; agrees with Tango's to about a point.
 */
export function newcombeInterval(counts: PairCounts, level = 0.95): Interval {
  const { kept, lost, gained, n } = counts;
  if (n <= 0) return { low: -1, high: 1 };
  const [before, after] = [kept + lost, kept + gained];
  const delta = (after - before) / n;
  const a = sides(after, n, level);
  const b = sides(before, n, level);
  const phi = correlation(counts, true);
  const join = (x: number, y: number): number => Math.sqrt(Math.max(0, x * x - 2 * phi * x * y + y * y));
  return { low: Math.max(-1, delta - join(a.down, b.up)), high: Math.min(1, delta + join(a.up, b.down)) };
}

function sides(correct: number, n: number, level: number): { down: number; up: number } {
  const { low, high } = wilsonInterval(correct, n, level);
  return { down: correct / n - low, up: high - correct / n };
}

/** Correlation φ of passing before and after; 0 where one of them never varies. */
export function correlation({ kept, lost, gained, n }: PairCounts, corrected = false): number {
  const failed = n - kept - lost - gained;
  const product = (kept + lost) * (gained + failed) * (kept + gained) * (lost + failed);
  if (product <= 0) return 0;
  const cross = kept * failed - lost * gained;
  return (corrected && cross > 0 ? Math.max(0, cross - n / 2) : cross) / Math.sqrt(product);
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

/** Fewer items than this are shown but never judged (earlywarning research §0.5). */
export const fewestItems = 32;

/** The sentence for a set too small to judge by (case S02), or null. */
export function tooFewItems(n: number): string | null {
  if (n >= fewestItems) return null;
  return n === 0 ? t("No items: nothing was checked.") : t("Too few items: one item is {0} points.", formatNumber(100 / n, 1));
}
