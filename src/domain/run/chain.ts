import type { FlagState } from "../../protocol/journal.ts";
import type { RunSpec } from "../../protocol/runSpec.ts";
import { t } from "../../util/l10n.ts";
import type { Pipeline, Stage } from "../pipeline/pipelineModel.ts";
import type { FlagChecks } from "./checkedFlag.ts";
import type { RunState } from "./runState.ts";
import { joinPath } from "../../util/paths.ts";
import { isBeside } from "./seedOf.ts";

/** What the chain needs of a run. `RunRecord` of the storage room is one. */
export interface ChainRun {
  dir: string;
  id: string;
  stage: string;
  spec: RunSpec;
  state: RunState;
  /** What a person had checked on further prompts; absent: nothing. */
  checked?: FlagChecks;
}

export interface EvalCount {
  n: number;
  correct: number;
}

/** Everything known of the weights at one step of one run. */
export interface ProbeStop {
  stage: string;
  run: string;
  step: number;
  /** Steps since M0 along the chain: the x axis of a chart over all stages. */
  position: number;
  /** `M2` at the end of a stage, else `search 20`. */
  label: string;
  /** Absolute paths of the traces, by probe set. */
  traces: Readonly<Record<string, string>>;
  evals: Readonly<Record<string, EvalCount>>;
}

/** One of M0 … MN. */
export interface ChainCheckpoint {
  /** `M0`, `M1`, … */
  label: string;
  index: number;
  /** The stage that ends here; null for M0. */
  stage: string | null;
  /** The run it comes from; for M0 the run that scored it. */
  run: ChainRun | null;
  step: number | null;
  /** Absolute path of the weights. */
  path: string | null;
  /** `ready`: the weights are there; `stale`: they are, but not from the newest chain; `missing`: not trained yet. */
  status: "ready" | "stale" | "missing";
  /** Why it is stale or missing: a sentence. */
  reason: string | null;
  traces: Readonly<Record<string, string>>;
  evals: Readonly<Record<string, EvalCount>>;
  /** Newest state of each flag of the stage that ends here. */
  flags: Readonly<Record<string, FlagState>>;
  /** All scored steps of the stage, its start and end included; empty for M0. */
  stops: ProbeStop[];
}

/** The checkpoints M0 … MN of a pipeline, from its run folders. */
export interface Chain {
  checkpoints: ChainCheckpoint[];
  /** The newest run of each stage, finished or not, by stage id. */
  newest: Readonly<Record<string, ChainRun>>;
}

/** Which run stands for each stage, and what is known at each of its checkpoints. `runs` in any order; those of other seeds, beside the chain, are no part of it. */
export function buildChain(pipeline: Pipeline, runs: readonly ChainRun[]): Chain {
  const newestFirst = runs.filter((run) => !isBeside(run, pipeline)).sort((a, b) => b.spec.created - a.spec.created || (a.id < b.id ? 1 : -1));
  const newest: Record<string, ChainRun> = {};
  for (const run of newestFirst) newest[run.stage] ??= run;
  const checkpoints: ChainCheckpoint[] = [];
  const byStage = new Map<string, ChainCheckpoint>();
  for (const stage of pipeline.stages) {
    const parent = stage.from === null ? null : byStage.get(stage.from) ?? null;
    const checkpoint = stageCheckpoint(stage, parent, byStage, newestFirst, newest[stage.id] ?? null);
    byStage.set(stage.id, checkpoint);
    checkpoints.push(checkpoint);
  }
  const base = baseCheckpoint(pipeline, newestFirst, byStage);
  for (const stage of pipeline.stages) placeStops(stage, byStage);
  borrowFromChildren(pipeline, byStage, newestFirst);
  return { checkpoints: [base, ...checkpoints], newest };
}

