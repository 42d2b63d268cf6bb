import assert from "node:assert/strict";
import { test } from "node:test";
import { exitCodeOf } from "../../../src/cli/exitCodes.ts";
import { oneLine, padTo, table, textWidth, wantsColour, type Output } from "../../../src/cli/output.ts";
import { plainText } from "../../../src/cli/progressLine.ts";
import { emptyRunState } from "../../../src/domain/run/reduceRun.ts";

const plain = { paint: (_style: unknown, text: string) => text } as Output;

test("widths: colours and combining marks take none, wide characters two", () => {
  assert.deepEqual(["abc", "\u001b[31mabc\u001b[39m", "é", "e\u0301", "数学", "😀"].map(textWidth), [3, 3, 1, 1, 4, 2]);
  assert.equal(padTo("数", 4), "数  ");
  assert.equal(padTo("7", 3, true), "  7");
});

test("a table stays aligned with wide characters", () => {
  assert.equal(table(["skill", "n"], [["数学", "12"], ["tool", "3"]], { right: [1], out: plain }), "skill   n\n─────────\n数学   12\ntool    3");
});

test("text from data cannot move the cursor or break a line", () => {
  assert.equal(oneLine("a\nb\t\u001b[2Jc\u0007", 40), "a b �[2Jc�");
  assert.equal(oneLine("数学数学", 5), "数学…");
});

test("NO_COLOR wins over FORCE_COLOR, the flag over both", () => {
  assert.equal(wantsColour(true, {}, true), true);
  assert.equal(wantsColour(true, {}, false), false);
  assert.equal(wantsColour(true, { FORCE_COLOR: "1" }, false), true);
  assert.equal(wantsColour(true, { NO_COLOR: "1", FORCE_COLOR: "1" }, true), false);
  assert.equal(wantsColour(false, { FORCE_COLOR: "1" }, true), false);
  assert.equal(wantsColour(true, { TERM: "dumb" }, true), false);
});

test("a plain progress line says what is known and nothing else", () => {
  const state = emptyRunState();
  assert.equal(plainText({ stage: "math", state }), "math: starting");
  const running = { ...state, step: 40, total: 80, loss: 0.4123, tokensPerSecond: 12345, etaSeconds: 9, phase: "train" as const };
  assert.equal(plainText({ stage: "math", state: running }), "math: step 40/80, loss 0.412, 12,345 tokens/s, ETA 9.0 s, training");
});

test("every reason has its exit code", () => {
  assert.deepEqual((["bad-pipeline", "not-found", "already-running", "no-python", "not-writable", "newer-schema", "cancelled", "internal"] as const).map(exitCodeOf), [2, 3, 4, 5, 5, 6, 130, 1]);
});
