import type { SeriesNoise } from "./detector.ts";
import { cleanMargin } from "./margins.ts";
import { quantileOf } from "./quantile.ts";

/** Scores of the same rows, in the same order. */
export interface RowScores {
  nll: Float64Array;
  margins: Float64Array;
}

/**
 * A/A noise of a series: the start checkpoint scored twice (other batch size, order or padding). `margin_sd` is the root mean
 * square of the margin's change, so it is the noise of a change, which is what detectors look at, with any bias in it.
 */
export function seriesNoise(start: RowScores, again: RowScores): SeriesNoise {
  const changes = start.nll.map((value, row) => Math.abs((again.nll[row] as number) - value)).sort();
  const squares = start.margins.reduce((sum, value, row) => sum + (cleanMargin(again.margins[row] as number) - cleanMargin(value)) ** 2, 0);
  return { nll_q99: quantileOf(changes, 0.99), margin_sd: start.margins.length === 0 ? 0 : Math.sqrt(squares / start.margins.length) };
}
