import type { Pipeline } from "../domain/pipelineModel.ts";
import type { RunRecord } from "../storage/runStore.ts";
import type { Services } from "../services.ts";
import { isActive } from "../targets/launcher.ts";
import { AppError } from "../util/errors.ts";

/** The run a person means by a stage's name (its newest run), a run's id, or nothing (the running one, else the newest). */
export async function chooseRun(services: Services, pipeline: Pipeline, named: string | undefined): Promise<RunRecord> {
  const { runs, unreadable } = await services.runs.list(pipeline.root);
  if (named === undefined) {
    const run = runs.find(isActive) ?? runs[0];
    if (run) return run;
    throw new AppError("not-found", `There are no runs in ${pipeline.root} yet: start with \`seesaw run --all\`.`);
  }
  const run = runs.find(({ id }) => id === named) ?? runs.find(({ stage }) => stage === named);
  if (run) return run;
  const broken = unreadable.find(({ id }) => id === named);
  if (broken) throw new AppError("run-unreadable", broken.message);
  const known = pipeline.stages.some(({ id }) => id === named);
  throw new AppError("not-found", known ? `Stage \`${named}\` has not been run yet.` : `There is no stage or run \`${named}\`: see \`seesaw status --runs\`.`);
}
