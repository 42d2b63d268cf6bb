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
      return t("It was killed by {0}.", reason.signal);
    case "out-of-memory":
      return t("Memory ran out: {0}", reason.message);
    case "cancelled":
      return t("It was stopped on request.");
    case "paused":
      return t("It was paused at step {0}: a loss of {1} was confirmed, and its on_flag says pause. Resume goes on from there.", reason.step, flagSet(reason.flag));
    case "lost":
      return t("It was lost: {0}", reason.message);
    case "unknown":
      return t("Its end is unknown: {0}", reason.message);
    default:
      // a kind of a newer minor version
      return t("It ended ({0}).", (reason as { kind: string }).kind);
  }
}
