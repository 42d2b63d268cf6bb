import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { lookSteps } from "../../../../src/domain/run/lookSteps.ts";
import { needsRows, plannedSteps, totalSteps } from "../../../../src/domain/run/plannedSteps.ts";

interface Case { rows: number; per_step: number; max_steps: number; epochs: number; steps: number }
const cases = JSON.parse(readFileSync(new URL("../../../fixtures/protocol/steps.json", import.meta.url), "utf8")) as Case[];

test("the steps of a stage are those the runner would take", () => {
  assert.ok(cases.length >= 12);
  for (const { rows, per_step: perStep, max_steps: maxSteps, epochs, steps } of cases) assert.equal(totalSteps(rows, perStep, maxSteps, epochs), steps, JSON.stringify({ rows, perStep, maxSteps, epochs }));
});

test("arguments that are not given are those of the recipe", () => {
  const launch = { kind: "python" as const, processes: 1 };
  assert.deepEqual(plannedSteps({ args: {}, launch }, 800), { steps: 300, from: { rows: 800, epochs: 3, batch: 8 } });
  assert.deepEqual(plannedSteps({ args: { max_steps: 80 }, launch }, null), { steps: 80, from: null });
  const args = { num_train_epochs: 1, per_device_train_batch_size: 16, gradient_accumulation_steps: 2 };
  assert.deepEqual(plannedSteps({ args, launch: { kind: "torchrun", processes: 2 } }, 1000), { steps: 16, from: { rows: 1000, epochs: 1, batch: 64 } });
});

test("what cannot be told is not guessed", () => {
  const launch = { kind: "python" as const, processes: 1 };
  assert.equal(plannedSteps({ args: {}, launch }, null), null);
  assert.equal(plannedSteps({ args: {}, launch }, 0), null);
  assert.equal(plannedSteps({ args: { max_steps: "many" }, launch }, 10), null);
  assert.equal(plannedSteps({ args: { num_train_epochs: "x" }, launch }, 10), null);
  assert.equal(needsRows({ args: { max_steps: 5 } }), false);
  assert.equal(needsRows({ args: { max_steps: -1 } }), true);
});

test("the looks of a stage are those the runner takes", () => {
  const looks = JSON.parse(readFileSync(new URL("../../../fixtures/protocol/looks.json", import.meta.url), "utf8")) as { every: number | number[] | "log" | null; total: number; steps: number[] }[];
  assert.ok(looks.length >= 18);
  for (const { every, total, steps } of looks) assert.deepEqual(lookSteps(every, total), steps, JSON.stringify({ every, total }));
});

test("a stage that says nothing is looked at about 20 times, and more densely at first", () => {
  const steps = lookSteps(null, 5000);
  assert.deepEqual(steps.slice(0, 6), [10, 20, 40, 80, 160, 250]);
  assert.equal(steps.length, 20 + 5);
});
