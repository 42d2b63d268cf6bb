import type { EvaluatedStage, EvaluatedSystem, ResultRow, SetResult } from "../../../../src/domain/evaluation/evaluatedSystem.ts";
import type { EvaluationSettings } from "../../../../src/domain/evaluation/settings.ts";
import type { Split } from "../../../../src/protocol/runSpec.ts";

export const settings: EvaluationSettings = { prompts: "p1", check: '{"kind":"text"}', template: "t1", tokenizer: "k1", sampling: "greedy", max_tokens: 28 };

/** A set whose rows pass where `passes` says so. */
export function made(skill: string, split: Split, n: number, passes: (row: number) => boolean, more: { settings?: EvaluationSettings; group?: (row: number) => string } = {}): SetResult {
  const rows = Array.from({ length: n }, (_, row): ResultRow => ({ key: `${skill}.${split}.${row}`, correct: passes(row), ...(more.group && { group: more.group(row) }) }));
  return { skill, split, settings: more.settings ?? { ...settings, prompts: `${skill}.${split}` }, rows };
}

export const first = (count: number) => (row: number): boolean => row < count;

export function stage(label: string, teaches: string | null, results: SetResult[]): EvaluatedStage {
  return { label, teaches, results };
}

export function system(name: string, seed: number, stages: EvaluatedStage[], more: Partial<EvaluatedSystem> = {}): EvaluatedSystem {
  const last = stages.at(-1);
  return { name, seed, stages, label: last?.label ?? "", results: last?.results ?? [], ...more };
}

/** Pass counts of 64 ID rows for three skills at M0 … M3, as in a chain that forgets; OOD follows with a quarter. */
export const counts: Record<string, [number, number, number, number]> = { math: [0, 60, 40, 10], search: [2, 10, 58, 50], tool: [0, 0, 4, 62] };

export function chain(seed = 0, shift: (skill: string, at: number) => number = () => 0): EvaluatedSystem {
  const teaches = [null, "math", "search", "tool"];
  return system("chain", seed, teaches.map((skill, at) => stage(`M${at}`, skill, Object.entries(counts).flatMap(([id, values]) => [
    made(id, "id", 64, first((values[at] as number) + shift(id, at))),
    made(id, "ood", 32, first(Math.floor((values[at] as number) / 8))),
  ]))));
}
