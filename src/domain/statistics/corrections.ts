/** How the p-values of one table are corrected for their number. `holm` keeps the chance of any false finding, `benjamini-hochberg` the expected share of false ones. */
export type Correction = "holm" | "benjamini-hochberg";

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

/**
 * The same for the false discovery rate, valid for independent or positively dependent tests.
 * Benjamini & Hochberg 1995, JRSS B 57(1); adjusted p-values as in Yekutieli & Benjamini 1999.
 */
export function benjaminiHochberg(pValues: readonly number[], level = 0.05): { adjusted: number[]; rejected: boolean[] } {
  const order = pValues.map((p, index) => ({ p, index })).sort((a, b) => b.p - a.p);
  const adjusted = new Array<number>(pValues.length);
  let lowest = 1;
  order.forEach(({ p, index }, rank) => {
    lowest = Math.min(lowest, (p * pValues.length) / (pValues.length - rank));
    adjusted[index] = lowest;
  });
  return { adjusted, rejected: adjusted.map((p) => p <= level) };
}

/** Adjusted p-values of a table's column. Cells without a test (null) stay null and do not count. */
export function adjustColumn(pValues: readonly (number | null)[], correction: Correction): (number | null)[] {
  const tested = pValues.filter((p): p is number => p !== null);
  const { adjusted } = (correction === "holm" ? holm : benjaminiHochberg)(tested);
  let next = 0;
  return pValues.map((p) => (p === null ? null : (adjusted[next++] as number)));
}
