import { evaluationCsv } from "../evaluation/evaluationCsv.ts";
import { csvLine, type CsvCell } from "../report/csv.ts";
import type { ArenaCost, ArenaEntry, ArenaResult, Share } from "./arenaResult.ts";

/**
 * The tables of an arena. `scores`: the numbers of every chart, each seed and the mean; `tests`: every system against the chain,
 * paired; `questions`: the four questions of every system by itself; `sweep`: of `scores` the points of sensitivity curves;
 * `routing`: where routers sent the prompts; `cost`: what every system took.
 */
export const arenaTables = ["scores", "tests", "questions", "sweep", "routing", "cost"] as const;
export type ArenaTable = (typeof arenaTables)[number];

export function arenaCsv(result: ArenaResult, table: ArenaTable = "scores"): string {
  switch (table) {
    case "scores":
      return csv(scoreColumns, result.entries.flatMap(scoreLines));
    case "sweep":
      return csv(scoreColumns, result.entries.filter(({ sweep }) => sweep !== null).flatMap(scoreLines));
    case "tests":
      return evaluationCsv((result.comparison?.rows ?? []).map((row) => ({ system: row.system, rows: [row] })));
    case "questions":
      return evaluationCsv(result.entries.map(({ id, questions }) => ({ system: id, rows: questions })));
    case "routing":
      return csv(["system", "seed", "skill", "split", "expert", "prompts", "share"], result.entries.flatMap(routingLines));
    case "cost":
      return csv(costColumns, result.entries.filter(({ scores }) => scores !== null).map(({ id, kind, seeds, cost: { own, shared } }) => [id, kind, seeds.length, ...costCells(own), ...costCells(shared)]));
  }
}

const scoreColumns = ["system", "kind", "seed", "skills", "split", "value", "low", "high", "n_seeds", "tokens", "flops", "seconds", "peak_memory_bytes", "optimizer_steps", "shared_tokens", "sweep_of", "sweep_weight"];
const spent = ["optimizer_steps", "tokens", "flops", "seconds", "peak_memory_bytes"];
const costColumns = ["system", "kind", "n_seeds", ...spent, ...spent.map((name) => `shared_${name}`)];

function csv(columns: readonly string[], lines: readonly CsvCell[][]): string {
  return [columns, ...lines].map((cells) => csvLine(cells)).join("");
}

/** One line for each group of skills and seed; the line without a seed is the mean with its interval. */
function scoreLines({ id, kind, scores, cost, sweep }: ArenaEntry): CsvCell[][] {
  if (scores === null) return [];
  const groups: [string, string, Share | null][] = [
    ["old skills", "id", scores.oldSkills], ["new skill", "id", scores.newSkill], ["all skills", "id", scores.all], ["all skills", "ood", scores.ood],
    ...Object.entries(scores.skills).flatMap(([skill, share]): [string, string, Share | null][] => [[skill, "id", share.id], [skill, "ood", share.ood]]),
  ];
  const more = [cost.own?.tokens ?? null, cost.own?.flops ?? null, cost.own?.seconds ?? null, cost.own?.peakMemory ?? null, cost.own?.optimizerSteps ?? null, cost.shared?.tokens ?? null, sweep?.of ?? null, sweep?.weight ?? null];
  return groups.flatMap(([skills, split, share]) => (share === null ? [] : [
    [id, kind, null, skills, split, share.value, share.interval.low, share.interval.high, share.seeds.length, ...more],
    ...share.seeds.map(({ seed, value }) => [id, kind, seed, skills, split, value, null, null, 1, ...more]),
  ]));
}

/** Every expert of a skill and set, also where it got no prompt. */
function routingLines({ id, routing }: ArenaEntry): CsvCell[][] {
  const all = routing ?? [];
  return all.map(({ seed, skill, split, expert, prompts }) => {
    const asked = all.filter((one) => one.seed === seed && one.skill === skill && one.split === split).reduce((sum, one) => sum + one.prompts, 0);
    return [id, seed, skill, split, expert, prompts, prompts / asked];
  });
}

function costCells(cost: ArenaCost | null): CsvCell[] {
  return [cost?.optimizerSteps ?? null, cost?.tokens ?? null, cost?.flops ?? null, cost?.seconds ?? null, cost?.peakMemory ?? null];
}
