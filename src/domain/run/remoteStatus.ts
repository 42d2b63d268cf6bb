import type { AttemptProbe } from "../../protocol/attempt.ts";
import type { FinishReason } from "../../protocol/journal.ts";
import type { MirrorFile, RemoteAttempt, RemoteFile, SchedulerWord } from "../../protocol/remote.ts";
import type { RunState, RunStatus } from "./runState.ts";
import { t } from "../../util/l10n.ts";
import { reasonFromExit } from "./attemptStatus.ts";
import { finish } from "./reduceRun.ts";
import { emptyMirror, isComplete, newestAttempt } from "./remoteFiles.ts";

/**
 * The state of a run on another machine. The journal knows what happened; the target's agent, in the newest probe, whether
 * it still happens; the scheduler, whether it has begun and what became of a job whose machine has no word of it. An end
 * comes from exit.json, else from the scheduler, else it is unknown. That nobody answers says nothing about the run.
 */

/** After so many seconds without a word the last known state is not shown as the present one any more. */
export const stalePatience = 120;

/** Stands for the scheduler's word where the run folder on the target was removed. */
export const folderGone = "folder-gone";

/** `mirror` null: nothing was heard yet. `now` in seconds since 1970, of this machine. */
export function statusFromRemote(journal: RunState, remote: RemoteFile, mirror: MirrorFile | null, now: number): RunState {
  const heard = mirror ?? emptyMirror();
  const asked = newestAttempt(remote);
  const attempt = Math.max(asked?.attempt ?? 1, heard.probe === null ? 0 : heard.attempt);
  const { target, kind, address } = remote;
  const state: RunState = {
    ...journal,
    remote: { target, kind, address, job: asked?.job?.id ?? null, word: heard.word, unreachable: null, heard: heard.heard, complete: isComplete(remote, mirror) },
  };
  if (state.reason === null || attempt > state.attempt) {
    const probe = heard.attempt === attempt ? heard.probe : null;
    if (attempt > state.attempt) Object.assign(state, { attempt, status: "starting", reason: null, endedAt: null, etaSeconds: null });
    judge(state, { kind, asked: asked?.attempt === attempt ? asked : null, probe, word: heard.word });
  }
  explain(state, heard.word);
  again(state, asked, heard.word);
  if (state.reason === null) reach(state, heard, now);
  return state;
}

interface Heard {
  kind: RemoteFile["kind"];
  /** null: the target began this attempt by itself (a job that was put back into the queue). */
  asked: RemoteAttempt | null;
  probe: AttemptProbe | null;
  word: SchedulerWord | null;
}

/** Of an attempt that the journal does not know the end of. */
function judge(state: RunState, heard: Heard): void {
  const { probe } = heard;
  const alive: RunStatus = state.status === "starting" ? "starting" : "running";
  switch (probe?.state) {
    case "running":
    case "orphan":
      state.status = probe.cancel === true ? "stopping" : probe.state === "orphan" ? "orphan" : alive;
      return;
    case "exited":
      return finish(state, reasonFromExit(probe.exit ?? {}), timeOf(probe.exit));
    case "lost:no-exit-file":
    case "lost:reboot-or-other-host":
      return judgeGone(state, heard, probe);
    case "absent":
    case "claimed":
    case undefined:
      return judgeUnborn(state, heard);
  }
}

/** Agent and training are gone, as far as the machine that was asked can see, and left no exit.json. */
function judgeGone(state: RunState, { kind, word }: Heard, probe: AttemptProbe): void {
  const rebooted = probe.state === "lost:reboot-or-other-host";
  // A job's processes are on another machine than the one that answers: only the scheduler knows whether it lives.
  if (kind !== "ssh" && (word === null || word.state === "running" || word.state === "completing")) {
    state.status = state.status === "starting" ? "starting" : "running";
    return;
  }
  if (word?.state === "queued") return queue(state);
  if (word?.state === "ended") return finish(state, schedulerReason(word), null);
  const host = probe.started === null ? "" : ` (${probe.started.host})`;
  const message = rebooted
    ? t("The machine was restarted while the run was going{0}. Resume from the last checkpoint.", host)
    : t("The agent and the training are both gone and left no word of their end. Resume from the last checkpoint.");
  finish(state, { kind: "lost", message }, null);
}

/** No agent has begun yet, or none has been heard of. */
function judgeUnborn(state: RunState, { asked, probe, word, kind }: Heard): void {
  if (word?.state === "queued") return queue(state);
  if (word?.state === "ended") return finish(state, schedulerReason(word), null);
  if (word?.state === "not-found") {
    const message =
      word.reason === folderGone
        ? t("Its folder on {0} is gone, so nobody can tell what became of it. What was copied before is here.", state.remote?.address ?? "")
        : asked === null || asked.state === "submitted"
          ? t("The scheduler knows nothing of its job any more, and the job never began. Start it again.")
          : t("It was never submitted: what started it was interrupted. Start it again.");
    return finish(state, { kind: "lost", message }, null);
  }
  // The copy of the journal may be ahead of what was written down of the agent.
  if (state.status !== "starting") return void (state.status = "running");
  // Where there is a queue, a job that nobody has spoken of yet waits in it.
  if (word === null && probe === null && asked?.state === "submitted" && kind !== "ssh") queue(state);
}

function queue(state: RunState): void {
  Object.assign(state, { status: "queued", reason: null, endedAt: null, etaSeconds: null });
}

/** An end without a word of its own is told by the scheduler's, if that has one. */
function explain(state: RunState, word: SchedulerWord | null): void {
  const silent = state.reason?.kind === "lost" || state.reason?.kind === "unknown";
  if (silent && word?.state === "ended" && word.end !== undefined && word.end !== "unknown") finish(state, schedulerReason(word), state.endedAt);
}

/** An attempt that ended while its job is in the queue again: the scheduler will start the next one by itself. */
function again(state: RunState, asked: RemoteAttempt | null, word: SchedulerWord | null): void {
  if (state.reason === null || state.reason.kind === "done" || state.reason.kind === "cancelled" || word === null) return;
  if (word.state === "queued") return queue(state);
  const due = (asked?.attempt ?? state.attempt) + (word.restarts ?? 0);
  if (word.state === "running" && due > state.attempt) Object.assign(state, { status: "starting", reason: null, endedAt: null, etaSeconds: null });
}

/** Says that nobody answers, or that nobody has asked for a while: the last known state stays beside it. */
function reach(state: RunState, { heard, unreachable }: MirrorFile, now: number): void {
  const { remote } = state;
  if (remote === null) return;
  const stale = unreachable === null && heard !== null && now - heard > stalePatience;
  const why = stale ? { since: heard, reason: "other" as const, message: t("Nobody has asked {0} since. A trusted window of this workspace follows the run, and so does `seesaw status`.", remote.address) } : unreachable;
  if (why === null) return;
  state.remote = { ...remote, unreachable: { ...why, last: state.status } };
  Object.assign(state, { status: "unreachable", etaSeconds: null });
}

function schedulerReason(word: SchedulerWord): FinishReason {
  if (word.said !== undefined) return { kind: "failed", code: "preflight", message: word.said };
  const end = word.end ?? "unknown";
  return { kind: "scheduler", end, message: word.reason === null || word.reason === "" ? end : word.reason };
}

function timeOf(exit: Record<string, unknown> | null): number | null {
  const at = exit?.["t"];
  return typeof at === "number" ? at : null;
}
