import { buildChain } from "../../../src/domain/run/chain.ts";
import type { FlagRecord, RunState } from "../../../src/domain/run/runState.ts";
import type { PipelineView } from "../../../src/host/workspaceModel.ts";
import type { RunRecord } from "../../../src/storage/runs/runStore.ts";
import { makeRun, makeView } from "./views.ts";

/** Counts of right answers among 64, by probe set, at the start and the end of a stage. */
export type Correct = Record<string, [start: number, end: number]>;

/** A run with its start, checkpoint and checks, as the runner would leave it. */
export function finishedRun(stage: string, parent: RunRecord | null, correct: Correct, change: Partial<RunState> = {}, id?: string): RunRecord {
  const evals = Object.entries(correct).flatMap(([set, [start, end]]) => {
    const [skill = "", split] = set.split(".") as [string, "id" | "ood"];
    return [0, 80].map((step) => ({ step, skill, split, n: 64, correct: step === 0 ? start : end }));
  });
  const probes = evals.map(({ step, skill, split }) => ({ step, skill, split, trace: `traces/${step}/${skill}.${split}.trace`, summary: { rows: 64, skipped: 0, tokens: 640, nll: 1, delta_nll: 0, perplexity: 2, kl_start: 0, kl_base: 0, segments: {} } }));
  const checkpoints = [{ step: 80, path: "checkpoints/step-000080", kind: "full" as const, final: true, weightsHash: stage, bytes: 1 }];
  const run = makeRun(stage, { status: "done", step: 80, total: 80, evals, probes, checkpoints, ...change }, id);
  const start = { checkpoint: "m0", label: parent === null ? "M0" : "M1", run: parent?.id ?? null, step: parent === null ? null : 80 };
  return { ...run, spec: { ...run.spec, start, target: { id: "local", kind: "local", python: "python" } } };
}

/** A view of these runs with the real chain over them. */
export function viewOf(runs: RunRecord[], text?: string): PipelineView {
  const view = makeView({ runs, ...(text === undefined ? {} : { text }) });
  return { ...view, chain: view.pipeline === null ? null : buildChain(view.pipeline, runs) };
}

export function flagOf(state: FlagRecord["state"], skill = "math"): FlagRecord {
  return { id: `${skill}.id`, skill, split: "id", step: 40, state, value: 1, lower: 0.5, threshold: 0.2, noise: 0.01, level: 0.01, n: 64, seq: 9, t: 1, attempt: 1 };
}

/** The flag as newest state and in the history. */
export function flagged(flag: FlagRecord): Pick<RunState, "flags" | "flagHistory"> {
  return { flags: [flag], flagHistory: [flag] };
}
