import type { Chain, ChainCheckpoint, ChainRun } from "../../../src/domain/run/chain.ts";
import { parsePipeline } from "../../../src/domain/pipeline/pipeline.ts";
import { emptyRunState } from "../../../src/domain/run/reduceRun.ts";
import type { RunState } from "../../../src/domain/run/runState.ts";
import type { PipelineView } from "../../../src/host/workspaceModel.ts";
import type { RunRecord } from "../../../src/storage/runs/runStore.ts";

export const file = "/w/seesaw.yaml";
const yaml = `seesaw: 1
base: m0
skills:
  math: { probes: math.jsonl, ood: math.ood.jsonl, check: { kind: number-after, marker: so } }
  search: { probes: search.jsonl, check: { kind: text } }
stages:
  - { id: math, recipe: sft, data: math.jsonl, args: { max_steps: 80 } }
  - { id: search, recipe: sft, data: search.jsonl, args: { max_steps: 60 } }
`;

/** A run with whatever of its state matters to a test. */
export function makeRun(stage: string, change: Partial<RunState>, id = `${stage}-20260101T000000-aaaa`): RunRecord {
  const state = { ...emptyRunState(), ...change };
  return { dir: `/w/.seesaw/runs/${id}`, id, stage, spec: { id, stage, created: 1_767_225_600, recipe: "sft", flags: { alpha: 0.1, tolerance: 2 }, replay: null } as unknown as RunRecord["spec"], state };
}

/** A pipeline view without a workspace. `traces`: paths by checkpoint label and probe set. */
export function makeView(options: { runs?: RunRecord[]; traces?: Record<string, Record<string, string>>; text?: string; statuses?: Record<string, ChainCheckpoint["status"]> } = {}): PipelineView {
  const { pipeline, diagnostics } = parsePipeline(options.text ?? yaml, file);
  const runs = options.runs ?? [];
  const newest: Record<string, ChainRun> = {};
  for (const run of runs) newest[run.stage] ??= run;
  const checkpoint = (label: string, index: number, stage: string | null): ChainCheckpoint => {
    const status = options.statuses?.[label] ?? (options.traces?.[label] === undefined && stage !== null && newest[stage] === undefined ? "missing" : "ready");
    return { label, index, stage, run: stage === null ? null : newest[stage] ?? null, step: null, path: null, status, reason: status === "ready" ? null : `${label} is ${status}.`, traces: options.traces?.[label] ?? {}, evals: {}, flags: {}, stops: [] };
  };
  const chain: Chain | null = pipeline === null ? null : { checkpoints: [checkpoint("M0", 0, null), ...pipeline.stages.map(({ id, index }) => checkpoint(`M${index}`, index, id))], newest };
  return { uri: { fsPath: file } as PipelineView["uri"], label: "seesaw.yaml", pipeline, shown: pipeline, diagnostics, listing: { runs, unreadable: [] }, chain };
}
