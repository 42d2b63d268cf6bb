import type { Pipeline } from "../domain/pipeline/pipelineModel.ts";
import { isBeside } from "../domain/run/seedOf.ts";
import type { RunRecord } from "../storage/runs/runStore.ts";
import type { Services } from "../services.ts";
import { isActive } from "../targets/standing.ts";
import { didYouMean } from "../util/nearest.ts";
import { AppError } from "../util/errors.ts";

/** The run a person means by a stage's name (its newest run, one with the file's seed first), a run's id or its beginning, or nothing (the running one, else the newest). */
export async function chooseRun(services: Services, pipeline: Pipeline, named: string | undefined): Promise<RunRecord> {
  const { runs, unreadable } = await services.runs.list(pipeline.root);
  if (named === undefined) {
    const run = runs.find(isActive) ?? runs[0];
    if (run) return run;
    throw new AppError("not-found", `There are no runs in ${pipeline.root} yet: start with \`seesaw run --all\`.`);
  }
  const run = runs.find(({ id }) => id === named) ?? runs.find((one) => one.stage === named && !isBeside(one, pipeline)) ?? runs.find(({ stage }) => stage === named) ?? only(runs.filter(({ id }) => id.startsWith(named)), named);
  if (run) return run;
  const broken = unreadable.find(({ id }) => id === named) ?? unreadable.find(({ id }) => stageOfRunId(id) === named);
  if (broken) throw new AppError("run-unreadable", broken.message);
  const known = pipeline.stages.some(({ id }) => id === named);
  const names = [...pipeline.stages.map(({ id }) => id), ...runs.map(({ id }) => id)];
  throw new AppError("not-found", known ? `Stage \`${named}\` has not been run yet.` : `There is no stage or run \`${named}\`: see \`seesaw status --runs\`.${didYouMean(named, names)}`);
}

/** The stage in a run's id `<stage>-<time>-<four digits>`: all that is known of a run whose run.json cannot be read. */
export function stageOfRunId(id: string): string {
  return /^(.+)-\d{8}T\d{6}-[0-9a-f]{4}$/.exec(id)?.[1] ?? id;
}

/** The run a beginning of an id stands for. */
function only(runs: readonly RunRecord[], named: string): RunRecord | null {
  if (runs.length > 1) throw new AppError("usage", `Several runs begin with \`${named}\` (${runs.slice(0, 4).map(({ id }) => id).join(", ")}${runs.length > 4 ? ", …" : ""}): give more of the id.`);
  return runs[0] ?? null;
}