function stageCheckpoint(stage: Stage, parent: ChainCheckpoint | null, byStage: ReadonlyMap<string, ChainCheckpoint>, newestFirst: readonly ChainRun[], newest: ChainRun | null): ChainCheckpoint {
  const empty = { label: `M${stage.index}`, index: stage.index, stage: stage.id, run: null, step: null, path: null, traces: {}, evals: {}, flags: {}, stops: [] };
  const done = newestFirst.filter((run) => run.stage === stage.id && run.state.status === "done" && lastCheckpoint(run) !== null);
  const step = stage.fromStep ?? null;
  const origin = step === null ? parent?.run ?? null : forkOrigin(stage, parent, newestFirst);
  const starts = ({ spec: { start } }: ChainRun): boolean => (stage.from === null ? start.run === null : origin !== null && start.run === origin.id && (step === null || start.step === step));
  const fitting = done.find((run) => starts(run) && staleModel(run, byStage) === null);
  const run = fitting ?? done[0];
  if (run === undefined) {
    const reason = newest === null ? t("Stage {0} has not been run yet.", stage.id) : t("The newest run of {0} is {1} and has no final checkpoint.", stage.id, newest.state.status);
    return { ...empty, status: "missing", reason };
  }
  const checkpoint = lastCheckpoint(run) as NonNullable<ReturnType<typeof lastCheckpoint>>;
  const used = staleModel(run, byStage);
  const stale = used === null ? staleReason(stage, parent, origin, run, fitting !== undefined) : `${used} ${t("Run {0} again.", stage.id)}`;
  const stops = probeStops(run, checkpoint.step, empty.label);
  const end = stops.find((stop) => stop.step === checkpoint.step);
  const flags: Record<string, FlagState> = {};
  for (const flag of run.state.flags) flags[flag.id] = flag.state;
  return {
    ...empty, run, step: checkpoint.step, path: joinPath(run.dir, checkpoint.path), status: stale === null ? "ready" : "stale", reason: stale,
    traces: end?.traces ?? {}, evals: end?.evals ?? {}, flags, stops,
  };
}

/** What a stage starts from, as `seesaw.yaml` writes it: `math`, `math@40`; null for the base model. */
export function fromName({ from, fromStep }: Pick<Stage, "from" | "fromStep">): string | null {
  return from === null || fromStep == null ? from : `${from}@${fromStep}`;
}

/** The run whose checkpoint a fork starts from: the one that stands for the stage, else its newest, which may have been paused there. */
export function forkOrigin(stage: Pick<Stage, "from" | "fromStep">, parent: Pick<ChainCheckpoint, "run"> | null, newestFirst: readonly ChainRun[]): ChainRun | null {
  const has = (run: ChainRun | null | undefined): boolean => run?.state.checkpoints.some(({ step }) => step === stage.fromStep) === true;
  if (has(parent?.run)) return parent?.run ?? null;
  return newestFirst.find((run) => run.stage === stage.from && has(run)) ?? null;
}

/** A checkpoint that a run used besides its start, of a run that no longer stands for its stage, as a sentence; null if none. */
function staleModel(run: ChainRun, byStage: ReadonlyMap<string, ChainCheckpoint>): string | null {
  for (const [name, model] of Object.entries(run.spec.models ?? {})) {
    const stage = name.replace(/@\d+$/, "");
    const now = byStage.get(stage);
    if (model.run === null || now === undefined) continue;
    if (now.run?.id !== model.run) return now.run === null ? t("It used {0} of run {1}, but there is no finished run of {2}.", model.label, model.run, stage) : t("It used {0} of run {1}, but the run of {2} is now {3}.", model.label, model.run, stage, now.run.id);
    if (now.status === "stale") return t("It used {0}, which is stale.", model.label);
  }
  return null;
}

/** Why a finished run does not stand for the pipeline as it is now, or null. */
function staleReason(stage: Stage, parent: ChainCheckpoint | null, origin: ChainRun | null, run: ChainRun, fits: boolean): string | null {
  const trainedFrom = run.spec.start.run === null ? t("the base model") : t("{0} of run {1}", run.spec.start.label, run.spec.start.run);
  const again = t("Run {0} again.", stage.id);
  if (stage.from === null) return fits ? null : `${t("It was trained from {0}, but the stage now starts from the base model.", trainedFrom)} ${again}`;
  const { fromStep = null } = stage;
  if (fromStep !== null) return fits ? null : `${t("It was trained from {0}, but now starts from step {1} of {2}.", trainedFrom, fromStep, origin?.id ?? stage.from)} ${again}`;
  if (parent === null || parent.run === null) return `${t("It was trained from {0}, but there is no finished run of {1}.", trainedFrom, stage.from)} ${again}`;
  if (!fits) return `${t("It was trained from {0}, but the run of {1} is now {2}.", trainedFrom, stage.from, parent.run.id)} ${again}`;
  return parent.status === "stale" ? t("Its start {0} is stale. Run {1} again, then {2}.", parent.label, stage.from, stage.id) : null;
}

