import type { SchedulerWord } from "../../protocol/remote.ts";
import { formatPlural } from "../format.ts";
import { t } from "../../util/l10n.ts";
import type { RemoteState, RunState } from "./runState.ts";

/** What is said of a run on another machine: where it is, why it waits, since when nobody answers there. */

/** Schedulers' reasons for waiting in plain words; their own word stays beside it, for whoever looks it up or asks the administrators. */
const reasons: readonly (readonly [RegExp, () => string])[] = [
  [/^Priority$/i, () => t("others come first")],
  [/^Resources$/i, () => t("nothing is free yet")],
  [/^BeginTime$/i, () => t("its time has not come yet")],
  [/^Dependency/i, () => t("it waits for another job")],
  [/^JobHeldUser$/i, () => t("you hold it back")],
  [/^launch.failed/i, () => t("its start failed on a machine, so Slurm holds it until `scontrol release` there lets it go")],
  [/^JobHeldAdmin$|held/i, () => t("the administrators hold it back")],
  [/^Partition/i, () => t("its partition does not take it")],
  [/^(ReqNodeNotAvail|Reserv|Nodes?Down)/i, () => t("its machines are reserved or down")],
  [/^JobArrayTaskLimit$/i, () => t("as many of its array run as were allowed at once")],
  [/^(QOS|Assoc|.*Limit)/i, () => t("a limit of your account is reached")],
  [/^Licenses$/i, () => t("no licence is free")],
];

/** `others come first (Priority)`; the word as it is where it is not known; null where there is none. */
export function waitText(word: Pick<SchedulerWord, "reason"> | null): string | null {
  const reason = word?.reason ?? null;
  if (reason === null || reason === "" || /^none$/i.test(reason)) return null;
  const known = reasons.find(([pattern]) => pattern.test(reason));
  return known === undefined ? reason : t("{0} ({1})", known[1](), reason);
}

/** `queued on cluster: others come first (Priority)`. */
export function queuedText({ target, word }: Pick<RemoteState, "target" | "word">): string {
  const why = waitText(word);
  return why === null ? t("queued on {0}", target) : t("queued on {0}: {1}", target, why);
}

/** `box unreachable since 14:02`. */
export function unreachableText({ target, unreachable }: Pick<RemoteState, "target" | "unreachable">, now: number): string {
  return unreachable === null ? t("{0} unreachable", target) : t("{0} unreachable since {1}", target, clockText(unreachable.since, now));
}

/** `14:02`, or with the day where that is not today; in the time zone of this machine. Both in seconds since 1970. */
export function clockText(seconds: number, now: number): string {
  const two = (value: number): string => String(value).padStart(2, "0");
  const day = (time: Date): string => `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  const time = new Date(seconds * 1000);
  const clock = `${two(time.getHours())}:${two(time.getMinutes())}`;
  return day(time) === day(new Date(now * 1000)) ? clock : `${day(time)} ${clock}`;
}

/** Where a run is and what was heard of it, a sentence a line; empty for a run of this machine. `status`: the words of a status. */
export function remoteLines({ remote, status, attempt, reason }: Pick<RunState, "remote" | "status" | "attempt" | "reason">, now: number, statusWord: (status: RunState["status"]) => string): string[] {
  if (remote === null) return [];
  const { target, address, job, word, unreachable, heard, complete } = remote;
  const lines = [[t("Target {0}: {1}", target, address), ...(job === null ? [] : [t("job {0}", job)]), t("attempt {0}", Math.max(1, attempt))].join(", ")];
  if (status === "queued") {
    const why = waitText(word);
    if (why !== null) lines.push(t("It waits in the queue: {0}.", why));
  }
  if (word?.nodes != null && word.nodes !== "" && status !== "queued") lines.push(t("On {0}.", word.nodes));
  if (word?.restarts !== undefined && word.restarts > 0) lines.push(t("The scheduler has started it again {0}.", formatPlural(word.restarts, "time")));
  if (unreachable !== null) lines.push(t("Unreachable since {0}: {1}", clockText(unreachable.since, now), unreachable.message), t("The run may well go on there; before, it was: {0}.", statusWord(unreachable.last)));
  if (heard !== null) lines.push(t("Last heard of at {0}.", clockText(heard, now)));
  if (reason !== null && !complete) lines.push(t("What it wrote last is still being copied here."));
  return lines;
}
