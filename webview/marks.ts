import type { CheckMark, DriftCheckpoint } from "../src/protocol/webview.ts";

/** Sign and spoken word of a check's result: the shape says it, the colour only helps. */
export const checkMarks: Record<CheckMark, { sign: string; word: string }> = {
  passed: { sign: "✓", word: "passed" },
  failed: { sign: "✗", word: "failed" },
  "not-run": { sign: "·", word: "not checked" },
};

/** `M2 search`, `M0 base`. */
export function checkpointName(checkpoint: DriftCheckpoint): string {
  return `${checkpoint.label} ${checkpoint.stage ?? "base"}`;
}
