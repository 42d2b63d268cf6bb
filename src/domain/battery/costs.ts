import type { BankFile } from "./bank.ts";

/** What watching costs, in ratios of this bank: seconds of one machine do not carry over, ratios of scoring to training roughly do. */
export interface Costs {
  /** Rows of a skill's panel. */
  rows: number;
  /** Processor seconds of scoring so many rows of every watched skill at one look, per 100 steps' training. */
  look_share: number;
  /** Scoring at all looks of a run, as a share of its training; and the same with every answer generated. */
  run_share: number;
  answers_share: number;
  /** The 200-row benchmark at its own cadence. */
  benchmark_share: number;
  looks: number;
  /** Tokens of a look at the panel, verified answers only. */
  tokens: number;
}

/** Over the runs that train (copies and temperature edits do not). */
export function costsOf(bank: BankFile, rows: number): Costs {
  const runs = bank.runs.filter(({ kind, seconds }) => kind !== "copy" && kind !== "temperature" && seconds.train > 0);
  const sum = (value: (run: BankFile["runs"][number]) => number): number => runs.reduce((total, run) => total + value(run), 0);
  const part = (run: BankFile["runs"][number]): number => Math.min(1, rows / run.panel_rows);
  const train = sum(({ seconds }) => seconds.train);
  const panel = sum((run) => run.seconds.panel * part(run));
  const looks = sum((run) => run.looks.length) / runs.length;
  const steps = sum((run) => run.looks.at(-1) as number) / runs.length;
  return {
    rows,
    look_share: panel / looks / ((train / steps) * 100),
    run_share: panel / train,
    answers_share: (panel + sum((run) => run.seconds.panel_answers * part(run))) / train,
    benchmark_share: sum(({ seconds }) => seconds.bench) / train,
    looks,
    tokens: sum((run) => run.tokens.panel_scored * part(run)) / runs.length,
  };
}

/** Bytes that a day of looks keeps, one every `minutes`. */
export function bytesPerDay(tokens: number, bytesPerToken: number, minutes: number): number {
  return ((24 * 60) / minutes) * tokens * bytesPerToken;
}
