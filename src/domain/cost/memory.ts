import { activationBytes, cacheBytes, layerBytes, lossBytes } from "./activations.ts";
import type { DataFacts } from "./dataFacts.ts";
import { adapterParameters, type ModelFacts } from "./modelFacts.ts";
import type { StageSettings } from "./stageSettings.ts";

/** What memory holds at the worst moment; bytes. Their sum is the peak. */
export interface MemoryParts {
  weights: number;
  /** LoRA weights of this stage, or of all experts of a router. */
  adapters: number;
  gradients: number;
  optimizer: number;
  activations: number;
  logits: number;
  /** Keys and values while answers are generated. */
  cache: number;
  reference: number;
  teachers: number;
  /** 16-bit copies of weights under autocast, buckets of several processes. */
  copies: number;
  /** Frozen LM heads and scores of the probes. */
  probes: number;
  /** On a CPU: what the heap loses to fragments, and libraries that are loaded late. */
  heap: number;
}

export type MemoryMoment = "start" | "generate" | "forward" | "backward";

export interface MemoryEstimate {
  moment: MemoryMoment;
  parts: MemoryParts;
  peak: number;
  /** The peak where rows are shorter or caches smaller than assumed, and where they are longer and memory is fragmented. */
  low: number;
  high: number;
  /** The peaks of the other moments, for comparison. */
  moments: Partial<Record<MemoryMoment, number>>;
}

/** Other models that lie in memory beside the student. */
export interface OtherModels {
  /** Where a reference is a copy. */
  reference: ModelFacts | null;
  teachers: readonly ModelFacts[];
  /** Teachers at a time: all, or one after the other. */
  together: boolean;
  /** LoRA experts of a router. */
  experts: readonly { parameters: number }[];
}

export interface MemoryInput {
  model: ModelFacts;
  settings: StageSettings;
  data: DataFacts | null;
  others: OtherModels;
  cuda: boolean;
  /** Prompts that are scored, their mean tokens and those of the answers; `heads`: models they are compared with. */
  probes: { rows: number; tokens: number; answer: number; newTokens: number; heads: number; otherBase: boolean } | null;
}

/** Weights are loaded as float32 whatever the file holds: small updates vanish in bf16 (`training/device.py`). */
export const weightBytes = 4;
/** LM-head logits at once while probes are scored, and rows generated together (`device.py`, `scoring/generate.py`). */
const probeLogits = { cpu: 4 * 2 ** 20, cuda: 64 * 2 ** 20 };
const probeRows = 512;
const probeRoom = 2 ** 30;

export const noMemory: MemoryParts = { weights: 0, adapters: 0, gradients: 0, optimizer: 0, activations: 0, logits: 0, cache: 0, reference: 0, teachers: 0, copies: 0, probes: 0, heap: 0 };

/** Parameters that move. */
export function trainableParameters(model: ModelFacts, { adapter }: Pick<StageSettings, "adapter">): number {
  return adapter === null ? model.parameters : adapterParameters(model, adapter.rank, adapter.targets);
}

/** Tokens of the widest batch that can come: `[nominal, at most]` of the width of one padded sequence. */
export function batchWidths(settings: StageSettings, data: DataFacts | null, positions: number | null): { width: number; most: number } {
  const cap = Math.min(settings.maxLength ?? Number.POSITIVE_INFINITY, positions ?? Number.POSITIVE_INFINITY);
  const limit = Number.isFinite(cap) ? cap : 1024;
  if (settings.newTokens !== null && (settings.recipe === "grpo" || settings.recipe === "distill")) {
    const prompt = data?.longestPrompt ?? Math.min(512, limit);
    return { width: Math.min(limit, prompt + settings.newTokens), most: Math.min(limit, prompt + settings.newTokens) };
  }
  if (data === null) return { width: limit, most: limit };
  return { width: Math.min(limit, data.longest), most: Math.min(limit, Math.ceil(data.longest * 1.15)) };
}

/** The peak of one process, moment by moment: which of them is the worst depends on the vocabulary, the batch and the optimizer. */
export function estimateMemory(input: MemoryInput): MemoryEstimate {
  const { model, settings, data, cuda } = input;
  const { width, most } = batchWidths(settings, data, model.shape.positions);
  // A batch of the longest rows may not come: the least is one of mean rows.
  const shortest = data === null ? Math.ceil(width / 2) : settings.newTokens === null ? Math.min(width, Math.ceil(data.mean)) : width;
  const at = moments(input, width);
  const libraries = lateLibraries + (settings.adapter === null ? 0 : peftLibraries);
  const { moment, parts } = cuda ? worst(at) : resident(at, libraries);
  const peak = total(parts);
  const of = (tokens: number): number => total((cuda ? worst(moments(input, tokens)) : resident(moments(input, tokens), libraries)).parts);
  const rough = parts.activations + parts.logits + parts.cache + parts.copies;
  return {
    moment, parts, peak,
    low: Math.min(peak, of(shortest)) - 0.1 * rough - (cuda ? 0 : Math.max(0, parts.heap - libraries)),
    // Activations are the rough part; an allocator loses some more to fragments, and the heap of a CPU's process most of all.
    high: cuda ? (Math.max(peak, of(most)) + 0.2 * rough) * 1.05 : Math.max(peak, of(most)) + parts.heap + dynamic(at.start) * 1.5,
    moments: Object.fromEntries(Object.entries(at).filter(([, one]) => total(one) > 0).map(([name, one]) => [name, total(one)])),
  };
}

function worst(at: Record<MemoryMoment, MemoryParts>): { moment: MemoryMoment; parts: MemoryParts } {
  const [moment, parts] = (Object.entries(at) as [MemoryMoment, MemoryParts][]).reduce((most, one) => (total(one[1]) > total(most[1]) ? one : most));
  return { moment, parts };
}

