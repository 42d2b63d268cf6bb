import { formatDuration, formatNumber, formatPlural } from "../domain/format.ts";
import { runSeconds } from "../domain/run/reduceRun.ts";
import { reasonText } from "../domain/run/reasonText.ts";
import type { RunState, RunStatus } from "../domain/run/runState.ts";

const liveStatuses: ReadonlySet<RunStatus> = new Set<RunStatus>(["starting", "running", "stopping", "orphan"]);

/** True while something of the run lives. */
export function isLive(status: RunStatus): boolean {
  return liveStatuses.has(status);
}

/** True for a run that ended before it was done: a new attempt can go on from its last checkpoint. */
export function isResumable(status: RunStatus): boolean {
  return !isLive(status) && status !== "done";
}

/** What a run is doing or how it ended, in one line: `step 40 of 150 · 12 s left · loss 1.23`. */
export function runLine(state: RunState): string {
  if (isLive(state.status)) return liveLine(state);
  const parts = [statusWords[state.status]];
  if (state.status !== "done" && state.step > 0) parts.push(`at step ${state.step} of ${state.total}`);
  else if (state.total > 0) parts.push(formatPlural(state.total, "step"));
  const seconds = state.endedAt === null ? null : runSeconds(state, state.endedAt);
  if (seconds !== null) parts.push(formatDuration(seconds));
  return parts.join(" · ");
}

function liveLine(state: RunState): string {
  const head: Partial<Record<RunStatus, string>> = { starting: "starting", stopping: "stopping", orphan: "running without its agent" };
  const parts: string[] = [];
  const word = head[state.status];
  if (word !== undefined) parts.push(word);
  if (state.total > 0) parts.push(`step ${state.step} of ${state.total}`);
  if (state.phase !== null && state.phase !== "train") parts.push(phaseWords[state.phase]);
  if (state.etaSeconds !== null) parts.push(`${formatDuration(state.etaSeconds)} left`);
  if (state.loss !== null) parts.push(`loss ${formatNumber(state.loss, 3)}`);
  return parts.join(" · ") || "starting";
}

/** The run in the status bar: `tool 45/120 · ETA 6 s`. */
export function statusBarText(stage: string, state: RunState): string {
  const steps = state.total > 0 ? ` ${state.step}/${state.total}` : "";
  const doing = state.status === "stopping" ? "stopping" : state.phase !== null && state.phase !== "train" ? phaseWords[state.phase] : null;
  const parts = [doing, state.etaSeconds === null || state.status === "stopping" ? null : `ETA ${formatDuration(state.etaSeconds)}`].filter((part) => part !== null);
  return [`${stage}${steps}`, ...(parts.length === 0 && steps === "" ? ["starting"] : parts)].join(" · ");
}

export const statusWords: Record<RunStatus, string> = {
  starting: "starting",
  running: "running",
  stopping: "stopping",
  orphan: "running without its agent",
  done: "done",
  failed: "failed",
  killed: "killed",
  "out-of-memory": "out of memory",
  cancelled: "stopped",
  lost: "lost",
  unknown: "ended, nobody knows how",
};

const phaseWords: Record<NonNullable<RunState["phase"]>, string> = {
  preflight: "checking",
  load: "loading",
  probe: "scoring probes",
  train: "training",
  eval: "running checks",
  save: "saving",
};

/** The sentence that explains an end that was not `done`; null when there is nothing to explain. */
export function endText(state: RunState): string | null {
  if (state.reason === null || state.reason.kind === "done" || state.reason.kind === "cancelled") return null;
  return reasonText(state.reason);
}
