import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { buildChain, lastCheckpoint, type ChainRun } from "../../../../src/domain/run/chain.ts";
import { falseAlarmText, flagsInTimeOrder, flagsOfRun, flagText, flagTitle } from "../../../../src/domain/run/flagText.ts";
import { parsePipeline } from "../../../../src/domain/pipeline/pipeline.ts";
import type { Pipeline } from "../../../../src/domain/pipeline/pipelineModel.ts";
import { newestBeside, seedLabel } from "../../../../src/domain/run/seedOf.ts";
import { emptyRunState } from "../../../../src/domain/run/reduceRun.ts";
import type { FlagRecord, RunState } from "../../../../src/domain/run/runState.ts";
import { flagMark, skillsTable } from "../../../../src/domain/drift/skillsTable.ts";
import type { RunSpec } from "../../../../src/protocol/runSpec.ts";

function pipelineOf(stages: string): Pipeline {
  const { pipeline, diagnostics } = parsePipeline(`seesaw: 1\nbase: m0\nskills: { math: { probes: p, ood: o, check: { kind: text } } }\nstages: [${stages}]\n`, "/p/seesaw.yaml");
  assert.deepEqual(diagnostics, []);
  return pipeline as Pipeline;
}

const three = pipelineOf("{ id: a, recipe: sft, data: d }, { id: b, recipe: sft, data: d }, { id: c, recipe: sft, data: d, from: a }");
const template = JSON.parse(readFileSync(new URL("../../../fixtures/protocol/run.json", import.meta.url), "utf8")) as RunSpec;

/** A run of `stage` that started from run `parent`; finished ones have checkpoints at 20 and 40. */
function run(stage: string, created: number, parent: string | null, changes: Partial<RunState> = {}): ChainRun {
  const id = `${stage}-${created}`;
  const dir = `/p/.seesaw/runs/${id}`;
  const spec: RunSpec = { ...template, id, stage, created, start: { checkpoint: "", label: parent === null ? "M0" : "M1", run: parent, step: parent === null ? null : 40 } };
  const probe = (step: number): RunState["probes"][number] => ({ step, skill: "math", split: "id", trace: `traces/step-${step}/math.id.trace`, summary: {} as never });
  const state: RunState = {
    ...emptyRunState(), status: "done", reason: { kind: "done" },
    checkpoints: [20, 40].map((step) => ({ step, path: `checkpoints/step-${step}`, kind: "full", final: step === 40, weightsHash: "", bytes: 1 })),
    probes: [probe(0), probe(20), probe(40)],
    evals: [{ step: 0, skill: "math", split: "id", n: 64, correct: 60 }, { step: 40, skill: "math", split: "id", n: 64, correct: created }],
    ...changes,
  };
  return { dir, id, stage, spec, state };
}

test("the newest finished runs that fit together are the chain", () => {
  const runs = [run("a", 1, null), run("b", 2, "a-1"), run("c", 3, "a-1"), run("b", 1, "a-1")];
  const { checkpoints, newest } = buildChain(three, runs);
  assert.deepEqual(checkpoints.map((one) => [one.label, one.stage, one.run?.id, one.step, one.status, one.reason]), [
    ["M0", null, "a-1", 0, "ready", null], ["M1", "a", "a-1", 40, "ready", null], ["M2", "b", "b-2", 40, "ready", null], ["M3", "c", "c-3", 40, "ready", null],
  ]);
  assert.equal(checkpoints[0]?.path, "/p/m0");
  assert.equal(checkpoints[2]?.path, "/p/.seesaw/runs/b-2/checkpoints/step-40");
  assert.equal(checkpoints[0]?.traces["math.id"], "/p/.seesaw/runs/a-1/traces/step-0/math.id.trace");
  assert.equal(checkpoints[2]?.traces["math.id"], "/p/.seesaw/runs/b-2/traces/step-40/math.id.trace");
  assert.equal(newest["b"]?.id, "b-2");
});

test("the stops of a stage lie after those of its parent", () => {
  const { checkpoints } = buildChain(three, [run("a", 1, null), run("b", 2, "a-1"), run("c", 3, "a-1")]);
  assert.deepEqual(checkpoints[2]?.stops.map((stop) => [stop.label, stop.step, stop.position]), [["b 0", 0, 40], ["b 20", 20, 60], ["M2", 40, 80]]);
  assert.deepEqual(checkpoints[3]?.stops.map((stop) => stop.position), [40, 60, 80]);
});

test("a run from another parent is stale, and says what to do; so is everything after it", () => {
  const four = pipelineOf("{ id: a, recipe: sft, data: d }, { id: b, recipe: sft, data: d }, { id: c, recipe: sft, data: d }");
  const { checkpoints } = buildChain(four, [run("a", 1, null), run("a", 5, null), run("b", 2, "a-1"), run("c", 3, "b-2")]);
  assert.deepEqual(checkpoints.map((one) => one.status), ["ready", "ready", "stale", "stale"]);
  assert.equal(checkpoints[2]?.reason, "It was trained from M1 of run a-1, but the run of a is now a-5. Run b again.");
  assert.equal(checkpoints[3]?.reason, "Its start M2 is stale. Run b again, then c.");
});

