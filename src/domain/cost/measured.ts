import type { PredictedCost, PredictedRange } from "../../protocol/runSpec.ts";
import type { ChainRun } from "../run/chain.ts";
import { runSeconds } from "../run/reduceRun.ts";
import type { Throughput } from "./hours.ts";
import type { StageCost } from "./stageCost.ts";

/** One number before and after a run. */
export interface Compared {
  what: "memory" | "seconds" | "tokens";
  predicted: PredictedRange | null;
  measured: number;
  /** Predicted ÷ measured; null without a prediction, or where next to nothing was measured. */
  ratio: number | null;
  /** Whether the measured value lies in the predicted range; null without one. */
  inside: boolean | null;
}

export interface CostComparison {
  run: string;
  stage: string;
  device: string;
  /** Python and its libraries before the model was loaded: not part of `memory`. */
  before: number;
  rows: Compared[];
}

/**
 * The part of a process's peak that model and data are answerable for: what was there before the model was loaded (Python,
 * libraries) is taken off, since it is the same for a model of one megabyte and one of a terabyte.
 */
export function measuredPeak({ memory }: NonNullable<ChainRun["state"]["cost"]>): number {
  return memory.peak - memory.before;
}

/** Predicted and measured side by side; null for a run that told no cost (older than this, or not at its end). */
export function compareCost({ id, stage, spec, state }: Pick<ChainRun, "id" | "stage" | "spec" | "state">): CostComparison | null {
  const { cost } = state;
  if (cost === null) return null;
  const predicted = spec.predicted ?? null;
  const whole = cost.step >= state.total && state.resumes.length === 0;
  const tokens = predicted?.tokens ?? null;
  return {
    run: id, stage, device: state.device ?? "",
    before: cost.memory.before,
    rows: [
      compared("memory", predicted?.memory[cost.memory.kind] ?? null, measuredPeak(cost)),
      // A part of a run says nothing about the time of a whole one.
      compared("seconds", whole ? (predicted?.seconds ?? null) : null, cost.train_s),
      compared("tokens", whole && tokens !== null ? { expected: tokens, low: tokens, high: tokens } : null, cost.tokens),
    ],
  };
}

function compared(what: Compared["what"], predicted: PredictedRange | null, measured: number): Compared {
  return { what, predicted, measured, ratio: predicted === null || measured <= 0 ? null : predicted.expected / measured, inside: predicted === null || what === "tokens" ? null : measured >= predicted.low && measured <= predicted.high };
}

/** The finished run that tells best how fast a stage will be: of the same target, best of the same stage, else of the same recipe. */
export function throughputOf(stage: { id: string; recipe: string; on: string; adapter: unknown }, runs: readonly ChainRun[], flopsPerToken: number, parameters: number): Throughput | null {
  const fitting = runs.filter((run) => run.state.status === "done" && run.spec.target.id === stage.on && run.spec.recipe === stage.recipe && rateOf(run) !== null);
  const newest = [...fitting].sort((a, b) => Number(b.stage === stage.id) - Number(a.stage === stage.id) || b.spec.created - a.spec.created)[0];
  if (newest === undefined) return null;
  const rate = rateOf(newest) as number;
  const seconds = runSeconds(newest.state, 0) ?? 0;
  const trained = newest.state.cost?.train_s ?? seconds * (1 - (newest.state.probeShare ?? 0));
  // Full training costs 6N a token, LoRA 4N: the same model is not equally fast with and without one.
  const kind = (newest.spec.adapter === null ? 6 : 4) / (stage.adapter === null ? 6 : 4);
  const size = (newest.state.started?.parameters ?? parameters) / parameters;
  return { run: newest.id, recipe: newest.spec.recipe, device: newest.state.device ?? "", tokensPerSecond: rate, flopsPerToken: flopsPerToken * size * kind, otherSeconds: Math.max(0, seconds - trained) };
}

/** Trained tokens in a second; runs older than `cost.measured` told it as they went. */
function rateOf({ state }: ChainRun): number | null {
  if (state.cost !== null && state.cost.train_s > 0 && state.cost.tokens > 0) return state.cost.tokens / state.cost.train_s;
  return state.tokensPerSecond !== null && state.tokensPerSecond > 0 ? state.tokensPerSecond : null;
}

/** A price as run.json keeps it. `other` is the same stage priced for a CPU where `cost` is for an accelerator, or the other way round. */
export function predictedCost(device: StageCost | null, resident: StageCost | null, time: StageCost): PredictedCost {
  const range = (cost: StageCost | null): PredictedRange | null => (cost?.memory == null ? null : { expected: Math.round(cost.memory.peak), low: Math.round(cost.memory.low), high: Math.round(cost.memory.high) });
  return {
    v: 1,
    memory: { device: range(device), resident: range(resident) },
    tokens: time.tokens > 0 ? Math.round(time.tokens) : null,
    flops: time.flops > 0 ? time.flops : null,
    seconds: time.time === null ? null : { expected: time.time.seconds, low: time.time.low, high: time.time.high },
  };
}