/** The run's final checkpoint: the one marked so, else the one with the highest step (numbers, not names: case C01). */
export function lastCheckpoint(run: Pick<ChainRun, "state">): RunState["checkpoints"][number] | null {
  const { checkpoints } = run.state;
  return checkpoints.findLast((checkpoint) => checkpoint.final) ?? checkpoints.reduce<RunState["checkpoints"][number] | null>((best, one) => (best === null || one.step > best.step ? one : best), null);
}

/** Every step of a run at which something was scored or checked. `position` counts from the run's own start. */
export function probeStops(run: ChainRun, lastStep: number | null, endLabel: string): ProbeStop[] {
  const steps = new Set([...run.state.probes, ...run.state.evals].map((point) => point.step));
  return [...steps].sort((a, b) => a - b).map((step) => {
    const traces: Record<string, string> = {};
    const evals: Record<string, EvalCount> = {};
    for (const point of run.state.probes) if (point.step === step) traces[`${point.skill}.${point.split}`] = joinPath(run.dir, point.trace);
    for (const point of run.state.evals) if (point.step === step) evals[`${point.skill}.${point.split}`] = { n: point.n, correct: point.correct };
    return { stage: run.stage, run: run.id, step, position: step, label: step === lastStep ? endLabel : `${run.stage} ${step}`, traces, evals };
  });
}

/** M0 is scored at step 0 of the stages that start from the base model. */
function baseCheckpoint(pipeline: Pipeline, newestFirst: readonly ChainRun[], byStage: ReadonlyMap<string, ChainCheckpoint>): ChainCheckpoint {
  const first = pipeline.stages.find((stage) => stage.from === null);
  const chosen = first === undefined ? null : byStage.get(first.id)?.run ?? null;
  const scored = [chosen, ...newestFirst.filter((run) => run.spec.start.run === null)].find((run) => run !== null && run.state.probes.some((point) => point.step === 0)) ?? null;
  const start = scored === null ? undefined : probeStops(scored, null, "M0").find((stop) => stop.step === 0);
  return {
    label: "M0", index: 0, stage: null, run: scored, step: 0, path: pipeline.base, status: "ready",
    reason: start === undefined ? t("The base model is scored when the first stage starts.") : null,
    traces: start?.traces ?? {}, evals: start?.evals ?? {}, flags: {}, stops: [],
  };
}

/** Shifts the stops of a stage to where its parent ends. */
function placeStops(stage: Stage, byStage: ReadonlyMap<string, ChainCheckpoint>): void {
  const checkpoint = byStage.get(stage.id);
  const parent = stage.from === null ? undefined : byStage.get(stage.from);
  if (checkpoint === undefined) return;
  const end = parent?.stops.at(-1);
  const offset = end === undefined ? 0 : stage.fromStep == null ? end.position : end.position - end.step + stage.fromStep;
  checkpoint.stops = checkpoint.stops.map((stop) => ({ ...stop, position: stop.step + offset }));
}

/** Step 0 of a stage scores its start checkpoint: it stands in where the parent's last step was not scored. */
function borrowFromChildren(pipeline: Pipeline, byStage: ReadonlyMap<string, ChainCheckpoint>, newestFirst: readonly ChainRun[]): void {
  for (const stage of pipeline.stages) {
    const checkpoint = byStage.get(stage.id);
    if (checkpoint?.run == null) continue;
    for (const child of newestFirst) {
      if (child.spec.start.run !== checkpoint.run.id || child.spec.start.step !== checkpoint.step) continue;
      const start = probeStops(child, null, checkpoint.label).find((stop) => stop.step === 0);
      checkpoint.traces = { ...start?.traces, ...checkpoint.traces };
      checkpoint.evals = { ...start?.evals, ...checkpoint.evals };
    }
  }
}
