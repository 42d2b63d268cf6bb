import { AppError } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { combine, type Estimate } from "../statistics/estimates.ts";
import { meanEstimate } from "../statistics/means.ts";
import { tangoInterval, type PairCounts } from "../statistics/pairs.ts";
import { studentQuantile } from "../statistics/quantiles.ts";
import { wilsonInterval } from "../statistics/shares.ts";
import { setName, setOf, type ResultRow, type ResultSplit, type SetResult } from "./evaluatedSystem.ts";
import { mustCompare } from "./settings.ts";

/** One prompt before and after, in one run. */
export interface RowPair {
  before: boolean;
  after: boolean;
}

/** One probe set before and after, prompt by prompt, in every run. */
export interface PairedSet {
  skill: string;
  split: ResultSplit;
  /** Of each seed, the pairs in the order of `groups`. */
  seeds: RowPair[][];
  /** The group of each row; null where rows stand for themselves. */
  groups: string[] | null;
  /** Rows that are not on both sides of every seed: left out. */
  leftOut: number;
}

/** The results of a probe set at the two ends of a comparison, one pair a seed. */
export interface Ends {
  before: readonly SetResult[];
  after: readonly SetResult[];
}

/** The probe set in both results of every seed, or AppError("not-found") with the name of the end that lacks it. */
export function ends(skill: string, split: ResultSplit, seeds: readonly { before: readonly SetResult[]; after: readonly SetResult[] }[], labels: { before: string; after: string }): Ends {
  const name = setName(skill, split);
  const need = (results: readonly SetResult[], label: string): SetResult => {
    const found = setOf(results, skill, split);
    if (found === undefined || found.rows.length === 0) throw new AppError("not-found", t("{0} was not checked at {1}.", name, label));
    return found;
  };
  return { before: seeds.map(({ before }) => need(before, labels.before)), after: seeds.map(({ after }) => need(after, labels.after)) };
}

/** Pairs the rows of a set by key. Throws AppError("not-comparable") naming the settings that differ. */
export function pairSet({ before, after }: Ends): PairedSet {
  const [first] = before as [SetResult];
  const { skill, split } = first;
  const name = setName(skill, split);
  for (const one of [...before, ...after]) mustCompare(first.settings, one.settings, name);
  const maps = [...before, ...after].map(({ rows }) => new Map(rows.map((row) => [row.key, row])));
  const keys = [...new Set(first.rows.map(({ key }) => key))].filter((key) => maps.every((map) => map.has(key)));
  const all = new Set(maps.flatMap((map) => [...map.keys()]));
  if (keys.length === 0) throw new AppError("not-comparable", t("{0} is not comparable: the two have no prompt in common.", name));
  const row = (map: ReadonlyMap<string, ResultRow> | undefined, key: string): ResultRow => map?.get(key) as ResultRow;
  const seeds = before.map((_, seed) => keys.map((key): RowPair => ({ before: row(maps[seed], key).correct, after: row(maps[before.length + seed], key).correct })));
  const groups = first.rows.some(({ group }) => group !== undefined) ? keys.map((key) => row(maps[0], key).group ?? `row ${key}`) : null;
  return { skill, split, seeds, groups, leftOut: all.size - keys.length };
}

/** How often rows were kept, lost and gained: the mean over the seeds. */
export function countsOf({ seeds }: Pick<PairedSet, "seeds">): PairCounts {
  const counts = { kept: 0, lost: 0, gained: 0, n: seeds[0]?.length ?? 0 };
  for (const pairs of seeds) {
    for (const { before, after } of pairs) {
      if (before && after) counts.kept += 1 / seeds.length;
      else if (before) counts.lost += 1 / seeds.length;
      else if (after) counts.gained += 1 / seeds.length;
    }
  }
  return counts;
}

/** Number of independent pieces of evidence: rows, or groups of rows. */
export function unitsOf({ seeds, groups }: PairedSet): number {
  return groups === null ? (seeds[0]?.length ?? 0) : new Set(groups).size;
}

