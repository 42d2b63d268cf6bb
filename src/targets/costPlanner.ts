import type { Pipeline, Stage } from "../domain/pipeline/pipelineModel.ts";
import type { PredictedCost } from "../protocol/runSpec.ts";
import type { RunStore } from "../storage/runs/runStore.ts";
import { buildChain, type Chain } from "../domain/run/chain.ts";
import { summaryLines } from "../domain/cost/costText.ts";
import { known, type Device } from "../domain/cost/devices.ts";
import { predictedCost, throughputOf } from "../domain/cost/measured.ts";
import { adapterParameters, type ModelFacts } from "../domain/cost/modelFacts.ts";
import { stageSettings } from "../domain/cost/stageSettings.ts";
import { estimateStage, type CostInput, type StageCost } from "../domain/cost/stageCost.ts";
import { flopsPerToken } from "../domain/cost/work.ts";
import { referenceTarget } from "../domain/pipeline/stageOptions.ts";
import { AppError } from "../util/errors.ts";
import { t } from "../util/l10n.ts";
import { checkpointOf, stageOf } from "./freezeRun.ts";
import { readModel, type ReadModel } from "./modelReading.ts";
import { readDataFacts, type LengthOf } from "./rowSample.ts";

/** Prices stages before anything starts. */
export interface CostPlanner {
  /**
   * The price of a stage on `device`; without one, on the device its target's last run had. AppError("not-found" | "bad-input")
   * where the stage or the model is not there.
   */
  plan(pipeline: Pipeline, stageId: string, options?: { device?: Device | null; signal?: AbortSignal }): Promise<StageCost>;
  /** What run.json keeps of the price: for an accelerator and for a CPU, since which of them it is shows when the run starts. */
  predict(pipeline: Pipeline, stageId: string): Promise<PredictedCost>;
  /** The price in a few sentences, for the question before a start. */
  summary(pipeline: Pipeline, stageId: string, signal: AbortSignal): Promise<string[]>;
}

/** From what is on disk: config.json, headers, a sample of the rows, and the runs there are. Nothing is started or loaded. */
export class DiskCostPlanner implements CostPlanner {
  private readonly runs: RunStore;
  private readonly lengths: (folder: string) => Promise<LengthOf | null>;

  /** `lengths`: counts rows in the tokens of a checkpoint's tokenizer. */
  constructor(deps: { runs: RunStore; lengths: (folder: string) => Promise<LengthOf | null> }) {
    this.runs = deps.runs;
    this.lengths = deps.lengths;
  }

  async plan(pipeline: Pipeline, stageId: string, options: { device?: Device | null; signal?: AbortSignal } = {}): Promise<StageCost> {
    return estimateStage(await this.input(pipeline, stageId, options));
  }

  async summary(pipeline: Pipeline, stageId: string, signal: AbortSignal): Promise<string[]> {
    return summaryLines(await this.plan(pipeline, stageId, { signal }));
  }

  async predict(pipeline: Pipeline, stageId: string): Promise<PredictedCost> {
    const input = await this.input(pipeline, stageId, {});
    const as = (device: Device | null): StageCost => estimateStage({ ...input, device });
    const cpu = as(input.device?.cuda === false ? input.device : known("CPU"));
    const forced = input.stage.args["use_cpu"] === true;
    return predictedCost(forced ? null : as(input.device?.cuda === true ? input.device : null), cpu, as(input.device));
  }

  private async input(pipeline: Pipeline, stageId: string, options: { device?: Device | null; signal?: AbortSignal }): Promise<CostInput> {
    const stage = stageOf(pipeline, stageId);
    const { runs } = await this.runs.list(pipeline.root);
    const chain = buildChain(pipeline, runs);
    const folder = checkpointOf(chain, stage.from)?.path ?? pipeline.base;
    // A checkpoint of the chain is as large as the base it came from, and that is there before the chain is.
    const model = (await readModel(folder)) ?? (await readModel(pipeline.base));
    if (model === null) throw new AppError("bad-input", t("{0} has no config.json that tells a model's size: correct `base` in {1}.", pipeline.base, pipeline.file));
    const others = await this.others(pipeline, stage, chain, model);
    const lengthOf = await this.lengths(pipeline.base);
    const data = stage.data === null ? await this.bufferFacts(pipeline, stage, lengthOf, options.signal) : await readDataFacts(stage.data, lengthOf, options.signal);
    const last = lastDevice(stage, runs);
    const device = options.device ?? last;
    const each = flopsPerToken("train", model.facts, stageSettings(stage, device?.cuda ?? true)).flops;
    return {
      stage, model: model.facts, data, device, ...others,
      largestTensor: model.largestTensor,
      probes: await probesOf(pipeline, folder, lengthOf, options.signal),
      measured: device?.name === last?.name ? throughputOf(stage, runs, each, model.facts.parameters) : null,
    };
  }

