import type { RawRun } from "./rawRun.ts";

/**
 * Something that may alarm. Every candidate has one knob, and only the knob is tuned on bank A:
 * `score` alarms at the first look whose score is above a threshold; `level` alarms where its own test does at a false-alarm budget of the run.
 */
export type Candidate = ScoreCandidate | LevelCandidate;

interface Named {
  id: string;
  /** As the report card calls it. */
  label: string;
  family: Family;
  /** What it must be given at a look: for the ties of the choice and the table of costs. */
  needs: "scores" | "answers" | "benchmark" | "training";
  /** Rows of the panel; null where it does not look at the panel. */
  rows: number | null;
  /** Fixed parameters, for the report. */
  parameters: Record<string, string | number>;
  /** A knob that is not tuned. */
  fixed?: number;
}

export type Family = "limit" | "soft" | "shift" | "strict" | "nll" | "baseline";

export interface ScoreCandidate extends Named {
  kind: "score";
  /** By look (that of look 0 is not read). −Infinity where nothing was measured. */
  score(run: RawRun, skill: string): number[];
}

export interface LevelCandidate extends Named {
  kind: "level";
  /** Index of the first look that alarms, or null. */
  first(run: RawRun, skill: string, alpha: number): number | null;
}

/** Budgets of false alarms per run that a `level` candidate may be tuned to. */
export const alphaGrid = [0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4] as const;

/** Of each watched skill, in the run's order: index of the look of the first alarm, or null. */
export function alarmsOf(candidate: Candidate, run: RawRun, knob: number): (number | null)[] {
  return run.skills.map((skill) => (candidate.kind === "level" ? candidate.first(run, skill, knob) : firstAbove(candidate.score(run, skill), knob)));
}

export function firstAbove(scores: readonly number[], threshold: number): number | null {
  const at = scores.findIndex((score, look) => look > 0 && score > threshold);
  return at < 0 ? null : at;
}
