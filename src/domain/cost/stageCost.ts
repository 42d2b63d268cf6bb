import { plannedSteps } from "../run/plannedSteps.ts";
import type { DataFacts } from "./dataFacts.ts";
import { contextBytes, fits, sizeClasses, type Device, type Fit } from "./devices.ts";
import { distillCost, type DistillCost } from "./distillCost.ts";
import { estimateTime, type Generation, type Throughput, type TimeEstimate } from "./hours.ts";
import { estimateMemory, trainableParameters, weightBytes, type MemoryEstimate, type MemoryInput } from "./memory.ts";
import { adapterParameters, type ModelFacts } from "./modelFacts.ts";
import { isTrained, stageSettings, type CostStage, type StageSettings } from "./stageSettings.ts";
import { assumptionsOf } from "./assumptions.ts";
import { untrainedMemory } from "./untrained.ts";
import { answerTokens, workOf, type WorkItem } from "./work.ts";

/** What is known before a stage starts, and from earlier runs. */
export interface CostInput {
  stage: CostStage;
  model: ModelFacts;
  /** Models and adapters that the options name, by role. `parameters` of an adapter are its own. */
  teachers: readonly { name: string; facts: ModelFacts }[];
  reference: ModelFacts | null;
  experts: readonly { name: string; parameters: number }[];
  largestTensor: number;
  data: DataFacts | null;
  /** Prompts scored, their mean tokens and those of the answers, and whether the base is another model than the start. */
  probes: { rows: number; tokens: number; answer: number; otherBase: boolean } | null;
  device: Device | null;
  /** Measured on the same target. */
  measured: Throughput | null;
}

/** How a memory size answers: does it fit, and how many LoRA experts fit beside a frozen base. */
export interface SizeAnswer {
  label: string;
  fit: Fit;
  peak: number;
  high: number;
  experts: { float32: number; bfloat16: number };
}

/** The price of a stage. Rough parts are ranges; `assumptions` says in sentences where each number comes from. */
export interface StageCost {
  stage: string;
  recipe: string;
  model: { parameters: number; active: number; trainable: number; source: ModelFacts["source"] };
  settings: StageSettings;
  data: DataFacts | null;
  steps: number | null;
  /** null for a recipe that is a program of the user's own. */
  memory: MemoryEstimate | null;
  device: Device | null;
  fit: Fit | null;
  sizes: SizeAnswer[];
  /** Parameters of one LoRA expert, for `sizes.experts`. */
  expertParameters: number;
  work: WorkItem[];
  /** Trained tokens, and model FLOPs of all work. */
  tokens: number;
  flops: number;
  time: TimeEstimate | null;
  distill: DistillCost | null;
  assumptions: string[];
}

/** Prices a stage without starting anything. */
export function estimateStage(input: CostInput): StageCost {
  const { stage, model, device, data } = input;
  const settings = stageSettings(stage, device?.cuda ?? true);
  const rows = stage.recipe === "replay" ? null : (data?.rows ?? null);
  const steps = isTrained(stage.recipe) ? (plannedSteps(stage, rows)?.steps ?? null) : null;
  const memory = memoryOf(input, settings, device?.cuda ?? true);
  const work = stage.recipe === "command" || stage.recipe === "merge" ? [] : workOf({ model, settings, data, steps, teachers: input.teachers, router: routerOf(input) });
  const trained = work.find(({ what }) => what === "train");
  const time = estimateTime(work, { device, processes: settings.processes, recipe: stage.recipe, measured: input.measured, batches: (steps ?? 0) * settings.accumulation, generation: generationOf(input, settings, steps) });
  const expertParameters = expertSize(input, settings);
  const cost: Omit<StageCost, "assumptions"> = {
    stage: stage.id,
    recipe: stage.recipe,
    model: { parameters: model.parameters, active: model.active, trainable: isTrained(stage.recipe) ? trainableParameters(model, settings) : 0, source: model.source },
    settings, data, steps, memory, device,
    fit: memory === null || device === null ? null : fits(memory, device),
    sizes: sizesOf(input, expertParameters),
    expertParameters,
    work,
    tokens: trained?.tokens.nominal ?? 0,
    flops: work.reduce((sum, one) => sum + one.flops, 0),
    time,
    distill: distillOf(input, steps),
  };
  return { ...cost, assumptions: assumptionsOf(cost, input) };
}