test("a run that fits is taken before a newer one that does not", () => {
  const { checkpoints } = buildChain(three, [run("a", 1, null), run("b", 2, "a-1"), run("b", 9, "a-0")]);
  assert.deepEqual([checkpoints[2]?.run?.id, checkpoints[2]?.status], ["b-2", "ready"]);
});

test("a run with another seed stands beside the chain, whatever is newer, until the file has its seed", () => {
  const seeded = (created: number, parent: string | null, seed: number, file_seed?: number, stage = "a"): ChainRun => {
    const one = run(stage, created, parent);
    return { ...one, spec: { ...one.spec, seed, ...(file_seed !== undefined && { file_seed }) } };
  };
  const runs = [seeded(1, null, 0), seeded(8, null, 2, 0), seeded(9, null, 3, 0), run("b", 2, "a-1")];
  const now = buildChain(three, runs);
  assert.deepEqual(now.checkpoints.slice(0, 3).map((one) => [one.run?.id, one.status]), [["a-1", "ready"], ["a-1", "ready"], ["b-2", "ready"]]);
  assert.equal(now.newest["a"]?.id, "a-1");
  assert.deepEqual(newestBeside([...runs].reverse(), "a", three).map(({ id }) => id), ["a-8", "a-9"]);
  assert.deepEqual(runs.map((one) => seedLabel(one, three)), [null, "seed 2", "seed 3", null]);
  const only = buildChain(three, [seeded(8, null, 2, 0)]);
  assert.deepEqual([only.checkpoints[1]?.status, only.checkpoints[1]?.reason], ["missing", "Stage a has not been run yet."]);
  // The file's seed is 2 now: the run with it is the chain's, and that of the seed before is judged as after any other edit.
  const later = buildChain({ ...three, seed: 2 }, runs);
  assert.deepEqual([later.checkpoints[1]?.run?.id, later.checkpoints[2]?.status], ["a-8", "stale"]);
});

test("what has not been trained is missing, with the reason", () => {
  const { checkpoints } = buildChain(three, [run("a", 1, null, { status: "failed", checkpoints: [] })]);
  assert.deepEqual(checkpoints.map((one) => [one.status, one.reason]), [
    ["ready", null],
    ["missing", "The newest run of a is failed and has no final checkpoint."],
    ["missing", "Stage b has not been run yet."],
    ["missing", "Stage c has not been run yet."],
  ]);
  assert.equal(buildChain(three, []).checkpoints[0]?.reason, "The base model is scored when the first stage starts.");
});

test("the first step of the next stage stands in for a last step that was not scored", () => {
  const { checkpoints } = buildChain(three, [run("a", 1, null, { probes: [], evals: [] }), run("b", 2, "a-1")]);
  assert.equal(checkpoints[1]?.traces["math.id"], "/p/.seesaw/runs/b-2/traces/step-0/math.id.trace");
  assert.deepEqual(checkpoints[1]?.evals["math.id"], { n: 64, correct: 60 });
});

test("C01: the last checkpoint is the one with the highest number", () => {
  const checkpoints = [500, 1000, 10000, 9000].map((step) => ({ step, path: `checkpoint-${step}`, kind: "full" as const, final: false, weightsHash: "", bytes: 1 }));
  assert.equal(lastCheckpoint({ state: { ...emptyRunState(), checkpoints } })?.step, 10000);
  assert.equal(lastCheckpoint({ state: emptyRunState() }), null);
});

const flag: FlagRecord = {
  id: "math.id", skill: "math", split: "id", step: 20, state: "drifting", value: 1.24, lower: 0.91, threshold: 0.25, noise: 0.05, level: 0.0125, n: 64, seq: 8, t: 1008, attempt: 1,
};
const confirmed: FlagRecord = { ...flag, seq: 13, step: 40, state: "confirmed", test: { lost: 53, gained: 1, n: 64, p: 3e-15, level: 0.05, accuracy_start: 1, accuracy_now: 0.1875 } };

