import type { FinishReason } from "../../protocol/journal.ts";
import { t } from "../../util/l10n.ts";

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
    case "lost":
      return t("It was lost: {0}", reason.message);
    case "unknown":
      return t("Its end is unknown: {0}", reason.message);
    default:
      // a kind of a newer minor version
      return t("It ended ({0}).", (reason as { kind: string }).kind);
  }
}
