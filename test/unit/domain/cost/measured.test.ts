import assert from "node:assert/strict";
import { test } from "node:test";
import { comparisonRows } from "../../../../src/domain/cost/costText.ts";
import { compareCost, measuredPeak, predictedCost, throughputOf } from "../../../../src/domain/cost/measured.ts";
import { estimateStage } from "../../../../src/domain/cost/stageCost.ts";
import { known } from "../../../../src/domain/cost/devices.ts";
import type { ChainRun } from "../../../../src/domain/run/chain.ts";
import type { RunState } from "../../../../src/domain/run/runState.ts";
import { makeRun } from "../../host/views.ts";
import { costInput } from "./models.ts";

const cost: NonNullable<RunState["cost"]> = { step: 80, memory: { kind: "resident", before: 550e6, start: 700e6, peak: 790e6, reserved: null }, train_s: 20, probe_s: 5, tokens: 100_000 };
const run = (spec: Partial<ChainRun["spec"]>, state: Partial<RunState> = {}): ChainRun => {
  const made = makeRun("math", { status: "done", step: 80, total: 80, device: "CPU (2 threads)", cost, startedAt: 100, attemptStartedAt: 100, endedAt: 140, reason: { kind: "done" }, ...state });
  return { ...made, spec: { ...made.spec, recipe: "sft", adapter: null, target: { id: "local", kind: "local", python: "" }, ...spec } };
};

test("predicted and measured stand side by side, without what Python itself takes", () => {
  assert.equal(measuredPeak(cost), 240e6);
  const predicted = { v: 1, memory: { device: null, resident: { expected: 220e6, low: 200e6, high: 300e6 } }, tokens: 99_000, flops: 1, seconds: { expected: 30, low: 25, high: 40 } };
  const compared = compareCost(run({ predicted }));
  assert.deepEqual(compared?.rows.map(({ what, measured, inside }) => [what, measured, inside]), [["memory", 240e6, true], ["seconds", 20, false], ["tokens", 100_000, null]]);
  assert.deepEqual(comparisonRows(compared!)[0], ["peak memory", "220 MB (200 MB to 300 MB)", "240 MB", "0.92", "yes"]);
});

test("a run without a prediction, a part of a run, and a run that told nothing", () => {
  assert.deepEqual(compareCost(run({}))?.rows.map(({ ratio }) => ratio), [null, null, null]);
  const predicted = { v: 1, memory: { device: null, resident: { expected: 240e6, low: 1, high: 1e9 } }, tokens: 400_000, flops: 1, seconds: { expected: 80, low: 1, high: 100 } };
  const half = compareCost(run({ predicted }, { cost: { ...cost, step: 40 } }));
  assert.deepEqual(half?.rows.map(({ ratio }) => ratio), [1, null, null], "a stopped run says nothing of a whole one's time");
  assert.equal(compareCost(run({ predicted }, { cost: null })), null);
});

test("the newest finished run of the stage on the same target tells how fast it will be", () => {
  const stage = { id: "math", recipe: "sft", on: "local", adapter: null };
  const started = { parameters: 1000 } as RunState["started"];
  const rate = (runs: ChainRun[], change: Partial<typeof stage> = {}) => throughputOf({ ...stage, ...change }, runs, 6000, 1000);
  const mine = run({ created: 1 }, { started });
  assert.deepEqual(rate([mine]), { run: mine.id, recipe: "sft", device: "CPU (2 threads)", tokensPerSecond: 5000, flopsPerToken: 6000, otherSeconds: 20 });
  assert.equal(rate([run({}, { started: { parameters: 500 } as RunState["started"] })])?.flopsPerToken, 3000, "a model of half the size");
  assert.equal(rate([mine], { on: "gpu" }), null);
  assert.equal(rate([mine], { recipe: "dpo" }), null);
  assert.equal(rate([run({}, { status: "failed" })]), null);
  const older = run({ created: 0 }, { cost: null, tokensPerSecond: 900, probeShare: 0.25 });
  assert.equal(rate([older])?.tokensPerSecond, 900, "runs older than the event told it as they went");
  assert.equal(rate([older])?.otherSeconds, 10);
});

test("run.json keeps the price for both kinds of memory", () => {
  const gpu = estimateStage(costInput({ device: known("NVIDIA H200") }));
  const cpu = estimateStage(costInput({ device: known("CPU") }));
  const kept = predictedCost(gpu, cpu, gpu);
  assert.equal(kept.memory.device?.expected, Math.round(gpu.memory!.peak));
  assert.equal(kept.memory.resident?.expected, Math.round(cpu.memory!.peak));
  assert.notEqual(kept.memory.device?.expected, kept.memory.resident?.expected);
  assert.equal(kept.tokens, 200_000);
});
