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
  const allowed = Math.floor(rate * healthy.length + 1e-9);
  if (candidate.kind === "score") return thresholdFor(candidate, healthy, allowed);
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

/** Alarms are scores above the threshold, so the (allowed + 1)-th highest score of the healthy runs is the lowest threshold that keeps the rate. */
function thresholdFor(candidate: ScoreCandidate, healthy: readonly RawRun[], allowed: number): number | null {
  if (healthy.length === 0) return null;
  const highest = healthy.map((run) => highestScore(candidate, run)).sort((a, b) => b - a);
  const threshold = highest[Math.min(allowed, highest.length - 1)] as number;
  return Number.isFinite(threshold) ? threshold : null;
}
