import type { RunRecord, RunStore } from "../storage/runs/runStore.ts";
import { AppError } from "../util/errors.ts";
import { t } from "../util/l10n.ts";
import { isActive } from "./standing.ts";
import { sleep } from "./sleep.ts";
import type { RemoteWatch } from "./remote/remoteWatch.ts";

/** Shortest time between two looks, and the longest: a killed agent writes nothing, so silence is looked into too. */
const settleMs = 150;
const idleMs = 1_500;
/** How long a run on another machine that has ended is waited for, until the last of what it wrote is here. */
const copyMs = 30_000;

/**
 * Follows a run to its end: calls back at once and after every change, and resolves with its last state when nothing of
 * it lives any more. When `signal` fires it stops looking (the run goes on) and throws AppError("cancelled"). `remotes`
 * copies what a run on another machine writes, as long as it is followed here.
 */
export async function followRun(
  runs: RunStore,
  root: string,
  runId: string,
  onState: (run: RunRecord) => void,
  signal?: AbortSignal,
  remotes?: Pick<RemoteWatch, "watch">,
): Promise<RunRecord> {
  const unwatch = remotes?.watch(root, runId);
  let changed = true;
  let wake = (): void => {};
  const stop = runs.watch(root, () => {
    changed = true;
    wake();
  });
  const abort = (): void => wake();
  signal?.addEventListener("abort", abort);
  let seen = "";
  let endedAt: number | null = null;
  try {
    for (;;) {
      if (signal?.aborted) throw new AppError("cancelled", t("Run {0} goes on; only this window stopped following it.", runId));
      changed = false;
      const run = (await runs.list(root)).runs.find((candidate) => candidate.id === runId);
      if (!run) throw new AppError("not-found", t("Run {0} is gone: its folder was removed while it was followed.", runId));
      const mark = `${run.state.lastSeq} ${run.state.status} ${run.state.remote?.word?.reason}`;
      if (mark !== seen) onState(run);
      seen = mark;
      if (!isActive(run)) {
        endedAt ??= performance.now();
        if (run.state.remote === null || run.state.remote.complete || performance.now() - endedAt > copyMs) return run;
      } else endedAt = null;
      await sleep(settleMs, signal);
      if (!changed) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, idleMs);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
          if (changed || signal?.aborted) wake();
        });
        wake = () => {};
      }
    }
  } finally {
    stop();
    signal?.removeEventListener("abort", abort);
    await unwatch?.();
  }
}
