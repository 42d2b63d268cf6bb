import type { FinishReason } from "../../protocol/journal.ts";

/** Why a run ended, as a sentence without its subject. */
export function reasonText(reason: FinishReason | null): string {
  if (reason === null) return "It has not ended.";
  switch (reason.kind) {
    case "done":
      return "It finished.";
    case "failed":
      return `It failed (${reason.code}): ${reason.message}${reason.where ? ` (${reason.where})` : ""}`;
    case "killed":
      return `It was killed by ${reason.signal}.`;
    case "out-of-memory":
      return `Memory ran out: ${reason.message}`;
    case "cancelled":
      return "It was stopped on request.";
    case "lost":
      return `It was lost: ${reason.message}`;
    case "unknown":
      return `Its end is unknown: ${reason.message}`;
    default:
      // a kind of a newer minor version
      return `It ended (${(reason as { kind: string }).kind}).`;
  }
}
