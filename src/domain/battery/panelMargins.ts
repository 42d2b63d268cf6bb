import { softRight } from "../flags/expectedAccuracy.ts";
import type { RawRun } from "./rawRun.ts";

/** Margins of a skill's first `rows` panel rows: the start's, then those of each look. */
export function panelMargins(run: RawRun, skill: string, rows: number): [number[], ...number[][]] {
  return (run.panel[skill]?.margin as number[][]).map((list) => list.slice(0, rows)) as [number[], ...number[][]];
}

/** Mean fall of expected accuracy since the start, as a share, at each look after it. `rescale`: what the margins of a look are divided by. */
export function accuracyFalls(run: RawRun, skill: string, rows: number, scale: number, rescale: (start: readonly number[], now: readonly number[]) => number = () => 1): number[] {
  const [start, ...later] = panelMargins(run, skill, rows);
  return later.map((now) => {
    const by = rescale(start, now);
    return start.reduce((sum, margin, row) => sum + softRight(margin, scale) - softRight((now[row] as number) / by, scale), 0) / start.length;
  });
}
