import { join } from "node:path";
import type { Pipeline } from "../domain/pipeline/pipelineModel.ts";
import { targetAddress } from "../domain/targets/targetList.ts";
import type { ReachReason, TargetReport } from "../protocol/remote.ts";
import type { CleaningPlan, StoreCleared, StoreItem } from "../protocol/cleaning.ts";
import type { RunStore } from "../storage/runs/runStore.ts";
import { AppError } from "../util/errors.ts";
import { t } from "../util/l10n.ts";
import type { Log } from "../util/log.ts";
import type { StartOptions } from "./launcher.ts";
import { localReport } from "./localReport.ts";
import type { Cleaning } from "./remote/cleaning.ts";
import type { RemoteTarget } from "./remote/port.ts";
import { reachOf } from "./remote/reachError.ts";

/** A check that has not answered after this is given up, in ms: each of its questions has a limit of its own, this is for all together. */
export const checkMs = 90_000;

export interface DeskDeps {
  runnerDir: string;
  log: Log;
  runs: RunStore;
  /** The target of this name, ready to be asked; loads its adapter. */
  remote(pipeline: Pipeline, target: string): Promise<RemoteTarget>;
}

/** What a person asks of targets before anything is started there. */
export class TargetDesk {
  private readonly deps: DeskDeps;

  constructor(deps: DeskDeps) {
    this.deps = deps;
  }

  /** The ssh command that logs in to a host and may ask questions, and whose connection later checks and runs share where ssh can. */
  async loginArgv(host: string): Promise<string[]> {
    return (await import("./remote/sshCommand.ts")).loginArgv(host);
  }

  /**
   * Everything that a stage would need there. That a target cannot be reached is an answer too: a report with its problem.
   * Never asks anything on a terminal, and never takes longer than `checkMs`. AppError("untrusted" | "not-found" | "cancelled").
   */
  async check(pipeline: Pipeline, id: string, options: StartOptions & { limitMs?: number }): Promise<TargetReport> {
    if (!options.trusted) throw new AppError("untrusted", t("No target of {0} is contacted before you trust this workspace.", pipeline.root));
    const target = pipeline.targets.find((one) => one.id === id);
    if (target === undefined) throw new AppError("not-found", t("There is no target `{0}` in {1}: there are {2}.", id, pipeline.file, pipeline.targets.map((one) => one.id).join(", ")));
    const limit = AbortSignal.timeout(options.limitMs ?? checkMs);
    const signal = options.signal === undefined ? limit : AbortSignal.any([options.signal, limit]);
    const address = targetAddress(target);
    const unreached = (reason: ReachReason, message: string): TargetReport => ({ target: id, kind: target.kind, address, reachable: false, problems: [{ reason, message }], python: null, gpus: null, disk: null, queue: null, versions: {}, roundTrip: null });
    try {
      if (target.kind === "local") {
        const python = target.python === null ? {} : { target: { id, python: target.python } };
        return await localReport(id, address, { root: pipeline.root, ...options.python, ...python, probeFile: join(this.deps.runnerDir, "probe.py"), log: this.deps.log, signal });
      }
      const remote = await this.deps.remote(pipeline, id);
      return await Promise.race([remote.check(signal), ended(signal)]);
    } catch (error) {
      if (limit.aborted && options.signal?.aborted !== true) return unreached("no-route", t("{0} did not answer within {1} s: check that it is up, and try again.", address, Math.round((options.limitMs ?? checkMs) / 1000)));
      const reason = reachOf(error);
      if (reason === null) throw error;
      return unreached(reason, (error as Error).message);
    }
  }

  /** What could be removed from a target, and what stays. Changes nothing there. AppError("untrusted" | "not-found" | "usage" | "unreachable" | "cancelled"). */
  async cleaning(pipeline: Pipeline, id: string, options: StartOptions): Promise<CleaningPlan> {
    return (await import("./remote/cleaning.ts")).planCleaning(await this.toClean(pipeline, id, options), options.signal);
  }

  /** Removes what a person has said yes to, as far as nobody needs it by then. */
  async clean(pipeline: Pipeline, id: string, items: readonly StoreItem[], options: StartOptions): Promise<StoreCleared> {
    return (await import("./remote/cleaning.ts")).clean(await this.toClean(pipeline, id, options), items, options.signal);
  }

  private async toClean(pipeline: Pipeline, id: string, options: StartOptions): Promise<Cleaning> {
    if (!options.trusted) throw new AppError("untrusted", t("No target of {0} is contacted before you trust this workspace.", pipeline.root));
    const target = await this.deps.remote(pipeline, id);
    const settings = pipeline.targets.find((one) => one.id === id);
    if (settings === undefined || settings.kind === "local") throw new AppError("usage", t("The target `{0}` is this machine: its runs are in {1}, to be removed by hand.", id, join(pipeline.root, ".seesaw", "runs")));
    return { root: pipeline.root, runs: this.deps.runs, target, settings };
  }
}

/** Rejects when the signal fires: for what does not listen to it. */
function ended(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const cancel = (): void => reject(new AppError("cancelled", t("The check was stopped.")));
    if (signal.aborted) cancel();
    else signal.addEventListener("abort", cancel, { once: true });
  });
}
