import type { Split } from "../../protocol/runSpec.ts";
import { AppError } from "../../util/errors.ts";
import { adjustColumn, type Correction } from "../statistics/corrections.ts";
import { pValue, seedSpread, withSeeds, type Estimate, type SeedSpread } from "../statistics/estimates.ts";
import { mcnemarExact, tooFewItems } from "../statistics/pairs.ts";
import { smallestVisibleDrop } from "../statistics/power.ts";
import { normalQuantile, studentQuantile } from "../statistics/quantiles.ts";
import type { Interval } from "../statistics/shares.ts";
import { countsOf, sumOfChanges, unitsOf, type PairedSet } from "./pairedSet.ts";

/** The four questions, and what is told beside them. */
export type Question = "retention" | "new-skill" | "ood" | "routing" | "transfer" | "seesaw" | "churn" | "benchmark" | "against-baseline";

export interface EvaluationRow {
  question: Question;
  /** What is measured, for programs: `retention`, `gain`, `ood-shift`, `bwt`, … */
  measure: string;
  /** null: over several skills. */
  skill: string | null;
  split: Split | string | null;
  /** `share`: 0 to 1; `points`: a difference of shares; `ratio`: of two shares; `index`: 0 to 1. All as fractions. */
  unit: "share" | "points" | "ratio" | "index";
  /** null: see `why`. */
  estimate: number | null;
  interval: Interval | null;
  /** Two-sided, of "nothing changed"; null where nothing is tested. */
  p: number | null;
  /** The same, corrected for all tests of the table. */
  adjusted: number | null;
  /** Prompts, and independent pieces of evidence among them where rows have groups. */
  n: number;
  groups: number | null;
  seeds: number;
  from: { label: string; accuracy: number } | null;
  to: { label: string; accuracy: number } | null;
  /** Rows that passed before and fail after, and the reverse: means over the seeds. */
  lost: number | null;
  gained: number | null;
  /** The smallest drop that this comparison would show in four of five cases at its corrected level; null: none of any size. */
  smallestDrop: number | null;
  /** What that drop follows from: as one set of so many rows, of which this share changed either way, times `scale`; and how far the seeds differ. */
  resolution: { rows: number; background: number; scale: number; seeds: SeedSpread | null } | null;
  /** How interval and p were made. */
  method: string;
  /** Too few prompts to judge by; a sentence. */
  tooFew: string | null;
  /** Why there is no estimate; a sentence. */
  why: string | null;
  /** Rows of a set that only one side has: left out. */
  leftOut: number;
}

export type RowHead = Pick<EvaluationRow, "question" | "measure" | "skill" | "split"> & Partial<Pick<EvaluationRow, "unit">>;

const nothing = { estimate: null, interval: null, p: null, adjusted: null, n: 0, groups: null, seeds: 0, from: null, to: null, lost: null, gained: null, smallestDrop: null, resolution: null, method: "", tooFew: null, why: null, leftOut: 0 };

/** A row without an estimate: `why` says the reason. */
export function emptyRow(head: RowHead, why: string): EvaluationRow {
  return { ...nothing, unit: "points", ...head, why };
}

/** Makes a row; what cannot be compared or was not checked becomes a row that says so. */
export function rowOrReason(head: RowHead, make: () => EvaluationRow): EvaluationRow {
  try {
    return make();
  } catch (error) {
    if (!AppError.is(error, "not-comparable") && !AppError.is(error, "not-found")) throw error;
    return emptyRow(head, error.message);
  }
}

/** A 95 % interval within what the number can be: sums of intervals, and t, reach beyond. */
export function clamped(estimate: Estimate, least: number, most: number): Interval {
  const { low, high } = estimate.interval(0.95);
  return { low: Math.max(least, low), high: Math.min(most, high) };
}

/** A row for a share, which is no change of paired rows. */
export function plainRow(head: RowHead, estimate: Estimate, more: Partial<EvaluationRow>): EvaluationRow {
  return { ...nothing, unit: "share", ...head, estimate: estimate.value, interval: clamped(estimate, 0, 1), tooFew: tooFewItems(more.groups ?? more.n ?? 0), ...more };
}

const methods = {
  one: "McNemar's exact test; Tango's score interval",
  many: "sum of Tango's score intervals (MOVER)",
  clustered: "t with errors clustered by group",
  seeds: ", and t over the seeds",
};

