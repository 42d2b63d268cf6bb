import type { Split } from "../../protocol/runSpec.ts";
import type { EvaluationSettings } from "./settings.ts";

/** One answer to one prompt: passed or not. */
export interface ResultRow {
  /** The same prompt has the same key in every result of its set. */
  key: string;
  correct: boolean;
  /** Rows that are no independent evidence (questions on one passage, variants of one task) share a group. */
  group?: string;
}

/** A probe set of a skill, or a benchmark: then `skill` is the task's name. */
export type ResultSplit = Split | "benchmark";

/** The answers to one set of prompts, and how they were made and judged. */
export interface SetResult {
  skill: string;
  split: ResultSplit;
  settings: EvaluationSettings;
  rows: readonly ResultRow[];
}

/** One checkpoint on the way. */
export interface EvaluatedStage {
  /** `M0`, `M1`, … */
  label: string;
  /** The skill that the stage which ends here teaches; null for the base, and for a stage that teaches none. */
  teaches: string | null;
  results: readonly SetResult[];
}

/** Which expert answered a prompt. */
export interface RoutedRow {
  key: string;
  /** The skill the prompt belongs to. */
  skill: string;
  /** `id`, `ood`, or another set of prompts such as `paraphrase`. */
  split: string;
  picked: string;
  /** What every expert would have made of it, where that is known: needed for the regret. */
  correct?: Readonly<Record<string, boolean>>;
  group?: string;
}

/**
 * What one run of a chain or of a remedy gave. `stages` are the checkpoints that the questions refer to, from the base on: of
 * a chain its own, of a remedy those of the chain it was applied to. `results` are the answers of what came out at the end.
 */
export interface EvaluatedSystem {
  /** Runs of one name and unlike seeds are the same system. */
  name: string;
  seed: number;
  stages: readonly EvaluatedStage[];
  /** Name of what came out: `M4`, or that of the remedy. */
  label: string;
  results: readonly SetResult[];
  routing?: readonly RoutedRow[];
  /** Share of answers that pass by guessing, by skill; default 0. */
  chance?: Readonly<Record<string, number>>;
}

export function setOf(results: readonly SetResult[], skill: string, split: ResultSplit): SetResult | undefined {
  return results.find((one) => one.skill === skill && one.split === split);
}

/** `math ID`, `math OOD`, `gsm8k`. */
export function setName(skill: string, split: ResultSplit): string {
  return split === "benchmark" ? skill : `${skill} ${split === "id" ? "ID" : "OOD"}`;
}

/** The skills of a system with in-domain results at its end, in order. */
export function skillsOf(system: EvaluatedSystem): string[] {
  return [...new Set(system.results.filter(({ split }) => split === "id").map(({ skill }) => skill))];
}
