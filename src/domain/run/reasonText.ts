import type { FinishReason } from "../../protocol/journal.ts";
import { t } from "../../util/l10n.ts";

/** `math.id` as a person reads it. */
function flagSet(flag: string): string {
  const [, skill = flag, split = ""] = /^(.*)\.(id|ood)$/.exec(flag) ?? [];
  return split === "id" ? t("{0} (in-domain)", skill) : split === "ood" ? t("{0} (OOD)", skill) : skill;
}

/** Why a run ended, as a sentence without its subject. */
export function reasonText(reason: FinishReason | null): string {
  if (reason === null) return t("It has not ended.");
  switch (reason.kind) {
    case "done":
      return t("It finished.");
    case "failed":
      return reason.where ? t("It failed ({0}): {1} ({2})", reason.code, reason.message, reason.where) : t("It failed ({0}): {1}", reason.code, reason.message);
    case "killed":
      // How a scheduler warns; nothing else sends an agent this signal.
      if (reason.signal === "SIGUSR1") return t("Its time limit was near, so it saved a checkpoint and stopped (SIGUSR1). Give `resources` more `time`, and resume from there.");
      return t("It was killed by {0}.", reason.signal);
    case "out-of-memory":
      return t("Memory ran out: {0}", reason.message);
    case "cancelled":
      return t("It was stopped on request.");
    case "paused":
      return t("It was paused at step {0}: a loss of {1} was confirmed, and its on_flag says pause. Resume goes on from there.", reason.step, flagSet(reason.flag));
    case "lost":
      return t("It was lost: {0}", reason.message);
    case "scheduler":
      return schedulerText(reason.end, reason.message);
    case "unknown":
      return t("Its end is unknown: {0}", reason.message);
    default:
      // a kind of a newer minor version
      return t("It ended ({0}).", (reason as { kind: string }).kind);
  }
}

/** An end that only the scheduler told of: its own word in brackets, and what to do. */
function schedulerText(end: Extract<FinishReason, { kind: "scheduler" }>["end"], word: string): string {
  switch (end) {
    case "cancelled":
      return t("Its job was cancelled in the scheduler ({0}). Resume goes on from the last checkpoint.", word);
    case "time-limit":
      return t("Its job ran into its time limit ({0}). Give `resources` more `time`, and resume from the last checkpoint.", word);
    case "preempted":
      return t("Its job was preempted and not put back into the queue ({0}). Resume goes on from the last checkpoint.", word);
    case "node-failure":
      return t("The machine of its job failed ({0}). Resume goes on from the last checkpoint.", word);
    case "out-of-memory":
      return t("Memory ran out and the scheduler ended its job ({0}). Ask for more `memory` in `resources`, or use a smaller batch.", word);
    case "failed":
      return t("Its job failed before Seesaw's agent could say why ({0}). See the end of out.log and the job's own output.", word);
    case "exited":
      return t("Its job has ended ({0}), but no exit code was kept: how the training ended is unknown.", word);
    case "unknown":
      return t("Its job is over ({0}); the scheduler does not say how it ended.", word);
    default:
      return t("It ended ({0}).", word);
  }
}
