import assert from "node:assert/strict";
import { test } from "node:test";
import { confirmationText, judgeConfirmation, planConfirmation, trainsOn, type ConfirmationAnswer } from "../../../../src/domain/run/confirmation.ts";
import type { ChainRun } from "../../../../src/domain/run/chain.ts";
import { emptyRunState } from "../../../../src/domain/run/reduceRun.ts";
import type { FlagRecord } from "../../../../src/domain/run/runState.ts";
import { AppError, type ErrorReason } from "../../../../src/util/errors.ts";

const flag = (skill: string, step: number, state: FlagRecord["state"]): FlagRecord => ({ id: `${skill}.id`, skill, split: "id", step, state, value: 1, lower: 1, threshold: 1, noise: 0, level: 1, n: 64, seq: step, t: step, attempt: 1 });

function runOf(flags: FlagRecord[], saved: number[]): ChainRun {
  const checkpoints = saved.map((step) => ({ step, path: `checkpoints/step-${step}`, kind: "full" as const, final: false, weightsHash: "", bytes: 1 }));
  const spec = { start: { checkpoint: "/m1" }, skills: [{ id: "math", probes: { id: "/p" } }, { id: "tool", probes: { id: "/q" } }] };
  return { dir: "/runs/s-1", id: "s-1", stage: "search", spec: spec as never, state: { ...emptyRunState(), flags: [...new Map(flags.map((one) => [one.id, one])).values()], flagHistory: flags, checkpoints } };
}
const refused = (reason: ErrorReason, words: RegExp) => (error: unknown) => AppError.is(error, reason) && words.test(error.message);

test("the start is asked, and the first checkpoint saved since the flag was raised", () => {
  const history = [flag("math", 20, "drifting"), flag("math", 40, "confirmed")];
  const { start, now, step, skill } = planConfirmation(runOf(history, [10, 30, 60]), undefined);
  assert.deepEqual([skill, start, now, step], ["math", "/m1", "/runs/s-1/checkpoints/step-30", 30]);
  assert.throws(() => planConfirmation(runOf(history, [10]), "math"), refused("not-finished", /no checkpoint since step 20/));
  assert.throws(() => planConfirmation(runOf([...history, flag("tool", 20, "drifting")], [30]), undefined), refused("usage", /math, tool/));
  assert.throws(() => planConfirmation(runOf([], [30]), undefined), refused("not-found", /No flag stands/));
  assert.throws(() => planConfirmation(runOf([], [30]), "sing"), refused("not-found", /its skills are math, tool/));
  assert.equal(planConfirmation(runOf([], [30, 60]), "tool").step, 30, "a skill without a flag can be checked, too");
});

test("the finding is a paired exact test, and says what was left out", () => {
  const rows = Array.from({ length: 40 }, (_, index) => ({ line: index + 1, before: index < 36, now: index >= 8 && index !== 39 }));
  const answer: ConfirmationAnswer = { rows, left_out: { unusable: 1, trained: 3, more: 0 } };
  const found = judgeConfirmation(answer);
  assert.deepEqual([found.n, found.lost, found.gained, found.before, found.confirmed], [40, 8, 3, 0.9, false]);
  assert.ok(Math.abs(found.p - 232 / 2048) < 1e-12, `P(X ≥ 8 of 11) = ${found.p}`);
  assert.ok(found.interval.low < found.now - found.before && found.now - found.before < found.interval.high);
  const plan = { ...planConfirmation(runOf([flag("math", 20, "confirmed")], [30]), "math"), stage: "search" };
  assert.match(confirmationText(plan, found), /^The loss of math is not confirmed: 90\.0 % at the start of search, 77\.5 % at step 30 \(8 lost, 3 gained of 40 prompts; change −12\.5 points, 95 % interval −\d+\.\d to \d+\.\d; p = 0\.113\)\. Left out: 3 prompts trained on in this stage, 1 prompt not usable\.$/);
  const clear = judgeConfirmation({ rows: rows.map((row) => ({ ...row, now: row.before && row.line > 8 })), left_out: { unusable: 0, trained: 0, more: 9 } });
  assert.deepEqual([clear.lost, clear.gained, clear.confirmed], [8, 0, true]);
  assert.ok(Math.abs(clear.p - 1 / 256) < 1e-12);
  assert.match(confirmationText(plan, clear), /^The loss of math is confirmed: [^]*\)\.$/);
  assert.equal(confirmationText(plan, judgeConfirmation({ rows: [], left_out: { unusable: 2, trained: 0, more: 0 } })), "No prompt was left to check math on.");
});

test("what a stage trains on is no test", () => {
  const stages = [{ id: "math", data: "/d/math.jsonl" }, { id: "merge", data: null }];
  assert.deepEqual([trainsOn(stages, "/d/math.jsonl"), trainsOn(stages, "/d/new.jsonl")], ["math", null]);
});