function routerOf({ stage, experts, probes }: CostInput): { arms: number; probes: number } | null {
  return stage.recipe === "router" ? { arms: experts.length + 1, probes: probes?.rows ?? 0 } : null;
}

function memoryInput(input: CostInput, settings: StageSettings, cuda: boolean): MemoryInput {
  const { stage, model, teachers, reference, experts, data } = input;
  const options = stage.options ?? {};
  const heads = input.probes === null ? 0 : new Set(stage.probe.kl.filter((one) => one === "start" || input.probes?.otherBase === true)).size;
  return {
    model, settings, data, cuda,
    others: { reference, teachers: options["offline"] === true ? [] : teachers.map(({ facts }) => facts), together: stage.recipe === "distill" && loadedTogether(input, settings), experts },
    probes: input.probes === null ? null : { ...input.probes, newTokens: stage.probe.max_new_tokens, heads },
  };
}

/** `load: auto` keeps all teachers loaded where they take no more than half of what is there (`distillation/teachers.py`). */
function loadedTogether({ stage, teachers, device }: CostInput, settings: StageSettings): boolean {
  const load = stage.options?.["load"] ?? "auto";
  const bytes = teachers.reduce((sum, { facts }) => sum + facts.parameters * (settings.mixed ? 2 : weightBytes), 0);
  return load === "together" || (load === "auto" && (device?.memory == null || bytes <= device.memory / 2));
}

function memoryOf(input: CostInput, settings: StageSettings, cuda: boolean): MemoryEstimate | null {
  const { recipe, options } = input.stage;
  if (isTrained(recipe)) return estimateMemory(memoryInput(input, settings, cuda));
  const models = Array.isArray(options?.["models"]) ? options["models"].length : 2;
  return untrainedMemory(recipe, memoryInput(input, settings, cuda), { models, largestTensor: input.largestTensor });
}

/** LoRA parameters of one expert: the router's mean, the stage's own adapter, or rank 8 on all linear layers. */
function expertSize({ experts, model }: CostInput, { adapter }: StageSettings): number {
  if (experts.length > 0) return experts.reduce((sum, one) => sum + one.parameters, 0) / experts.length;
  return adapterParameters(model, adapter?.rank ?? 8, adapter?.targets);
}

function sizesOf(input: CostInput, expert: number): SizeAnswer[] {
  const settings = stageSettings(input.stage, true);
  const memory = memoryOf(input, settings, true);
  if (memory === null) return [];
  return sizeClasses.map(({ label, device }) => {
    const room = (device.memory as number) - contextBytes;
    // Beside the frozen base, with a tenth of the room for cache and activations while it answers.
    const left = (bytes: number): number => (expert === 0 ? 0 : Math.max(0, Math.floor((0.9 * room - input.model.parameters * bytes) / (expert * bytes))));
    return { label, fit: fits(memory, device) as Fit, peak: memory.peak, high: memory.high, experts: { float32: left(weightBytes), bfloat16: left(2) } };
  });
}

function generationOf(input: CostInput, settings: StageSettings, steps: number | null): Generation | null {
  const { model, data, stage } = input;
  if (settings.newTokens === null || data === null) return null;
  const stepwise = stage.recipe === "grpo" || (stage.recipe === "distill" && !settings.offline);
  const router = routerOf(input);
  const answers = router !== null ? router.arms * (data.rows + router.probes) : stepwise ? (steps ?? 0) * settings.batch * settings.accumulation : data.rows * settings.samples;
  return { model, together: Math.max(1, settings.together), batches: Math.ceil(answers / Math.max(1, settings.together)), newTokens: answerTokens(settings.newTokens, data).nominal, prompt: data.prompt };
}

function distillOf(input: CostInput, steps: number | null): DistillCost | null {
  const { stage, data, teachers, device } = input;
  if (stage.recipe !== "distill" || data === null || steps === null) return null;
  const topK = stage.options?.["top_k"];
  // Both ways are priced, whichever the stage has chosen.
  const asOnline = { ...input, stage: { ...stage, options: { ...stage.options, offline: false } } };
  const cuda = device?.cuda ?? true;
  const base = memoryInput(asOnline, stageSettings(asOnline.stage, cuda), cuda);
  const work = workOf({ model: input.model, settings: base.settings, data, steps, teachers, router: null });
  return distillCost(base, work, { teachers: teachers.map(({ facts }) => facts), data, topK: typeof topK === "number" ? topK : 16 });
}
