import type { TraceMeta } from "../../protocol/trace.ts";
import type { RunSpec } from "../../protocol/runSpec.ts";
import { probeSetsOf, type ClosableTrace, type ProbeSet } from "../drift/driftSelection.ts";
import { columnsOf } from "../drift/traceData.ts";
import type { Pipeline } from "../pipeline/pipelineModel.ts";
import type { Chain, ChainCheckpoint, ChainRun } from "../run/chain.ts";
import { AppError, messageOf } from "../../util/errors.ts";
import type { EvaluatedSystem, SetResult } from "./evaluatedSystem.ts";
import type { EvaluationSettings } from "./settings.ts";

export interface ChainSystemInput {
  pipeline: Pipeline;
  chain: Chain;
  runs: readonly ChainRun[];
  traces: { open(path: string): ClosableTrace };
  /** The group of the probe on a line (from 1) of a set's file, where its rows have any. */
  groupOf?(set: ProbeSet, line: number): string | undefined;
  /** Benchmarks of the checkpoints, by label. */
  benchmarks?: ReadonlyMap<string, readonly SetResult[]>;
}

export interface ChainSystem {
  system: EvaluatedSystem;
  /** Checkpoints that are stale, and traces that could not be read: sentences. */
  problems: string[];
}

/**
 * The checkpoints from the base to `end` (default: the last one that there is) with the checks that were run on them, row by
 * row from their traces. In a pipeline that branches these are the stages that lead to `end`, no others.
 */
export function chainSystem(input: ChainSystemInput, end?: string, name = input.pipeline.name): ChainSystem {
  const { pipeline, chain } = input;
  const found = end === undefined ? chain.checkpoints.findLast((one) => one.status !== "missing" && one.stage !== null) : chain.checkpoints.find(({ label, stage }) => label === end || stage === end);
  if (found === undefined) throw new AppError("not-found", end === undefined ? `No stage of ${pipeline.file} has been run yet: start with \`seesaw run --all\`.` : `There is no checkpoint \`${end}\`: there are ${chain.checkpoints.map(({ label }) => label).join(", ")}.`);
  if (found.stage === null) throw new AppError("usage", `${found.label} is where the chain starts: nothing was learned or lost yet. Name a later checkpoint.`);
  const path = pathTo(input, found);
  const problems = path.flatMap(({ label, status, reason }) => (status === "stale" ? [`${label} is stale: ${reason ?? ""}`.trim()] : []));
  const skills = new Set(pipeline.skills.map(({ id }) => id));
  const stages = path.map((checkpoint) => ({ label: checkpoint.label, teaches: checkpoint.stage !== null && skills.has(checkpoint.stage) ? checkpoint.stage : null, results: [...resultsAt(input, checkpoint, problems), ...(input.benchmarks?.get(checkpoint.label) ?? [])] }));
  return { system: { name, seed: found.run?.spec.seed ?? pipeline.seed, stages, label: found.label, results: stages.at(-1)?.results ?? [] }, problems };
}

function pathTo({ pipeline, chain }: ChainSystemInput, end: ChainCheckpoint): ChainCheckpoint[] {
  const path = [end];
  while (path[0]?.stage != null) {
    const from = pipeline.stages.find(({ id }) => id === path[0]?.stage)?.from ?? null;
    const parent = chain.checkpoints.find(({ stage }) => stage === from);
    if (parent === undefined || path.includes(parent)) break;
    path.unshift(parent);
  }
  return path;
}

/** The checks of one checkpoint, by probe set; sets that were scored but not checked are left out. */
function resultsAt(input: ChainSystemInput, { label, traces }: ChainCheckpoint, problems: string[]): SetResult[] {
  return input.pipeline.skills.flatMap(probeSetsOf).flatMap((set): SetResult[] => {
    const path = traces[`${set.skill}.${set.split}`];
    if (path === undefined) return [];
    let trace: ClosableTrace | null = null;
    try {
      trace = input.traces.open(path);
      const { lines, correct, scored } = columnsOf(trace);
      const rows = [...lines].flatMap((line, place) => {
        if (correct[place] === -1 || scored[place] === 0) return [];
        const group = input.groupOf?.(set, line);
        return [{ key: String(line), correct: correct[place] === 1, ...(group !== undefined && { group }) }];
      });
      const { meta } = trace;
      return rows.length === 0 ? [] : [{ ...set, settings: settingsOf(meta, input.runs.find(({ id }) => id === meta.run)?.spec), rows }];
    } catch (error) {
      problems.push(`${label}: ${messageOf(error)}`);
      return [];
    } finally {
      trace?.close();
    }
  });
}

/** Checks generate greedily (`scoring/generate.py`); the trace's temperature is that of the token scores. */
function settingsOf(meta: TraceMeta, spec: RunSpec | undefined): EvaluationSettings {
  const check = spec?.skills.find(({ id }) => id === meta.skill)?.check;
  return {
    prompts: meta.probe_set_hash,
    template: meta.template_hash,
    tokenizer: meta.tokenizer_hash,
    sampling: "greedy",
    engine: meta.engine,
    dtype: meta.dtype,
    attention: meta.attention,
    mask: meta.mask,
    ...(check !== undefined && { check: JSON.stringify(Object.fromEntries(Object.entries(check).sort(([a], [b]) => (a < b ? -1 : 1)))) }),
    ...(spec !== undefined && { max_tokens: spec.probe.max_new_tokens }),
  };
}
