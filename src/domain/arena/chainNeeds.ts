import { bufferIdOf, rewardModelOf, startName, type RawBuffer, type RawStage } from "../pipeline/pipelineDefaults.ts";
import type { Buffer, Pipeline } from "../pipeline/pipelineModel.ts";
import { referencesOf } from "../pipeline/stageOptions.ts";
import { joinPath } from "../../util/paths.ts";

/**
 * All stages that these need, themselves included: what one names (its start, its options, its buffer's judge and sources), and
 * what that names. Names that are no stage, such as folders, lead nowhere.
 */
export function reachedFrom(ids: readonly string[], stages: readonly RawStage[], buffers: Readonly<Record<string, RawBuffer>>): Set<string> {
  const reached = new Set(ids);
  for (const id of reached) {
    const stage = stages.find((one) => one.id === id);
    if (stage === undefined) continue;
    const buffer = buffers[bufferIdOf(stage) ?? ""];
    const names = [stage.from, ...referencesOf(stage).map(({ name }) => name), rewardModelOf(buffer), ...(buffer?.from ?? [])];
    for (const name of names) {
      const named = name == null ? null : startName(name).stage;
      if (named !== null && stages.some((one) => one.id === named)) reached.add(named);
    }
  }
  return reached;
}

/** A buffer as the file would have it, with absolute paths. `stages`: what a reward model's name may mean. */
export function rawBuffer({ from, rows, quality, diversity, quotas, near }: Buffer, pipeline: Pick<Pipeline, "root" | "stages">): RawBuffer {
  return { from, rows, ...(quality !== null && { quality: rawQuality(quality, pipeline) }), ...(diversity !== null && { diversity }), ...(quotas != null && { quotas }), ...(near != null && { near }) } as RawBuffer;
}

function rawQuality(quality: NonNullable<Buffer["quality"]>, { root, stages }: Pick<Pipeline, "root" | "stages">): RawBuffer["quality"] {
  if ("check" in quality) return quality;
  if ("reward_model" in quality) {
    const { reward_model: judge } = quality;
    const named = judge === "base" || stages.some(({ id }) => id === startName(judge).stage);
    return { ...quality, reward_model: named ? judge : joinPath(root, judge) };
  }
  return quality.field === null ? { reward: quality.min } : { field: quality.field, min: quality.min };
}
