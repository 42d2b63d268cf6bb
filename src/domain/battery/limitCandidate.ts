import { lossLimit } from "../flags/expectedAccuracy.ts";
import type { ScoreCandidate } from "./candidate.ts";
import { accuracyFalls } from "./panelMargins.ts";
import { allowedRate } from "./tune.ts";

/**
 * The detector `limit` as it runs in the product: points of expected accuracy against a limit. On the rows that the default is
 * chosen on the limit is what bank A tunes, and the product takes it over; on other panels it is the product's, since that
 * knows no other.
 */
export function limitCandidate(rows: number, choose: boolean): ScoreCandidate {
  return {
    kind: "score",
    id: `limit-all-s1-n${rows}`,
    label: `Expected accuracy against a limit: all tokens, scale 1 (n = ${rows})`,
    family: "limit",
    needs: "scores",
    rows,
    parameters: { margin: "all", scale: 1 },
    ...(choose ? {} : { fixed: lossLimit(allowedRate) }),
    score: (run, skill) => [-Infinity, ...accuracyFalls(run, skill, rows, 1).map(inHundredths)],
  };
}

/** Points, rounded up to hundredths: above a limit of whole hundredths exactly where the number itself is. */
function inHundredths(fall: number): number {
  return Math.ceil(fall * 10_000 - 1e-9) / 100;
}