/** The row of a weighted sum of paired changes. */
export function changeRow(head: RowHead, terms: readonly { weight: number; set: PairedSet }[], labels: { before: string; after: string }): EvaluationRow {
  const sum = sumOfChanges(terms);
  const sets = sum.terms.map(({ set }) => set);
  const seeds = sum.perSeed.length;
  const estimate = withSeeds(sum.rows, sum.perSeed);
  const [only] = sets as [PairedSet];
  const grouped = sets.some(({ groups }) => groups !== null);
  const exact = sets.length === 1 && seeds === 1 && !grouped && Math.abs(terms[0]?.weight ?? 0) === 1;
  const counts = sets.map(countsOf);
  const lost = counts.reduce((total, one) => total + one.lost, 0);
  const gained = counts.reduce((total, one) => total + one.gained, 0);
  const positive = sum.terms.every(({ weight }) => weight > 0);
  const most = sum.terms.reduce((total, { weight }) => total + Math.abs(weight), 0);
  const level = (which: "before" | "after"): number => sum.terms.reduce((total, { weight, set }) => total + weight * (countsOf(set).kept + countsOf(set)[which === "before" ? "lost" : "gained"]) / countsOf(set).n, 0);
  const n = counts.reduce((total, one) => total + one.n, 0);
  const units = sets.reduce((total, set) => total + unitsOf(set), 0);
  return {
    ...nothing,
    unit: "points",
    ...head,
    estimate: estimate.value,
    interval: clamped(estimate, -most, most),
    p: exact ? mcnemarExact(countsOf(only).lost, countsOf(only).gained) : pValue(estimate),
    n,
    groups: grouped ? units : null,
    seeds,
    from: positive ? { label: labels.before, accuracy: level("before") } : null,
    to: positive ? { label: labels.after, accuracy: level("after") } : null,
    lost: positive ? lost : null,
    gained: positive ? gained : null,
    resolution: { ...resolutionOf(sum.terms), seeds: seedSpread(sum.rows, sum.perSeed) },
    method: `${exact || (sets.length === 1 && !grouped) ? (exact ? methods.one : "Tango's score interval") : grouped ? methods.clustered : methods.many}${seeds > 1 ? methods.seeds : ""}`,
    tooFew: tooFewItems(Math.min(...sets.map(unitsOf))),
    leftOut: Math.max(...sets.map(({ leftOut }) => leftOut)),
  };
}

/** Of a weighted sum: as of one set with as many rows as give the same variance. */
function resolutionOf(terms: readonly { weight: number; set: PairedSet }[]): Omit<NonNullable<EvaluationRow["resolution"]>, "seeds"> {
  const parts = terms.map(({ weight, set }) => {
    const { lost, gained, n } = countsOf(set);
    return { weight: Math.abs(weight), background: (2 * Math.min(lost, gained)) / n, units: unitsOf(set) };
  });
  const total = parts.reduce((sum, { weight }) => sum + weight, 0);
  const spread = parts.reduce((sum, { weight, units }) => sum + weight ** 2 / units, 0);
  const background = parts.reduce((sum, { weight, background: share, units }) => sum + (weight ** 2 * share) / units, 0) / spread;
  return { rows: total ** 2 / spread, background, scale: total };
}

/** Corrects the p-values of a table for their number, and says for each row which drop it would show at that level. */
export function correctTable(rows: readonly EvaluationRow[], correction: Correction): EvaluationRow[] {
  const adjusted = adjustColumn(rows.map(({ p }) => p), correction);
  const tests = adjusted.filter((p) => p !== null).length;
  return rows.map((row, index) => ({ ...row, adjusted: adjusted[index] ?? null, smallestDrop: row.resolution === null ? null : dropOf(row.resolution, Math.max(1, tests)) }));
}

/** The rows' part, and that of the seeds at the t quantile of both together, joined in squares as in `withSeeds`. */
function dropOf({ rows, background, scale, seeds }: NonNullable<EvaluationRow["resolution"]>, tests: number): number | null {
  const drop = smallestVisibleDrop(rows, background, { sides: 2, tests });
  if (drop === null || seeds === null) return drop === null ? null : drop * scale;
  const level = 1 - 0.05 / 2 / tests;
  const t = studentQuantile(level, seeds.df) + studentQuantile(0.8, seeds.df);
  const both = Math.hypot((drop * scale * t) / (normalQuantile(level) + normalQuantile(0.8)), t * seeds.error);
  return both > scale ? null : both;
}
