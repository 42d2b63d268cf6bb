import assert from "node:assert/strict";
import { test } from "node:test";
import { lastGoodStep, raisedAt } from "../../../../src/domain/run/flagEpisode.ts";
import { emptyRunState } from "../../../../src/domain/run/reduceRun.ts";
import type { FlagRecord, RunState } from "../../../../src/domain/run/runState.ts";

function stateOf(flags: [number, FlagRecord["state"]][], checkpoints: number[]): { state: RunState } {
  const flagHistory = flags.map(([step, state], index) => ({ id: "math.id", skill: "math", split: "id", step, state, seq: index, t: index, attempt: 1 }) as FlagRecord);
  const probes = [0, 10, 20, 30, 40].map((step) => ({ step, skill: "math", split: "id", trace: "", summary: {} as never }) as const);
  return { state: { ...emptyRunState(), flagHistory, probes, checkpoints: checkpoints.map((step) => ({ step, path: "", kind: "full", final: step === 40, weightsHash: "", bytes: 1 })) } };
}

test("a flag counts from the step it was raised at, anew after it recovered", () => {
  assert.equal(raisedAt(stateOf([[20, "drifting"], [20, "confirmed"], [30, "confirmed"]], []), "math.id"), 20);
  assert.equal(raisedAt(stateOf([[10, "drifting"], [20, "recovered"], [30, "drifting"]], []), "math.id"), 30);
  assert.equal(raisedAt(stateOf([[10, "drifting"], [20, "recovered"]], []), "math.id"), null);
  assert.equal(raisedAt(stateOf([[10, "drifting"]], []), "search.id"), null);
});

test("good is what was saved up to the last calm look", () => {
  const flags: [number, FlagRecord["state"]][] = [[30, "drifting"], [30, "confirmed"]];
  assert.equal(lastGoodStep(stateOf(flags, [10, 15, 20, 25, 30, 40]), "math.id"), 20, "nobody looked at step 25");
  assert.equal(lastGoodStep(stateOf(flags, [30, 40]), "math.id"), null);
  assert.equal(lastGoodStep(stateOf([[10, "drifting"]], [5, 10]), "math.id"), null, "step 5 is after the only calm look, at the start");
});
