import type { SkillTruth } from "./truth.ts";

/** Steps from the alarm to the moment where the true loss crosses 5 points. −∞: there was no alarm. */
export function leadOf({ truth, alarm }: { truth: Pick<SkillTruth, "crossing">; alarm: number | null }): number {
  return alarm === null ? -Infinity : (truth.crossing as number) - alarm;
}

/** Steps from the alarm to the moment where the benchmark proved the loss. −∞: there was no alarm; ∞: there was one, and the benchmark never proved it. */
export function leadBeforeBenchmark(alarm: number | null, benchmark: number | null): number {
  if (alarm === null) return -Infinity;
  return benchmark === null ? Infinity : benchmark - alarm;
}

/** The value at a share of the sorted list: always one of the values, since a middle between −∞ and a number means nothing. NaN for none. */
export function quantileOf(values: readonly number[], share: number): number {
  if (values.length === 0) return NaN;
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length - 1e-9) - 1)] as number;
}
