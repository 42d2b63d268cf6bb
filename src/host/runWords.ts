import { formatDuration, formatNumber, formatPlural } from "../domain/format.ts";
import { runSeconds } from "../domain/run/reduceRun.ts";
import { reasonText } from "../domain/run/reasonText.ts";
import { queuedText, remoteLines, unreachableText } from "../domain/run/remoteText.ts";
import type { RunState, RunStatus } from "../domain/run/runState.ts";
import { t } from "../util/l10n.ts";

const liveStatuses: ReadonlySet<RunStatus> = new Set<RunStatus>(["queued", "unreachable", "starting", "running", "stopping", "orphan"]);

/** True while something of the run lives, or waits for its turn, or may live where nobody answers now. */
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
  if (state.status !== "done" && state.step > 0 && state.total > 0) parts.push(t("at step {0} of {1}", state.step, state.total));
  else if (state.total > 0) parts.push(formatPlural(state.total, "step"));
  const seconds = state.endedAt === null ? null : runSeconds(state, state.endedAt);
  if (seconds !== null) parts.push(formatDuration(seconds));
  return parts.join(" · ");
}

function liveLine(state: RunState): string {
  if (state.status === "unreachable") return unreachableLine(state);
  const head: Partial<Record<RunStatus, string>> = { queued: state.remote === null ? t("queued") : queuedText(state.remote), starting: t("starting"), stopping: t("stopping"), orphan: t("running without its agent") };
  const parts: string[] = [];
  const word = head[state.status];
  if (word !== undefined) parts.push(word);
  if (state.total > 0) parts.push(t("step {0} of {1}", state.step, state.total));
  if (state.status === "queued") return parts.join(" · ");
  if (state.phase !== null && state.phase !== "train") parts.push(phaseWords[state.phase]);
  if (state.etaSeconds !== null) parts.push(t("{0} left", formatDuration(state.etaSeconds)));
  if (state.loss !== null) parts.push(t("loss {0}", formatNumber(state.loss, 3)));
  return parts.join(" · ") || t("starting");
}

/** As it was last heard of: what it does now, and how long it still takes, is not known. */
function unreachableLine({ remote, step, total }: RunState): string {
  const word = remote === null ? t("unreachable") : unreachableText(remote, Date.now() / 1000);
  if (total > 0 && step > 0) return `${word} · ${t("last seen at step {0} of {1}", step, total)}`;
  return remote?.unreachable == null ? word : `${word} · ${t("before: {0}", statusWords[remote.unreachable.last])}`;
}

/** The run in the status bar: `tool 45/120 · ETA 6 s`. */
export function statusBarText(stage: string, state: RunState): string {
  const steps = state.total > 0 ? ` ${state.step}/${state.total}` : "";
  if (state.status === "queued" || state.status === "unreachable") return `${stage}${state.step > 0 ? steps : ""} · ${statusWords[state.status]}`;
  const doing = state.status === "stopping" ? t("stopping") : state.phase !== null && state.phase !== "train" ? phaseWords[state.phase] : null;
  const parts = [doing, state.etaSeconds === null || state.status === "stopping" ? null : t("ETA {0}", formatDuration(state.etaSeconds))].filter((part) => part !== null);
  return [`${stage}${steps}`, ...(parts.length === 0 && steps === "" ? [t("starting")] : parts)].join(" · ");
}

export const statusWords: Record<RunStatus, string> = {
  get queued() { return t("queued"); },
  get unreachable() { return t("unreachable"); },
  get starting() { return t("starting"); },
  get running() { return t("running"); },
  get stopping() { return t("stopping"); },
  get orphan() { return t("running without its agent"); },
  get done() { return t("done"); },
  get paused() { return t("paused by a flag"); },
  get failed() { return t("failed"); },
  get killed() { return t("killed"); },
  get "out-of-memory"() { return t("out of memory"); },
  get cancelled() { return t("stopped"); },
  get lost() { return t("lost"); },
  get unknown() { return t("ended, nobody knows how"); },
};

const phaseWords: Record<NonNullable<RunState["phase"]>, string> = {
  get preflight() { return t("checking"); },
  get load() { return t("loading"); },
  get probe() { return t("scoring probes"); },
  get generate() { return t("generating answers"); },
  get train() { return t("training"); },
  get eval() { return t("running checks"); },
  get benchmark() { return t("running benchmarks"); },
  get save() { return t("saving"); },
};

/** The sentence that explains an end that was not `done`; null when there is nothing to explain. */
export function endText(state: RunState): string | null {
  if (state.reason === null || state.reason.kind === "done" || state.reason.kind === "cancelled") return null;
  return reasonText(state.reason);
}

/** On which machine a run is and when it was heard of last, a sentence a line; nothing for a run of this machine. */
export function whereLines(state: RunState): string[] {
  return remoteLines(state, Date.now() / 1000, (status) => statusWords[status]);
}
