import type { BenchmarkMetric, BenchmarkResult } from "../../protocol/benchmark.ts";
import { setOf, type EvaluatedSystem, type SetResult } from "./evaluatedSystem.ts";
import { changeRow, rowOrReason, type EvaluationRow, type RowHead } from "./evaluationRow.ts";
import { betweenStages, sinceStage } from "./stages.ts";
import type { EvaluationSettings } from "./settings.ts";

/** The metric that stands for a task. */
export function mainMetric({ metrics }: Pick<BenchmarkResult, "metrics">): BenchmarkMetric | null {
  return metrics.find(({ main }) => main) ?? metrics[0] ?? null;
}

/** What decides the numbers of a benchmark besides the weights. */
export function benchmarkSettings({ settings }: BenchmarkResult, { metric, filter }: Pick<BenchmarkMetric, "metric" | "filter">): EvaluationSettings {
  const { harness, template, dtype, task, shots, prompts, sampling, max_tokens: longest } = settings;
  return { prompts, check: metric, filter, template, sampling, task, harness, dtype, ...(shots !== null && { shots }), ...(longest !== null && { max_tokens: longest }) };
}

/** A task whose metric is right or wrong in every row, as a set of results that can be paired; null for other metrics. */
export function benchmarkSet(result: BenchmarkResult, metric: BenchmarkMetric, rows: readonly { key: string; value: number; group?: string }[]): SetResult | null {
  if (!metric.binary) return null;
  const passed = (value: number): boolean => (value === 1) === metric.higher_is_better;
  return { skill: result.task, split: "benchmark", settings: benchmarkSettings(result, metric), rows: rows.map(({ key, value, group }) => ({ key, correct: passed(value), ...(group !== undefined && { group }) })) };
}

/** Each benchmark from one checkpoint that has it to the next, and from the first to the end. */
export function benchmarkRows(systems: readonly EvaluatedSystem[]): EvaluationRow[] {
  const [first] = systems as [EvaluatedSystem];
  return first.results.filter(({ split }) => split === "benchmark").flatMap(({ skill }) => {
    const head: RowHead = { question: "benchmark", measure: "benchmark", skill, split: "benchmark" };
    const places = first.stages.flatMap(({ label, results }, index) => (label !== first.label && setOf(results, skill, "benchmark") !== undefined ? [index] : []));
    const row = (make: () => ReturnType<typeof sinceStage>): EvaluationRow => rowOrReason(head, () => {
      const { set, labels } = make();
      return changeRow(head, [{ weight: 1, set }], labels);
    });
    const steps = places.slice(1).map((to, index) => row(() => betweenStages(systems, skill, "benchmark", places[index] as number, to)));
    const last = places.length > 1 ? [row(() => sinceStage(systems, skill, "benchmark", places.at(-1) as number))] : [];
    return [...steps, ...last, ...(places[0] === undefined ? [] : [row(() => sinceStage(systems, skill, "benchmark", places[0] as number))])];
  });
}