/**
 * The change of the pass rate, after − before, as far as the rows decide it: Tango's score interval on the counts; t on the
 * rows' mean changes with clustered errors where rows have groups; Tango with one item a group where clustered errors are 0
 * because all rows agree. Counts of several seeds are means, taken as of so many rows as have the error of the rows' mean
 * changes: between n, when every seed repeats the same changes, and n times the seeds.
 */
export function changeOf(set: PairedSet): Estimate {
  const counts = countsOf(set);
  const value = (counts.gained - counts.lost) / counts.n;
  const score = (units: number): Estimate => ({ value, interval: (level) => tangoInterval({ lost: (counts.lost * units) / counts.n, gained: (counts.gained * units) / counts.n, n: units }, level) });
  const changes = (set.seeds[0] ?? []).map((_, row) => set.seeds.reduce((sum, pairs) => sum + Number(pairs[row]?.after) - Number(pairs[row]?.before), 0) / set.seeds.length);
  if (set.groups !== null) return clustered(value, changes, set.groups, -1, score);
  return score(effectiveRows(changes, (counts.lost + counts.gained) / counts.n - value * value, set.seeds.length));
}

/** A share of rows (each its mean over the seeds) as an estimate: Wilson; with groups t on clustered errors, Wilson with one item a group where all rows agree. */
export function shareOf(passed: readonly number[], groups: readonly string[] | null, seeds = 1): Estimate {
  const n = passed.length;
  const value = passed.reduce((sum, one) => sum + one, 0) / n;
  const score = (units: number): Estimate => ({ value, interval: (level) => wilsonInterval(value * units, units, level) });
  return groups === null ? score(effectiveRows(passed, value * (1 - value), seeds)) : clustered(value, passed, groups, 0, score);
}

/** The pass rate before or after, less the chance level: the rows' mean over the seeds. */
export function rateOf(set: PairedSet, which: "before" | "after", chance = 0): Estimate {
  const rows = set.seeds[0]?.map((_, row) => set.seeds.reduce((sum, pairs) => sum + Number(pairs[row]?.[which]), 0) / set.seeds.length) ?? [];
  const found = shareOf(rows, set.groups, set.seeds.length);
  return { value: found.value - chance, interval: (level) => ({ low: found.interval(level).low - chance, high: found.interval(level).high - chance }) };
}

export function shareOfPassed(passed: readonly boolean[]): number {
  return passed.filter(Boolean).length / passed.length;
}

/** Rows of one run that would have the error of these means over several runs; `single` is the variance within one run. */
function effectiveRows(means: readonly number[], single: number, seeds: number): number {
  const n = means.length;
  if (seeds === 1 || !(single > 0)) return n;
  const middle = means.reduce((sum, one) => sum + one, 0) / n;
  const variance = means.reduce((sum, one) => sum + (one - middle) ** 2, 0) / n;
  return n * Math.min(seeds, Math.max(1, single / variance));
}

function clustered(value: number, values: readonly number[], groups: readonly string[], least: number, score: (units: number) => Estimate): Estimate {
  const { standardError, df } = meanEstimate(values, { clusters: groups });
  if (!(standardError > 0)) return score(df + 1);
  return {
    value,
    interval(level) {
      const half = studentQuantile(0.5 + level / 2, df) * standardError;
      return { low: Math.max(least, value - half), high: Math.min(1, value + half) };
    },
  };
}

/** A weighted sum of the changes of several sets: its rows' part, the value of each seed, and what its smallest visible drop needs. */
export interface SumOfChanges {
  rows: Estimate;
  perSeed: number[];
  terms: { weight: number; set: PairedSet }[];
}

/** Sets are independent of each other: no row is in two of them. */
export function sumOfChanges(terms: readonly { weight: number; set: PairedSet }[]): SumOfChanges {
  const seeds = terms[0]?.set.seeds.length ?? 0;
  const perSeed = Array.from({ length: seeds }, (_, seed) => terms.reduce((sum, { weight, set }) => {
    const pairs = set.seeds[seed] ?? [];
    return sum + (weight * pairs.reduce((total, { before, after }) => total + Number(after) - Number(before), 0)) / pairs.length;
  }, 0));
  return { rows: combine(terms.map(({ weight, set }) => ({ weight, estimate: changeOf(set) }))), perSeed, terms: [...terms] };
}
