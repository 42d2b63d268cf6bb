import { AppError } from "../../util/errors.ts";
import type { Correction } from "../statistics/corrections.ts";
import { benchmarkRows } from "./benchmarks.ts";
import { churnRows } from "./churn.ts";
import type { EvaluatedSystem } from "./evaluatedSystem.ts";
import { correctTable, type EvaluationRow } from "./evaluationRow.ts";
import { oodRows } from "./ood.ts";
import { newSkillRows, retentionRows } from "./retention.ts";
import { routingRows } from "./routing.ts";
import { seesawRows } from "./seesawIndex.ts";
import { transferRows } from "./transfer.ts";

/** What one system shows, over all its seeds. */
export interface Evaluation {
  name: string;
  seeds: number[];
  correction: Correction;
  rows: EvaluationRow[];
}

/**
 * The four questions and what is told beside them. Every difference is paired by prompt; every row has its interval, and the
 * p-values are corrected together. `systems`: the runs of one system under unlike seeds, all with the same stages.
 */
export function evaluateSystem(systems: readonly EvaluatedSystem[], options: { correction?: Correction } = {}): Evaluation {
  const { correction = "holm" } = options;
  mustAgree(systems);
  const rows = [...retentionRows(systems), ...newSkillRows(systems), ...oodRows(systems), ...routingRows(systems), ...transferRows(systems), ...seesawRows(systems), ...churnRows(systems), ...benchmarkRows(systems)];
  return { name: systems[0]?.name ?? "", seeds: systems.map(({ seed }) => seed), correction, rows: correctTable(rows, correction) };
}

/** AppError("usage") when these are not runs of one system. */
function mustAgree(systems: readonly EvaluatedSystem[]): void {
  const shape = ({ name, stages }: EvaluatedSystem): string => JSON.stringify([name, stages.map(({ label, teaches }) => [label, teaches])]);
  const [first] = systems;
  if (first === undefined) throw new AppError("usage", "There is nothing to evaluate: give at least one system.");
  const other = systems.find((one) => shape(one) !== shape(first));
  if (other !== undefined) throw new AppError("usage", `The run of ${first.name} with seed ${other.seed} has other stages than that with seed ${first.seed}: evaluate them apart.`);
  const seeds = systems.map(({ seed }) => seed);
  const twice = seeds.find((seed, index) => seeds.indexOf(seed) !== index);
  if (twice !== undefined) throw new AppError("usage", `There are two runs of ${first.name} with seed ${twice}, and a seed counts once: give one of them another name, or run it with another seed.`);
}
