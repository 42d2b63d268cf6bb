import { AppError } from "../../util/errors.ts";
import { didYouMean } from "../../util/nearest.ts";
import { joinPath } from "../../util/paths.ts";
import type { Pipeline } from "../pipeline/pipelineModel.ts";
import type { Chain, ChainCheckpoint } from "../run/chain.ts";

/** Weights on disk that a person can name. */
export interface WeightPlace {
  /** `M2`, or `M2@40` for a checkpoint on the way. */
  label: string;
  stage: string | null;
  step: number | null;
  path: string;
}

/** Two checkpoints to compare; `before`: what `from` was trained from, for the cosine of the two updates. */
export interface WeightPair {
  from: WeightPlace;
  to: WeightPlace;
  before: WeightPlace | null;
}

/** Every checkpoint of the chain whose weights are there: M0 … MN, each stage's earlier ones before its last. */
export function weightPlaces(chain: Chain): WeightPlace[] {
  return chain.checkpoints.flatMap((checkpoint) => {
    const last = placeOf(checkpoint);
    if (last === null) return [];
    const { run } = checkpoint;
    const between = checkpoint.stage === null || run === null ? [] : run.state.checkpoints.filter(({ step }) => step !== checkpoint.step);
    const earlier = between.map(({ step, path }): WeightPlace => ({ label: `${checkpoint.label}@${step}`, stage: checkpoint.stage, step, path: joinPath(run?.dir ?? "", path) }));
    return [...earlier, last];
  });
}

/**
 * The pair that two names mean: `M2`, a stage's name, `stage@40`, `M2@40` or `base`. Without names: from the base model to
 * the last checkpoint there is. AppError("not-found") names what there is.
 */
export function weightPair(pipeline: Pipeline, chain: Chain, from?: string, to?: string): WeightPair {
  const places = weightPlaces(chain);
  const base = places[0];
  const last = places.findLast(({ label }) => !label.includes("@"));
  const first = from === undefined ? base : placeNamed(places, from);
  const second = to === undefined ? last : placeNamed(places, to);
  if (first === undefined || second === undefined) throw new AppError("not-found", `There are no checkpoints in ${pipeline.root} yet: start with \`seesaw run --all\`.`);
  if (first.path === second.path) {
    throw new AppError(to === undefined && from === undefined ? "not-found" : "usage", to === undefined && from === undefined ? "Only the base model is there yet: run a stage first." : `${first.label} and ${second.label} are the same checkpoint: name two.`);
  }
  return { from: first, to: second, before: placeBefore(pipeline, chain, first) };
}

/** What a checkpoint was trained from, if its weights are there; null for the base model. */
function placeBefore(pipeline: Pipeline, chain: Chain, place: WeightPlace): WeightPlace | null {
  const stage = pipeline.stages.find(({ id }) => id === place.stage);
  const parent = stage === undefined ? undefined : chain.checkpoints.find((one) => one.stage === stage.from);
  return parent === undefined ? null : placeOf(parent);
}

function placeOf({ label, stage, step, path, status }: ChainCheckpoint): WeightPlace | null {
  return path === null || status === "missing" ? null : { label, stage, step, path };
}

function placeNamed(places: readonly WeightPlace[], name: string): WeightPlace {
  const [, head = name, step] = /^(.*?)(?:@(\d+))?$/.exec(name) ?? [];
  const found = places.filter(({ label, stage }) => label.split("@")[0] === head || stage === head || (head === "base" && label === "M0"));
  const place = step === undefined ? found.at(-1) : found.find((one) => one.step === Number(step));
  if (place !== undefined) return place;
  const steps = found.map((one) => one.step).join(", ");
  const known = places.map(({ label }) => label);
  const advice = found.length > 0 ? `${head} has checkpoints at the steps ${steps}.` : `There are ${known.join(", ")}.${didYouMean(name, [...known, ...places.flatMap(({ stage }) => stage ?? [])])}`;
  throw new AppError("not-found", `There is no checkpoint \`${name}\`. ${advice}`);
}
