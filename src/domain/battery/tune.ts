import { alarmsOf, alphaGrid, type Candidate, type ScoreCandidate } from "./candidate.ts";
import type { RawRun } from "./rawRun.ts";

/** Share of healthy runs in which a tuned candidate may alarm. */
export const allowedRate = 0.1;

/**
 * The most sensitive setting of a candidate's knob with which at most a tenth of the healthy runs show any alarm. null: even the
 * least sensitive one alarms in more. Thresholds are exact (between the healthy runs' own highest scores); budgets come from a grid.
 */
export function tune(candidate: Candidate, healthy: readonly RawRun[], rate = allowedRate): number | null {
  if (candidate.fixed !== undefined) return candidate.fixed;
  if (candidate.kind === "score") return lowestThreshold(healthy.map((run) => highestScore(candidate, run)), rate);
  const allowed = allowedOf(healthy.length, rate);
  const keeps = (alpha: number): boolean => {
    let alarmed = 0;
    for (const run of healthy) {
      if (alarmsAnywhere(candidate, run, alpha)) alarmed += 1;
      if (alarmed > allowed) return false;
    }
    return true;
  };
  if (healthy.length === 0) return null;
  const largest = alphaGrid.at(-1) as number;
  if (keeps(largest)) return largest;
  // A larger budget alarms in no fewer runs, so the rest is searched by halving. [low, high): the first budget that does not keep the rate.
  let low = 0;
  let high = alphaGrid.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (keeps(alphaGrid[middle] as number)) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? null : (alphaGrid[low - 1] as number);
}

function alarmsAnywhere(candidate: Candidate, run: RawRun, knob: number): boolean {
  return alarmsOf(candidate, run, knob).some((look) => look !== null);
}

/** The highest score of a run over its skills and looks. */
export function highestScore(candidate: ScoreCandidate, run: RawRun): number {
  return Math.max(...run.skills.flatMap((skill) => candidate.score(run, skill).slice(1)));
}

/**
 * Alarms are scores above the threshold, so the (allowed + 1)-th of the healthy runs' highest scores is the lowest threshold that
 * keeps the rate. null where there is none.
 */
export function lowestThreshold(highest: readonly number[], rate: number): number | null {
  if (highest.length === 0) return null;
  const threshold = [...highest].sort((a, b) => b - a)[Math.min(allowedOf(highest.length, rate), highest.length - 1)] as number;
  return Number.isFinite(threshold) ? threshold : null;
}

/** How many of so many healthy runs may alarm. */
function allowedOf(runs: number, rate: number): number {
  return Math.floor(rate * runs + 1e-9);
}
