import { alarmsIn } from "./alarmText.ts";
import type { BankFile, BankRun } from "./bank.ts";
import type { SkillTruth } from "./truth.ts";

/** One skill of one run under one candidate, in steps. */
export interface Series {
  run: BankRun;
  /** Place of the run in the bank: the cluster of every bootstrap. */
  cluster: number;
  truth: SkillTruth;
  /** Step of the first alarm, or null. */
  alarm: number | null;
}

export function placeOf(bank: BankFile, id: string): number {
  const place = bank.candidates.findIndex((candidate) => candidate.id === id);
  if (place < 0) throw new Error(`Bank ${bank.bank} has no candidate "${id}".`);
  return place;
}

export function seriesOf(bank: BankFile, id: string): Series[] {
  const place = placeOf(bank, id);
  return seriesOfAlarms(bank, bank.runs.map((run) => alarmsIn(run.alarms[place] as string)));
}

/** The same for alarms (indices of looks, by run then by skill) that are in no file. */
export function seriesOfAlarms(bank: BankFile, alarms: readonly (readonly (number | null)[])[]): Series[] {
  return bank.runs.flatMap((run, cluster) =>
    run.truth.map((truth, skill) => {
      const look = alarms[cluster]?.[skill] ?? null;
      return { run, cluster, truth, alarm: look === null ? null : (run.looks[look] as number) };
    }),
  );
}

export const eventsOf = (series: readonly Series[]): Series[] => series.filter(({ truth }) => truth.class === "event");
