import type { DriftCheckpoint, DriftPrompt } from "../src/protocol/webview.ts";
import { t } from "../src/util/l10n.ts";

/** In which order the prompts are listed. */
export type PromptOrder = "drift" | "file" | "failed";

export const promptOrders: { value: PromptOrder; label: string }[] = [
  { value: "drift", get label() { return t("most drifted first"); } },
  { value: "failed", get label() { return t("newly failed first"); } },
  { value: "file", get label() { return t("as in the file"); } },
];

/** The prompts that hold every word of `filter`, in the order asked for. They come most drifted first. */
export function arrange(prompts: readonly DriftPrompt[], checkpoints: readonly DriftCheckpoint[], order: PromptOrder, filter: string): readonly DriftPrompt[] {
  const words = filter.toLowerCase().split(/\s+/).filter((word) => word !== "");
  const found = words.length === 0 ? prompts : prompts.filter(({ prompt, line }) => words.every((word) => prompt.toLowerCase().includes(word) || `line:${line}` === word));
  if (order === "drift") return found;
  if (order === "file") return [...found].sort((a, b) => a.line - b.line || a.row - b.row);
  return [...found.filter((prompt) => newlyFailed(prompt, checkpoints)), ...found.filter((prompt) => !newlyFailed(prompt, checkpoints))];
}

/** True when the check passed under a checkpoint and fails under one that is compared with it. */
export function newlyFailed({ checks }: DriftPrompt, checkpoints: readonly DriftCheckpoint[]): boolean {
  return checkpoints.some(({ against }, index) => against !== null && checks[against] === "passed" && checks[index] === "failed");
}
