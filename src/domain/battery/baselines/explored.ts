import { quantileOf } from "../../flags/quantile.ts";
import type { ScoreCandidate } from "../candidate.ts";
import { accuracyFalls, panelMargins } from "../panelMargins.ts";
import type { RawRun } from "../rawRun.ts";

/**
 * Signals that were tried and are not in the product (decision 0015 says why): thresholds on the panel's margins instead of a
 * test. They are judged like every baseline, so that what is said of them can be checked.
 */
export function explored(rows: number): ScoreCandidate[] {
  return [
    { ...named(rows, "tempered", "Explored: expected accuracy with temperature taken out"), score: (run, skill) => [-Infinity, ...accuracyFalls(run, skill, rows, 1, temperature)] },
    { ...named(rows, "tempered-2", "Explored: the same, scale 2"), score: (run, skill) => [-Infinity, ...accuracyFalls(run, skill, rows, 2, temperature)] },
    { ...named(rows, "halved", "Explored: share of rows whose margin fell by half, temperature taken out"), score: (run, skill) => halved(run, skill, rows) },
    { ...named(rows, "trend", "Explored: expected accuracy at the next look, if its last fall goes on"), score: trend(rows) },
  ];
}

function named(rows: number, id: string, label: string): Omit<ScoreCandidate, "score"> {
  return { kind: "score", id: `explored-${id}-n${rows}`, label: `${label} (n = ${rows})`, family: "baseline", needs: "scores", rows, parameters: {} };
}

/** Rows with a clear margin at the start tell the temperature: the median of now / start. A loss of some rows leaves it alone, one of all rows alike does not. */
function temperature(start: readonly number[], now: readonly number[]): number {
  const ratios = start.flatMap((margin, row) => (margin > 0.5 ? [(now[row] as number) / margin] : [])).sort((a, b) => a - b);
  return ratios.length < 9 ? 1 : Math.min(4, Math.max(0.25, quantileOf(Float64Array.from(ratios), 0.5)));
}

function halved(run: RawRun, skill: string, rows: number): number[] {
  const [start, ...later] = panelMargins(run, skill, rows);
  const right = start.map((margin, row) => ({ margin, row })).filter(({ margin }) => margin > 0.2);
  return [-Infinity, ...later.map((now) => {
    const by = temperature(start, now);
    return right.filter(({ margin, row }) => (now[row] as number) / by < margin / 2).length / Math.max(1, right.length);
  })];
}

function trend(rows: number) {
  return (run: RawRun, skill: string): number[] => {
    const falls = accuracyFalls(run, skill, rows, 1);
    return [-Infinity, ...falls.map((fall, look) => fall + Math.max(0, fall - (falls[look - 1] ?? 0)))];
  };
}
