import { bufferIdOf, rewardModelOf, startName, type RawBuffer, type RawStage } from "../pipeline/pipelineDefaults.ts";
import type { Buffer, Pipeline, Stage } from "../pipeline/pipelineModel.ts";
import { referencesOf } from "../pipeline/stageOptions.ts";
import { joinPath } from "../../util/paths.ts";

/** What a chain needs besides its own stages. */
export interface ChainNeeds {
  /** Stages off the chain: a reference, a reward model, one whose rows are replayed; in the order of the file. */
  stages: Stage[];
  /** The buffers that the chain or those stages replay from. */
  buffers: Buffer[];
}

/** Follows every name from these stages, through as many stages as it takes. */
export function needsOf(pipeline: Pick<Pipeline, "stages" | "buffers">, chain: readonly Stage[]): ChainNeeds {
  const seen = new Set(chain.map(({ id }) => id));
  const buffers = new Set<Buffer>();
  const open: Stage[] = [...chain];
  for (let stage = open.pop(); stage !== undefined; stage = open.pop()) {
    const buffer = bufferOf(pipeline, stage);
    if (buffer !== undefined) buffers.add(buffer);
    for (const name of [...(stage.from === null ? [] : [stage.from]), ...stage.references, ...(buffer?.from ?? [])]) {
      const { stage: id } = startName(name);
      const next = pipeline.stages.find((one) => one.id === id);
      if (next === undefined || seen.has(id)) continue;
      seen.add(id);
      open.push(next);
    }
  }
  const onChain = new Set(chain.map(({ id }) => id));
  return { stages: pipeline.stages.filter(({ id }) => seen.has(id) && !onChain.has(id)), buffers: pipeline.buffers.filter((buffer) => buffers.has(buffer)) };
}

/** The stages that one names: its start, its options, its buffer. Names of folders may be among them. */
export function namesIn(stage: RawStage, buffers: Readonly<Record<string, RawBuffer>>): string[] {
  const buffer = buffers[bufferIdOf(stage) ?? ""];
  const names = [stage.from, ...referencesOf(stage).map(({ name }) => name), rewardModelOf(buffer), ...(buffer?.from ?? [])];
  return [...new Set(names.filter((name) => name != null).map((name) => startName(name).stage))];
}

function bufferOf({ buffers }: Pick<Pipeline, "buffers">, { recipe, options, replay }: Stage): Buffer | undefined {
  const id = bufferIdOf({ recipe, options, ...(replay !== null && { replay }) });
  return buffers.find((one) => one.id === id);
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
