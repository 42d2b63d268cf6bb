import { buildChain, type Chain } from "../domain/run/chain.ts";
import { withoutWatch } from "../domain/run/flagEpisode.ts";
import type { Pipeline } from "../domain/pipeline/pipelineModel.ts";
import type { RunRecord, UnreadableRun } from "../storage/runs/runStore.ts";
import type { TraceStore } from "../storage/traces/traceStore.ts";
import type { Output } from "./output.ts";
import type { Services } from "../services.ts";
import { stageOfRunId } from "./runChoice.ts";

/** The chain of a pipeline as it is on disk now. */
export interface ChainData {
  pipeline: Pipeline;
  chain: Chain;
  runs: RunRecord[];
  unreadable: UnreadableRun[];
}

/** With the store of its traces, which needs SQLite. */
export interface ScoredChain extends ChainData {
  traces: TraceStore;
}

/** `watch`: with the warnings that the report card does not bear out. */
export async function readChain(services: Services, pipeline: Pipeline, watch = false): Promise<ChainData> {
  const { runs: all, unreadable } = await services.runs.list(pipeline.root);
  const card = watch ? null : await services.reportCard();
  const runs = all.map((run) => withoutWatch(run, card));
  const chain = buildChain(pipeline, runs);
  for (const checkpoint of chain.checkpoints) {
    const broken = checkpoint.status === "missing" ? unreadable.find(({ id }) => stageOfRunId(id) === checkpoint.stage) : undefined;
    if (broken !== undefined && chain.newest[checkpoint.stage ?? ""] === undefined) checkpoint.reason = `The run ${broken.id} cannot be read.`;
  }
  return { pipeline, chain, runs, unreadable };
}

/** For what cannot be said without traces. AppError("sqlite-missing"). */
export async function readScores(services: Services, pipeline: Pipeline): Promise<ScoredChain> {
  return { ...(await readChain(services, pipeline)), traces: await services.traces() };
}

/** Says on stderr which run folders could not be read: what they hold is missing in every answer. */
export function noteUnreadable({ unreadable }: Pick<ChainData, "unreadable">, out: Output): void {
  for (const { message } of unreadable) out.note(out.paint("yellow", message));
}

/** What may follow --against, for help texts. */
export const againstHelp =
  "`own`: the end of the skill's own stage (M0 for a skill without one, or whose stage is the last); `start`: the start of each checkpoint's stage; or a checkpoint, e.g. M1";
