import type { CheckMark, DriftCheckpoint } from "../src/protocol/webview.ts";
import { t } from "../src/util/l10n.ts";

/** Sign and spoken word of a check's result: the shape says it, the colour only helps. */
export const checkMarks: Record<CheckMark, { sign: string; word: string }> = {
  passed: { sign: "✓", get word() { return t("passed"); } },
  failed: { sign: "✗", get word() { return t("failed"); } },
  "not-run": { sign: "·", get word() { return t("not checked"); } },
};

/** Colour of a mark: what a checkpoint before the reference did not know yet is no loss, so it is not red. */
export function markStyle(mark: CheckMark, at: number, checkpoints: readonly DriftCheckpoint[]): string {
  return at < checkpoints.findIndex(({ isReference }) => isReference) ? "before" : mark;
}

/** `M2 search`, `M0 base`. */
export function checkpointName(checkpoint: DriftCheckpoint): string {
  return `${checkpoint.label} ${checkpoint.stage ?? t("base")}`;
}