/** Libraries that are loaded with the first batch; PEFT's besides. */
export const lateLibraries = 45e6;
const peftLibraries = 60e6;

/**
 * The same for the resident memory of a process on a CPU. Its heap gives nothing back and reuses badly what tensors of many
 * sizes leave: up to 0.3 of what comes and goes in training was lost (measured for 0.4 to 156 million parameters).
 */
function resident(at: Record<MemoryMoment, MemoryParts>, libraries: number): { moment: MemoryMoment; parts: MemoryParts } {
  const { moment, parts } = worst(at);
  return { moment, parts: { ...parts, heap: libraries + (moment === "start" ? 0 : 0.3 * dynamic(parts)) } };
}

/** What comes and goes with every batch. */
function dynamic({ activations, logits, cache, gradients }: MemoryParts): number {
  return activations + logits + cache + gradients;
}

/** Sum of all parts. */
export function total(parts: MemoryParts): number {
  return Object.values(parts).reduce((sum: number, one: number) => sum + one, 0);
}

function moments(input: MemoryInput, width: number): Record<MemoryMoment, MemoryParts> {
  const { model, settings, others, probes } = input;
  const { shape } = model;
  const { batch, mixed, checkpointing, accumulation, processes, adapter } = settings;
  const trainable = trainableParameters(model, settings);
  const tokens = batch * width;
  const written = settings.together * width;
  // What is neither trained nor probed takes 16 bits where the device computes in them (`Session.load`, frozen).
  const frozenBytes = mixed ? 2 : weightBytes;
  const relabels = settings.recipe === "self-distill" || settings.recipe === "oracle-sft";
  const teacherBytes = others.teachers.map((one) => one.parameters * frozenBytes);
  const teachers = others.together ? teacherBytes.reduce((sum, one) => sum + one, 0) : Math.max(0, ...teacherBytes);
  const standing: MemoryParts = {
    ...noMemory,
    weights: model.parameters * weightBytes,
    adapters: (adapter === null ? 0 : trainable * weightBytes) + others.experts.reduce((sum, one) => sum + one.parameters * weightBytes, 0),
    reference: settings.reference === "copy" ? (others.reference ?? model).parameters * (settings.recipe === "dpo" ? frozenBytes : weightBytes) : 0,
    // Copies of the LM head that training cannot change: one for each model the probes are compared with; LoRA leaves the start's alone.
    probes: probes === null ? 0 : Math.max(0, probes.heads - (adapter === null ? 0 : 1)) * shape.vocabulary * shape.hidden * weightBytes,
  };
  const scoring = probes === null ? 0 : probeScoring(input);
  const gradients = trainable * weightBytes;
  const training: MemoryParts = { ...standing, teachers: relabels ? 0 : teachers, optimizer: trainable * settings.optimizerBytes, copies: processes > 1 ? gradients : 0 };
  const casts = !mixed ? 0 : 2 * (adapter !== null && checkpointing ? model.linear / shape.layers : model.linear + model.head);
  const scored = settings.newTokens !== null && (settings.logits === "policy" || settings.logits === "distill") ? batch * Math.min(width, settings.newTokens) : tokens;
  const headTrained = adapter === null;
  // Scores of small models are kept between stages (64 MiB); those of others need the base model loaded once more.
  const kept = probes === null || (probes.rows * probes.answer + shape.vocabulary) * shape.hidden * weightBytes <= 64 * 2 ** 20;
  return {
    // Before anything moves: the start is scored, and the base model beside it where KL to it is wanted.
    start: { ...standing, activations: scoring, reference: Math.max(standing.reference, probes !== null && probes.otherBase && !kept ? standing.weights : 0) },
    generate: settings.newTokens === null ? noMemory : { ...(relabels ? { ...standing, teachers } : training), cache: written * cacheBytes(shape, weightBytes), activations: written * 12 * shape.hidden },
    forward: {
      ...training,
      copies: training.copies + casts,
      activations: activationBytes(shape, tokens, width, { mixed, checkpointing }),
      logits: lossBytes(shape, { tokens, scored }, settings.logits, mixed, headTrained),
      // The LM head's gradient comes first, while all activations are still there.
      gradients: accumulation > 1 ? gradients : Math.min(gradients, headTrained ? weightBytes * shape.vocabulary * shape.hidden : gradients),
    },
    backward: { ...training, gradients, activations: tokens * layerBytes(shape, mixed) },
  };
}

/** Scoring and generating beside the standing weights: pieces of logits, and a generation of as many rows as there is room for. */
export function probeScoring({ model: { shape }, probes, cuda }: MemoryInput): number {
  if (probes === null) return 0;
  const scored = probes.rows * probes.answer;
  const chunk = Math.min(scored, Math.max(256, Math.floor(probeLogits[cuda ? "cuda" : "cpu"] / shape.vocabulary))) * shape.vocabulary * weightBytes;
  const read = 12 * shape.hidden * weightBytes;
  const cache = cacheBytes(shape, weightBytes);
  const whole = probes.tokens + probes.newTokens;
  const rows = Math.min(probeRows, probes.rows, Math.max(1, Math.floor(probeRoom / ((cache + read) * whole))));
  // A cache grows by copying: beside the new piece of a layer lies the old one, and on a CPU's heap the holes of all before.
  const generating = rows * Math.max((cache + read) * (whole - probes.newTokens), cache * whole * (cuda ? 1.1 : 2));
  const kept = 8 * scored * shape.vocabulary; // distributions of a reference are kept where they are small, all or none
  const distributions = kept <= 128 * 2 ** 20 ? kept : 0;
  return Math.max(3 * chunk, generating) + scored * shape.hidden * weightBytes * (1 + probes.heads) + distributions * probes.heads;
}