test("the skills table: accuracy, interval and flag of every checkpoint", () => {
  const { checkpoints, newest } = buildChain(three, [run("a", 1, null), run("b", 12, "a-1", { flags: [confirmed], flagHistory: [flag, confirmed] })]);
  const table = skillsTable(three.skills, { checkpoints, newest });
  assert.deepEqual(table.columns.map((column) => column.label), ["M0", "M1", "M2", "M3"]);
  assert.deepEqual(table.rows.map((row) => [row.skill, row.split]), [["math", "id"], ["math", "ood"]]);
  assert.deepEqual(table.rows[0]?.cells.map((cell) => [cell.correct, cell.flag]), [[60, null], [1, null], [12, "confirmed"], [null, null]]);
  const cell = table.rows[0]?.cells[2];
  assert.equal(cell?.accuracy, 0.1875);
  assert.ok(Math.abs((cell?.interval?.low ?? 0) - 0.1106) < 5e-4 && Math.abs((cell?.interval?.high ?? 0) - 0.2997) < 5e-4, JSON.stringify(cell?.interval));
  assert.equal(flagMark("confirmed"), "✗");
  assert.equal(table.rows[1]?.tooFew, null);
});

test("flags in time order, worded as allowed", () => {
  const chain = buildChain(three, [run("a", 1, null), run("b", 12, "a-1", { flagHistory: [flag, confirmed] })]);
  assert.deepEqual(flagsInTimeOrder(chain).map((entry) => [entry.stage, entry.step, entry.state, entry.title]), [["b", 20, "drifting", "math (in-domain) is drifting"], ["b", 40, "confirmed", "math (in-domain): loss confirmed"]]);
  assert.equal(flagText(flag, "b"), "Correct answers are losing ground on math (in-domain) at step 20 of b: 1.24 nats less likely on average than at the start of the stage (at least 0.91; threshold 0.25 nats; 64 prompts). The check was not run at this step.");
  assert.match(flagText(flag, "b", true), /The check is run on it now\.$/);
  assert.match(flagText({ ...flag, test: { lost: 4, gained: 0, n: 32, p: 0.0625, level: 0.025, accuracy_start: 1, accuracy_now: 0.875 } }, "b"), /Not confirmed by the check: 100\.0 % at the start, 87\.5 % now/);
  assert.match(flagText(confirmed, "b"), /100\.0 % at the start, 18\.8 % now \(53 lost, 1 gained of 64; p < 0\.001 against 0\.050, Holm's correction/);
  assert.match(flagText({ ...flag, state: "recovered", value: 0.1 }, "b"), /^math \(in-domain\) has recovered at step 20 of b: the loss is back within 0\.25 nats \(now 0\.10 nats; 64 prompts\)\.$/);
  assert.equal(flagText({ ...flag, split: "ood", state: "not-measurable", reason: "12 prompts are too few." }, "b"), "math (OOD) cannot be watched in b: 12 prompts are too few.");
  for (const state of ["drifting", "not-measurable"] as const) assert.doesNotMatch(`${flagText({ ...flag, state }, "b")} ${flagTitle({ ...flag, state })}`, /forg[eo]t/i);
  // Raised and tested at one step: one line, the newest. While the run waits for the test, that it runs.
  const tested = { ...confirmed, step: 20 };
  const other = { ...flag, id: "math.ood", split: "ood" as const, seq: 9 };
  const once = buildChain(three, [run("a", 1, null), run("b", 12, "a-1", { flagHistory: [flag, other, tested] })]);
  assert.deepEqual(flagsInTimeOrder(once).map(({ id, state }) => [id, state]), [["math.ood", "drifting"], ["math.id", "confirmed"]]);
  const running = run("b", 12, "a-1", { status: "running", step: 20, flagHistory: [flag] });
  assert.match(flagsOfRun(running)[0]?.text ?? "", /The check is run on it now\.$/);
  assert.match(flagsOfRun({ ...running, state: { ...running.state, step: 30 } })[0]?.text ?? "", /The check was not run at this step\.$/);
  assert.equal(falseAlarmText(0.1), "The limits are set so that at most 1 in 10 runs without loss would show any flag.");
  assert.match(falseAlarmText(0.07), /at most 7\.0 % of the runs/);
});

test("a fork stands while it was trained from that step of that run, even where the run was paused there", () => {
  const forked = pipelineOf("{ id: a, recipe: sft, data: d }, { id: b, recipe: sft, data: d, from: a@20 }");
  const from = (created: number, step: number): ChainRun => {
    const made = run("b", created, "a-1");
    return { ...made, spec: { ...made.spec, start: { ...made.spec.start, step } } };
  };
  const ready = buildChain(forked, [run("a", 1, null), from(2, 20)]).checkpoints[2];
  assert.deepEqual([ready?.status, ready?.run?.id, ready?.stops.map(({ position }) => position)], ["ready", "b-2", [20, 40, 60]], "its steps count from where it left");
  const other = buildChain(forked, [run("a", 1, null), from(2, 40)]).checkpoints[2];
  assert.deepEqual([other?.status, other?.reason], ["stale", "It was trained from M1 of run a-1, but now starts from step 20 of a-1. Run b again."]);
  const paused = run("a", 1, null, { status: "paused", reason: { kind: "paused", flag: "math.id", step: 20 } });
  assert.equal(buildChain(forked, [paused, from(2, 20)]).checkpoints[2]?.status, "ready");
});
