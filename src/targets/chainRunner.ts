import type { Diagnostic, Pipeline } from "../domain/pipeline/pipelineModel.ts";
import { runsFolder, type RunRecord, type RunStore } from "../storage/runs/runStore.ts";
import { AppError } from "../util/errors.ts";
import { t } from "../util/l10n.ts";
import { followRun } from "./followRun.ts";
import type { Launcher, StartedRun, StartOptions } from "./launcher.ts";
import type { RemoteWatch } from "./remote/remoteWatch.ts";
import { holdChain } from "./stageLock.ts";

export type ChainEvent =
  | { type: "up-to-date"; stage: string; run: RunRecord }
  | { type: "starting"; stage: string; position: number; of: number }
  /** The stage was already running with the same inputs: followed instead of started. */
  | { type: "joined"; stage: string; run: RunRecord }
  | { type: "started"; stage: string; run: StartedRun }
  | { type: "progress"; stage: string; run: RunRecord }
  | { type: "finished"; stage: string; run: RunRecord };

export interface ChainOptions extends StartOptions {
  /** Ids, in the order they run. */
  stages: readonly string[];
  /** Run stages again that are up to date. */
  force?: boolean;
  /** Join a stage that already runs with the same inputs; otherwise that is AppError("already-running"). */
  join?: boolean;
  onEvent: (event: ChainEvent) => void;
}

export interface ChainResult {
  /** The run each stage ended with, in order; one that was up to date counts. */
  runs: RunRecord[];
  /** The run that did not end `done`, at which the chain stopped; null when all did. */
  failed: RunRecord | null;
}

/** Machines that have not said by then how their runs are do not hold up the others, in ms. */
const askMs = 30_000;

export interface ChainServices {
  launcher: Launcher;
  runs: RunStore;
  /** Copies what runs on other machines write; without it they are only seen if another process does. */
  remotes?: Pick<RemoteWatch, "watch" | "refresh">;
}

/**
 * Runs stages one after the other, each to its end on whatever machine, and stops at the first that does not finish `done`.
 * The stages are detached: when `signal` fires, AppError("cancelled") is thrown and the running one goes on.
 */
export async function runChain(
  services: ChainServices,
  pipeline: Pipeline,
  diagnostics: readonly Diagnostic[],
  options: ChainOptions,
): Promise<ChainResult> {
  // Between two stages nothing lives: without this a window would take the turn for its queue.
  const release = await holdChain(runsFolder(pipeline.root), options.stages);
  try {
    return await runStages(services, pipeline, diagnostics, options);
  } finally {
    await release();
  }
}

async function runStages({ launcher, runs, remotes }: ChainServices, pipeline: Pipeline, diagnostics: readonly Diagnostic[], options: ChainOptions): Promise<ChainResult> {
  const { onEvent } = options;
  const ended: RunRecord[] = [];
  // What ran on while nobody looked may be done by now.
  const limit = AbortSignal.timeout(askMs);
  await remotes?.refresh(pipeline.root, { signal: options.signal === undefined ? limit : AbortSignal.any([options.signal, limit]) });
  for (const [i, stage] of options.stages.entries()) {
    if (options.signal?.aborted) throw new AppError("cancelled", t("Stopped before stage `{0}`.", stage));
    onEvent({ type: "starting", stage, position: i + 1, of: options.stages.length });
    const { plan, upToDate, active } = await launcher.outlook(pipeline, stage);
    let id: string;
    if (upToDate && !options.force && !active) {
      onEvent({ type: "up-to-date", stage, run: upToDate });
      ended.push(upToDate);
      continue;
    }
    if (active && options.join && active.spec.fingerprint === plan.fingerprint) {
      onEvent({ type: "joined", stage, run: active });
      id = active.id;
    } else {
      const started = await launcher.startStage(pipeline, diagnostics, stage, options);
      onEvent({ type: "started", stage, run: started });
      id = started.id;
    }
    const run = await followRun(runs, pipeline.root, id, (state) => onEvent({ type: "progress", stage, run: state }), options.signal, remotes);
    onEvent({ type: "finished", stage, run });
    ended.push(run);
    if (run.state.status !== "done") return { runs: ended, failed: run };
  }
  return { runs: ended, failed: null };
}
