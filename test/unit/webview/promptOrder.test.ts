import assert from "node:assert/strict";
import { test } from "node:test";
import type { DriftCheckpoint, DriftPrompt } from "../../../src/protocol/webview.ts";
import { arrange, newlyFailed } from "../../../webview/promptOrder.ts";
import { scaleOf } from "../../../webview/sparkline.ts";

const checkpoint = (label: string, against: number | null): DriftCheckpoint => ({ label, stage: null, state: "scored", note: null, isReference: false, against });
const checkpoints = [checkpoint("M0", null), checkpoint("M1", null), checkpoint("M2", 1)];
const prompt = (line: number, text: string, checks: DriftPrompt["checks"], change: number): DriftPrompt => ({ row: line - 1, line, prompt: text, changes: [null, null, change], checks, worst: change, withinNoise: false });
const prompts = [
  prompt(3, "What is 1 + 2?", ["failed", "failed", "failed"], -9),
  prompt(1, "Say Hello there", ["failed", "passed", "failed"], -5),
  prompt(2, "What is hello?", ["passed", "passed", "passed"], 0.5),
];
const lines = (order: Parameters<typeof arrange>[2], filter = ""): number[] => arrange(prompts, checkpoints, order, filter).map(({ line }) => line);

test("prompts come most drifted first, as in the file, or newly failed first", () => {
  assert.deepEqual(lines("drift"), [3, 1, 2]);
  assert.deepEqual(lines("file"), [1, 2, 3]);
  assert.deepEqual(lines("failed"), [1, 3, 2]);
  assert.deepEqual(prompts.map(({ line }) => line), [3, 1, 2], "what came from the host is left as it is");
});

test("newly failed is what passed under the checkpoint that is compared with", () => {
  assert.deepEqual(prompts.map((one) => newlyFailed(one, checkpoints)), [false, true, false]);
  const early = prompt(9, "x", ["passed", "failed", "failed"], 0);
  assert.equal(newlyFailed(early, checkpoints), false, "M2 is not compared with M0");
});

test("the filter wants every word, whatever its case, or a line", () => {
  assert.deepEqual(lines("drift", "hello"), [1, 2]);
  assert.deepEqual(lines("drift", "  HELLO what "), [2]);
  assert.deepEqual(lines("file", "line:3"), [3]);
  assert.deepEqual(lines("drift", "nothing of it"), []);
});

test("the curves share a scale that holds every change and zero", () => {
  assert.deepEqual(scaleOf(prompts), { low: -9, high: 0.5 });
  assert.deepEqual(scaleOf([]), { low: 0, high: 0 });
  assert.deepEqual(scaleOf([{ ...prompts[0]!, changes: ["NaN", "-Infinity", -2] }]), { low: -2, high: 0 });
});
