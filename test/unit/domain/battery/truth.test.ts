import assert from "node:assert/strict";
import { test } from "node:test";
import { changeOfBits } from "../../../../src/domain/battery/pairedBits.ts";
import { classOfRun, crossingOf, isotonic, lossOf, truthOfSkill } from "../../../../src/domain/battery/truth.ts";

const looks = [0, 10, 20, 40, 60, 80, 100, 120];
const n = 1000;

/** Bits of which the first `lost` of each thousand have fallen. */
const after = (lost: number, gained = 0): string => `${"0".repeat(lost)}${"1".repeat(900 - lost)}${"1".repeat(gained)}${"0".repeat(100 - gained)}`;
const curve = (...lost: number[]): string[] => [0, ...lost].map((one) => after(one));

test("rows lost and gained are counted by row, and only the first ones where asked", () => {
  assert.deepEqual(changeOfBits("1100", "0110"), { lost: 1, gained: 1, n: 4 });
  assert.deepEqual(changeOfBits("1100", "0110", 2), { lost: 1, gained: 0, n: 2 });
});

test("the bounds of a loss are one-sided 95 % each", () => {
  const { loss, low, high } = lossOf(after(0), after(60));
  assert.equal(loss, 0.06);
  assert.ok(low > 0.048 && low < 0.05, String(low));
  assert.ok(high > 0.07 && high < 0.075, String(high));
});

test("a loss proved at two looks in a row is an event; its crossing lies between two looks", () => {
  const truth = truthOfSkill(looks, curve(0, 0, 40, 80, 150, 150, 150));
  assert.equal(truth.class, "event");
  assert.equal(truth.shown, 60);
  // From 4 points at step 40 to 8 at step 60: 5 points a quarter of the way.
  assert.equal(truth.crossing, 45);
  assert.equal(truth.transient, false);
  assert.equal(truth.speed, "gradual");
  assert.deepEqual(truth.loss, [0, 0, 0, 4, 8, 15, 15, 15]);
});

test("one proved look alone is grey, also at the end", () => {
  assert.equal(truthOfSkill(looks, curve(0, 0, 0, 90, 0, 0, 0)).class, "grey");
  assert.equal(truthOfSkill(looks, curve(0, 0, 0, 0, 0, 0, 90)).class, "grey");
  assert.equal(truthOfSkill(looks, curve(0, 0, 0, 0, 0, 90, 90)).class, "event");
});

test("a loss that is undone by the end stays an event and is called transient", () => {
  const truth = truthOfSkill(looks, curve(0, 100, 120, 80, 30, 5, 0));
  assert.equal(truth.class, "event");
  assert.equal(truth.transient, true);
  assert.equal(truthOfSkill(looks, curve(0, 100, 120, 80, 60, 45, 45)).transient, false);
});

test("a jump within a twelfth of the steps is abrupt", () => {
  // From 0 at step 10 to 30 points at step 20: 1 to 5 points in 1.3 steps.
  assert.equal(truthOfSkill(looks, curve(0, 300, 300, 300, 300, 300, 300)).speed, "abrupt");
  assert.equal(truthOfSkill(looks, curve(10, 20, 30, 40, 60, 80, 100)).speed, "gradual");
});

test("clean: never 2 points at two looks in a row nor at the last, never 5 within the bound", () => {
  assert.equal(truthOfSkill(looks, curve(0, 5, 10, 15, 10, 5, 5)).class, "clean");
  assert.equal(truthOfSkill(looks, curve(0, 0, 25, 0, 0, 0, 0)).class, "clean");
  assert.equal(truthOfSkill(looks, curve(0, 0, 25, 25, 0, 0, 0)).class, "grey");
  assert.equal(truthOfSkill(looks, curve(0, 0, 0, 0, 0, 0, 25)).class, "grey");
  assert.equal(truthOfSkill(looks, curve(0, 0, 45, 0, 0, 0, 0)).class, "grey", "one look of 4.5 points may be one of 5");
  assert.equal(truthOfSkill(looks, [after(0), ...looks.slice(1).map(() => after(0, 80))]).class, "clean", "a gain is no loss");
});

test("a run is healthy when all its skills are, and mixed where grey ones keep it from being either", () => {
  assert.equal(classOfRun(["clean", "clean"]), "healthy");
  assert.equal(classOfRun(["clean", "event", "grey"]), "forgetting");
  assert.equal(classOfRun(["clean", "grey"]), "mixed");
});

test("isotonic smoothing pools what falls and keeps the mean", () => {
  assert.deepEqual(isotonic([0, 3, 1, 2, 5]), [0, 2, 2, 2, 5]);
  assert.deepEqual(isotonic([4, 2, 0]), [2, 2, 2]);
  const values = Array.from({ length: n }, (_, i) => Math.sin(i / 37) + i / 500);
  const smooth = isotonic(values);
  assert.ok(smooth.every((value, i) => i === 0 || value >= (smooth[i - 1] as number)));
  assert.ok(Math.abs(smooth.reduce((a, b) => a + b) - values.reduce((a, b) => a + b)) < 1e-9);
  assert.equal(crossingOf([0, 10], [0, 0.04], 0.05), null);
});
