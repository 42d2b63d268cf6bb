import type { Pipeline } from "../pipeline/pipelineModel.ts";
import type { Chain } from "./chain.ts";

/**
 * The stages with a finished run that a new run of `stage` makes stale: those that were trained, directly or through others,
 * from its last checkpoint or with its help (a teacher, a merged model). In the order of the pipeline.
 */
export function staleAfter(pipeline: Pick<Pipeline, "stages">, chain: Chain, stage: string): string[] {
  const behind = new Set([stage]);
  // A stage starts from one above it, so one pass in the order of the file is enough.
  for (const { id, from, references } of pipeline.stages) {
    if ([...(from === null ? [] : [from]), ...references.map((name) => name.replace(/@\d+$/, ""))].some((name) => behind.has(name))) behind.add(id);
  }
  behind.delete(stage);
  return chain.checkpoints.flatMap((checkpoint) => (checkpoint.stage !== null && behind.has(checkpoint.stage) && checkpoint.status === "ready" ? [checkpoint.stage] : []));
}
