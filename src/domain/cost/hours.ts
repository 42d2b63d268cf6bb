import type { Device } from "./devices.ts";
import { cacheBytes } from "./activations.ts";
import { weightBytes } from "./memory.ts";
import type { ModelFacts } from "./modelFacts.ts";
import type { WorkItem } from "./work.ts";

/** How fast a finished run was. */
export interface Throughput {
  run: string;
  recipe: string;
  device: string;
  /** Trained tokens in a second of training, over all processes; probes left out, generating included. */
  tokensPerSecond: number;
  /** FLOPs of one trained token there: another model on the same device is as much slower. */
  flopsPerToken: number;
  /** Seconds of that run besides training: loading and probes. */
  otherSeconds: number;
}

export interface TimeEstimate {
  seconds: number;
  low: number;
  high: number;
  /** Loading and probing on top, where a finished run tells it. */
  otherSeconds: number | null;
  from: "measured" | "table";
  /** A sentence: which run, or which rate is assumed. */
  why: string;
}

/**
 * Share of the data sheet's FLOP/s that training gets. 30 to 50 % is what well-tuned code reports (MFU, Chowdhery et al.
 * 2022, arXiv 2204.02311, appendix B); plain transformers with checkpointing gets less.
 */
const utilisation = { cuda: 0.35, cpu: 0.4 };
/** Share of the data sheet's bandwidth that reading weights and cache gets, and the least time of one generated token. */
const bandwidthShare = 0.6;
const leastStep = { cuda: 0.025, cpu: 0.015 };
/** What a training may take to get going, which a short one does not make up for. */
const startSeconds = 5;
/** Seconds of a forward and backward pass that Python and launches take whatever the model. */
const leastBatch = { cuda: 0.05, cpu: 0.01 };

/** Time of a stage's work on a device: by what a finished run did there, else by the data sheet at an assumed utilisation. */
export function estimateTime(work: readonly WorkItem[], options: { device: Device | null; processes: number; recipe: string; measured: Throughput | null; batches: number; generation: Generation | null }): TimeEstimate | null {
  const { device, measured } = options;
  const train = work.find(({ what, model }) => what === "train" && model === "student");
  if (work.length === 0) return null;
  if (measured !== null && train !== undefined && measured.recipe === options.recipe) {
    const each = train.flops / train.tokens.nominal;
    const rate = measured.tokensPerSecond * (measured.flopsPerToken / each);
    const seconds = train.tokens.nominal / rate;
    const same = Math.abs(measured.flopsPerToken / each - 1) < 0.01;
    const why = `As fast as ${measured.run} on ${measured.device}: ${Math.round(measured.tokensPerSecond)} tokens/s${same ? "" : ", with the other size of this model"}.`;
    return { seconds, low: seconds * (train.tokens.low / train.tokens.nominal) * (same ? 0.6 : 0.5), high: seconds * (train.tokens.high / train.tokens.nominal) * (same ? 1.6 : 2) + startSeconds, otherSeconds: measured.otherSeconds, from: "measured", why };
  }
  if (device === null) return null;
  const share = device.cuda ? utilisation.cuda : utilisation.cpu;
  const generating = options.generation === null ? 0 : generationSeconds(options.generation, device);
  const arithmetic = work.filter(({ what }) => what !== "generate").reduce((sum, one) => sum + one.computed, 0) / (device.flops * share * options.processes);
  const computing = Math.max(arithmetic, options.batches * leastBatch[device.cuda ? "cuda" : "cpu"]);
  const seconds = computing + generating;
  const why = `Assumed: ${device.name} at ${Math.round(share * 100)} % of its ${rateText(device.flops)}${options.generation === null ? "" : `, generating at ${Math.round(bandwidthShare * 100)} % of its memory bandwidth`}. No finished run of this recipe was measured there.`;
  return { seconds, low: seconds / 2, high: seconds * 3, otherSeconds: null, from: "table", why };
}

export interface Generation {
  model: ModelFacts;
  /** Sequences written together, how many such batches there are, and tokens of an answer and in front of it. */
  together: number;
  batches: number;
  newTokens: number;
  prompt: number;
}

/**
 * Every new token reads all weights and the cache once (Pope et al. 2022, arXiv 2211.05102, §2): bandwidth decides, or
 * arithmetic for large batches, or the overhead of Python for small models.
 */
export function generationSeconds({ model, together, batches, newTokens, prompt }: Generation, device: Device): number {
  const read = model.active * weightBytes + together * (prompt + newTokens / 2) * cacheBytes(model.shape, weightBytes);
  const step = Math.max(read / (device.bandwidth * bandwidthShare), (2 * model.active * together) / (device.flops * (device.cuda ? utilisation.cuda : utilisation.cpu)), device.cuda ? leastStep.cuda : leastStep.cpu);
  return batches * newTokens * step;
}

function rateText(flops: number): string {
  return flops >= 1e12 ? `${Math.round(flops / 1e12)} TFLOP/s` : `${Math.round(flops / 1e9)} GFLOP/s`;
}
