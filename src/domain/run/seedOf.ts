import type { RunSpec } from "../../protocol/runSpec.ts";
import { t } from "../../util/l10n.ts";
import type { Pipeline } from "../pipeline/pipelineModel.ts";

/**
 * Whether a run stands beside the chain: it was asked for with another seed than the file's (`seesaw run --seeds`), and that is
 * not the file's seed by now. A run of a seed that the file had once does not: it is judged as after any other edit.
 */
export function isBeside({ spec }: { spec: Pick<RunSpec, "seed" | "file_seed"> }, { seed }: Pick<Pipeline, "seed">): boolean {
  return spec.file_seed !== undefined && spec.seed !== seed;
}

/** `seed 2` where a run's seed is not the one that the file has; else null. */
export function seedLabel({ spec }: { spec: Pick<RunSpec, "seed"> }, { seed }: Pick<Pipeline, "seed">): string | null {
  // Run folders older than the field have none.
  return typeof spec.seed !== "number" || spec.seed === seed ? null : t("seed {0}", spec.seed);
}

/** The newest run of each other seed of a stage, by seed. `runs` newest first. */
export function newestBeside<R extends { stage: string; spec: Pick<RunSpec, "seed" | "file_seed"> }>(runs: readonly R[], stage: string, pipeline: Pick<Pipeline, "seed">): R[] {
  const found = new Map<number, R>();
  for (const run of runs) if (run.stage === stage && isBeside(run, pipeline) && !found.has(run.spec.seed)) found.set(run.spec.seed, run);
  return [...found.values()].sort((a, b) => a.spec.seed - b.spec.seed);
}
