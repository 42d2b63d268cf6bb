import type { BenchmarkMetric, BenchmarkResult } from "../../protocol/benchmark.ts";
import { decodeNumber } from "../../protocol/numbers.ts";
import { pairedDifference } from "../statistics/means.ts";
import { pairById, tooFewItems } from "../statistics/pairs.ts";
import { smallestVisibleDrop } from "../statistics/power.ts";
import { wilsonInterval, type Interval } from "../statistics/shares.ts";
import { benchmarkSet, benchmarkSettings } from "./benchmarks.ts";
import type { SetResult } from "./evaluatedSystem.ts";
import { changeRow, type RowHead } from "./evaluationRow.ts";
import { pairSet } from "./pairedSet.ts";
import { refusalOf, settingDifferences } from "./settings.ts";

/** One row of a task under one metric. */
export interface BenchmarkValue {
  key: string;
  value: number;
  group?: string;
}

/** One benchmark on one checkpoint. */
export interface Benchmarked {
  label: string;
  result: BenchmarkResult;
  metric: BenchmarkMetric;
  /** Empty where the metric has no number a row. */
  rows: BenchmarkValue[];
}

/** The change of one metric between two checkpoints, paired by prompt. */
export interface BenchmarkChange {
  task: string;
  metric: string;
  filter: string;
  from: string;
  to: string;
  estimate: number | null;
  interval: Interval | null;
  p: number | null;
  n: number;
  lost: number | null;
  gained: number | null;
  /** At one test and 5 %, two-sided; null for metrics that are not right or wrong, and where no drop would show. */
  smallestDrop: number | null;
  /** Why there is no estimate, or too few prompts: a sentence. */
  note: string | null;
}

/** The benchmarks that are right or wrong in every row, by checkpoint: what `seesaw compare` sets beside the skills. */
export function benchmarkSets(found: readonly Benchmarked[]): Map<string, SetResult[]> {
  const sets = new Map<string, SetResult[]>();
  for (const { label, result, metric, rows } of found) {
    const set = metric.main ? benchmarkSet(result, metric, rows) : null;
    if (set !== null) sets.set(label, [...(sets.get(label) ?? []), set]);
  }
  return sets;
}

export function benchmarkValue({ metric }: Pick<Benchmarked, "metric">): number | null {
  return decodeNumber(metric.value) ?? null;
}

/** Wilson for metrics that are right or wrong; null for others. */
export function benchmarkInterval({ metric, rows }: Benchmarked): Interval | null {
  return metric.binary ? wilsonInterval(rows.filter(({ value }) => value === 1).length, rows.length) : null;
}

/** From one checkpoint to another, prompt by prompt: as every other set where a row is right or wrong, else the paired t, with groups clustered. */
export function benchmarkChange(from: Benchmarked, to: Benchmarked): BenchmarkChange {
  const { result: { task }, metric: { metric, filter } } = to;
  const empty = { task, metric, filter, from: from.label, to: to.label, estimate: null, interval: null, p: null, n: 0, lost: null, gained: null, smallestDrop: null };
  const refusal = refusalOf(settingDifferences(benchmarkSettings(from.result, from.metric), benchmarkSettings(to.result, to.metric)), task);
  if (refusal !== null) return { ...empty, note: refusal };
  const { pairs } = pairById(byKey(from.rows), byKey(to.rows));
  if (pairs.length === 0) return { ...empty, note: `${task} has no number of ${metric} for each prompt: nothing can be paired.` };
  const [before, after] = [benchmarkSet(from.result, from.metric, from.rows), benchmarkSet(to.result, to.metric, to.rows)];
  if (before !== null && after !== null) {
    const head: RowHead = { question: "benchmark", measure: "benchmark", skill: task, split: "benchmark" };
    const { estimate, interval, p, n, lost, gained, resolution, tooFew } = changeRow(head, [{ weight: 1, set: pairSet({ before: [before], after: [after] }) }], { before: from.label, after: to.label });
    return { ...empty, estimate, interval, p, n, lost, gained, smallestDrop: resolution === null ? null : smallestVisibleDrop(resolution.rows, resolution.background, { sides: 2 }), note: tooFew };
  }
  const grouped = pairs.some(({ a }) => a.group !== undefined);
  const clusters = pairs.map(({ a, id }) => a.group ?? id);
  const { mean, interval, p } = pairedDifference(pairs.map(({ a }) => a.value), pairs.map(({ b }) => b.value), grouped ? { clusters } : {});
  return {
    ...empty, n: pairs.length, estimate: mean, interval: Number.isFinite(interval.low) ? interval : null, p: Number.isFinite(p) ? p : null, note: tooFewItems(grouped ? new Set(clusters).size : pairs.length),
    lost: pairs.filter(({ a, b }) => a.value > b.value).length, gained: pairs.filter(({ a, b }) => a.value < b.value).length,
  };
}

const byKey = (rows: readonly BenchmarkValue[]): Map<string, BenchmarkValue> => new Map(rows.map((row) => [row.key, row]));
