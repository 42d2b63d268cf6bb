import { AppError } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { skillsOf, type EvaluatedStage, type EvaluatedSystem, type ResultSplit } from "./evaluatedSystem.ts";
import { ends, pairSet, type PairedSet } from "./pairedSet.ts";

/** The skills of a system by what became of them. */
export interface SkillRoles {
  /** Taught by an earlier stage, or known to the base and taught by none. */
  old: string[];
  /** Taught by the last stage that teaches one; null in a chain without such a stage. */
  newest: string | null;
}

export function rolesOf(system: EvaluatedSystem): SkillRoles {
  const newest = system.stages.findLast(({ teaches }) => teaches !== null)?.teaches ?? null;
  return { old: skillsOf(system).filter((skill) => skill !== newest), newest };
}

/** Where a skill stood when it had been taught: the checkpoint after the last stage that teaches it, else the base. */
export function ownStageOf(system: EvaluatedSystem, skill: string): number {
  return Math.max(0, system.stages.findLastIndex(({ teaches }) => teaches === skill));
}

const stageAt = (system: EvaluatedSystem, index: number): EvaluatedStage => {
  const stage = system.stages[index];
  if (stage === undefined) throw new AppError("not-found", t("{0} has no checkpoint to compare with.", system.name));
  return stage;
};

/** The set of a skill at checkpoint `index` and at the end of every seed, paired. */
export function sinceStage(systems: readonly EvaluatedSystem[], skill: string, split: ResultSplit, index: number): { set: PairedSet; labels: { before: string; after: string } } {
  const labels = { before: stageAt(systems[0] as EvaluatedSystem, index).label, after: systems[0]?.label ?? "" };
  return { set: pairSet(ends(skill, split, systems.map((system) => ({ before: stageAt(system, index).results, after: system.results })), labels)), labels };
}

/** The set of a skill between two checkpoints of every seed, paired. */
export function betweenStages(systems: readonly EvaluatedSystem[], skill: string, split: ResultSplit, from: number, to: number): { set: PairedSet; labels: { before: string; after: string } } {
  const labels = { before: stageAt(systems[0] as EvaluatedSystem, from).label, after: stageAt(systems[0] as EvaluatedSystem, to).label };
  return { set: pairSet(ends(skill, split, systems.map((system) => ({ before: stageAt(system, from).results, after: stageAt(system, to).results })), labels)), labels };
}
