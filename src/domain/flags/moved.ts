import type { MovedRow } from "../../protocol/journal.ts";
import { cleanMargin } from "./margins.ts";

/** A row at the start and now. `margins`: of each token (`tokenMargins`); `tokens`: those its margin is the least of. */
export interface RowChange {
  row: number;
  line: number;
  start: Float64Array;
  now: Float64Array;
  tokens: readonly number[];
}

const mostRows = 5;
const mostTokens = 5;

/**
 * The rows whose margin fell most, at most five, and in each the tokens that fell most, at most five, in the order of the text:
 * where to look first. Only falls beyond `noise` nats count. Ties: the earlier row or token.
 */
export function movedMost(rows: readonly RowChange[], noise: number): MovedRow[] {
  const least = (margins: Float64Array, tokens: readonly number[]): number => tokens.reduce((low, token) => Math.min(low, cleanMargin(margins[token] ?? NaN)), Infinity);
  return rows
    .map((change) => ({ ...change, change: least(change.now, change.tokens) - least(change.start, change.tokens) }))
    .filter(({ change }) => change < -noise)
    .sort((a, b) => a.change - b.change || a.row - b.row)
    .slice(0, mostRows)
    .map(({ row, line, change, start, now, tokens }) => {
      const falls = tokens.map((token) => ({ token, fall: cleanMargin(start[token] ?? NaN) - cleanMargin(now[token] ?? NaN) })).filter(({ fall }) => fall > noise);
      const most = falls.sort((a, b) => b.fall - a.fall || a.token - b.token).slice(0, mostTokens);
      return { row, line, tokens: most.map(({ token }) => token).sort((a, b) => a - b), change };
    });
}
