import type { Pipeline } from "../domain/pipeline/pipelineModel.ts";
import { lastCheckpoint, type Chain } from "../domain/run/chain.ts";
import { isBeside } from "../domain/run/seedOf.ts";
import type { RunStatus } from "../domain/run/runState.ts";
import type { RunRecord } from "../storage/runs/runStore.ts";
import { AppError } from "../util/errors.ts";
import { t } from "../util/l10n.ts";
import { checkpointOf, type StagePlan } from "./freezeRun.ts";

const activeStatuses: ReadonlySet<RunStatus> = new Set<RunStatus>(["queued", "unreachable", "starting", "running", "stopping", "orphan"]);

export function isActive(run: RunRecord): boolean {
  return activeStatuses.has(run.state.status);
}

/** What there is of a plan already: the finished run that it would only repeat, and the one that runs in its place. `runs` newest first. */
export function standing(pipeline: Pipeline, plan: StagePlan, chain: Chain, runs: readonly RunRecord[]): { upToDate: RunRecord | null; active: RunRecord | null } {
  const stage = plan.stage.id;
  const same = (run: Pick<RunRecord, "spec">): boolean => run.spec.fingerprint === plan.fingerprint && run.spec.start.run === plan.start.run;
  if (plan.seed !== pipeline.seed) {
    const mine = runs.filter((run) => run.stage === stage && run.spec.seed === plan.seed);
    return { upToDate: mine.find((run) => run.state.status === "done" && lastCheckpoint(run) !== null && same(run)) ?? null, active: mine.find(isActive) ?? null };
  }
  // Same inputs, and from the same run of the stage before: what the chain shows as ready and what is skipped agree.
  const now = checkpointOf(chain, stage);
  const current = now?.status === "ready" && now.run !== null && same(now.run);
  return {
    upToDate: current ? (runs.find(({ id }) => id === now.run?.id) ?? null) : null,
    active: runs.find((run) => run.stage === stage && isActive(run) && !isBeside(run, pipeline)) ?? null,
  };
}

export function alreadyRunning(run: RunRecord): AppError {
  return new AppError("already-running", t("Stage `{0}` is already running as {1} ({2}): wait for it, or stop it with `seesaw stop {0}`.", run.stage, run.id, run.state.status));
}
