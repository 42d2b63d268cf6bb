import type { EvaluationRow } from "../evaluation/evaluationRow.ts";
import type { Pipeline } from "../pipeline/pipelineModel.ts";
import type { ChainRun } from "../run/chain.ts";
import type { RouterReport } from "../../protocol/routerReport.ts";
import { benchmarkCheck } from "./benchmarkCheck.ts";
import { memoryCheck, type MemoryFacts } from "./memoryCheck.ts";
import { replayCheck } from "./replayCheck.ts";
import { routerCheck } from "./routerCheck.ts";
import { sweepCheck, type MergeRun } from "./sweepCheck.ts";

/** One demand of the go-live list. */
export interface GateItem {
  id: "router" | "replay" | "memory" | "sweep" | "benchmark";
  title: string;
  /** `missing`: not measured yet; `failed`: measured, and not good enough. */
  state: "met" | "missing" | "failed";
  /** What was found, with the run it was found in: sentences. */
  found: string[];
  /** What to do, where it is not met: sentences. */
  todo: string[];
}

export interface GateResult {
  ready: boolean;
  items: GateItem[];
}

export interface RouterRun {
  run: ChainRun;
  /** null: the run folder has none that can be read. */
  report: RouterReport | null;
}

/** Everything the list is checked against; the caller has read it from the run folders. */
export interface GateInput {
  pipeline: Pipeline;
  /** Newest first. */
  runs: readonly ChainRun[];
  /** Finished runs of router stages of this pipeline, newest first. */
  routers: readonly RouterRun[];
  merges: readonly MergeRun[];
  memory: MemoryFacts;
  /** The table of the evaluation; null where the traces could not be read, and why. */
  evaluation: readonly EvaluationRow[] | null;
  why: string | null;
}

/** Checks a chain against the go-live list. Nothing is taken on trust: what is not recorded in a run folder counts as missing. */
export function checkGate(input: GateInput): GateResult {
  const items = [routerCheck(input), replayCheck(input), memoryCheck(input), sweepCheck(input), benchmarkCheck(input)];
  return { ready: items.every(({ state }) => state === "met"), items };
}