  /** The rows of a stage without data are those of its buffer's stages. */
  private async bufferFacts(pipeline: Pipeline, stage: Stage, lengthOf: LengthOf | null, signal: AbortSignal | undefined): Promise<CostInput["data"]> {
    const id = stage.replay?.buffer ?? stage.options["buffer"];
    const buffer = pipeline.buffers.find((one) => one.id === id);
    if (buffer === undefined) return null;
    const facts = await Promise.all(buffer.from.map((from) => readDataFacts(stageOf(pipeline, from).data ?? "", lengthOf, signal)));
    const found = facts.filter((one) => one !== null);
    const widest = [...found].sort((a, b) => b.longest - a.longest)[0];
    return widest === undefined ? null : { ...widest, rows: Math.min(buffer.rows, found.reduce((sum, one) => sum + one.rows, 0)) };
  }

  /** The models that the options name. One that is not trained yet is taken to be as large as the stage's own. */
  private async others(pipeline: Pipeline, stage: Stage, chain: Chain, model: ReadModel): Promise<Pick<CostInput, "teachers" | "reference" | "experts">> {
    const read = async (name: string): Promise<ReadModel> => (await readModel(folderOf(pipeline, chain, name) ?? "")) ?? model;
    const teachers: { name: string; facts: ModelFacts }[] = [];
    for (const [domain, name] of named(stage.options["teachers"] ?? stage.options["oracles"])) teachers.push({ name: domain, facts: (await read(name)).facts });
    const { labeller, reference } = stage.options;
    if (typeof labeller === "string" && labeller !== "start") teachers.push({ name: labeller, facts: (await read(labeller)).facts });
    const experts: { name: string; parameters: number }[] = [];
    for (const [skill, name] of named(stage.options["experts"])) experts.push({ name: skill, parameters: (await read(name)).adapter ?? plannedAdapter(pipeline, name, model.facts) });
    return { teachers, experts, reference: typeof reference === "string" && reference !== "start" ? (await read(reference)).facts : null };
  }
}

function folderOf(pipeline: Pipeline, chain: Chain, name: string): string | null {
  const target = referenceTarget(name, pipeline.stages.map(({ id }) => id), pipeline.root);
  if (target === null) return null;
  return target.kind === "base" ? pipeline.base : target.kind === "folder" ? target.path : (checkpointOf(chain, target.stage)?.path ?? null);
}

/** Of an expert that is not trained yet: by the adapter that its stage describes. */
function plannedAdapter(pipeline: Pipeline, name: string, model: ModelFacts): number {
  const adapter = pipeline.stages.find(({ id }) => id === name.replace(/@\d+$/, ""))?.adapter ?? {};
  const rank = adapter["r"];
  return adapterParameters(model, typeof rank === "number" ? rank : 8, adapter["target_modules"]);
}

/** `{ domain: checkpoint }`; a teacher behind an endpoint has no memory here. */
function named(value: unknown): [string, string][] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === "string");
}

/** The device of the newest run on the stage's target. */
function lastDevice(stage: Stage, runs: Awaited<ReturnType<RunStore["list"]>>["runs"]): Device | null {
  if (stage.args["use_cpu"] === true) return known("CPU");
  const run = [...runs].sort((a, b) => b.spec.created - a.spec.created).find(({ spec, state }) => spec.target.id === stage.on && state.device !== null);
  return run === undefined ? null : known(run.state.device as string);
}

/** How many probe prompts there are, and how long: they are scored beside the training. */
async function probesOf(pipeline: Pipeline, start: string, lengthOf: LengthOf | null, signal: AbortSignal | undefined): Promise<CostInput["probes"]> {
  const files = pipeline.skills.flatMap(({ probes }) => (probes.ood === undefined ? [probes.id] : [probes.id, probes.ood]));
  const facts = (await Promise.all(files.map((file) => readDataFacts(file, lengthOf, signal)))).filter((one) => one !== null);
  const rows = facts.reduce((sum, one) => sum + one.rows, 0);
  if (rows === 0) return null;
  const mean = (value: (one: (typeof facts)[number]) => number): number => facts.reduce((sum, one) => sum + value(one) * one.rows, 0) / rows;
  return { rows, tokens: mean((one) => one.prompt), answer: mean((one) => one.mean - one.prompt), otherBase: start !== pipeline.base };
}
