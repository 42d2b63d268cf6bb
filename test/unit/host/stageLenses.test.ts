import assert from "node:assert/strict";
import { test } from "node:test";
import { flagFindings } from "../../../src/host/pipelineFile/flagFindings.ts";
import { stageLenses, type StageLens } from "../../../src/host/pipelineFile/stageLenses.ts";
import { emptyQueue } from "../../../src/host/runQueue.ts";
import { finishedRun, flagged, flagOf, viewOf } from "./finishedRuns.ts";
import { file, makeRun, makeView } from "./views.ts";

const math = finishedRun("math", null, { "math.id": [3, 64], "search.id": [2, 1] });
const search = finishedRun("search", math, { "math.id": [64, 20], "search.id": [1, 63] }, flagged(flagOf("confirmed")));
const of = (lenses: StageLens[], stage: string): StageLens[] => lenses.filter(({ target }) => target.stage === stage);
const titles = (lenses: StageLens[], stage: string): string[] => of(lenses, stage).map(({ title }) => title.replace(/\$\(.+?\)\s/, ""));

test("a finished stage: run again, its checkpoint and accuracies, and the drift of what fell", () => {
  const lenses = stageLenses(viewOf([search, math]), emptyQueue, true);
  assert.deepEqual(titles(lenses, "math"), ["Run Stage", "done · M1 · 100 % math", "Show Token Drift"]);
  assert.deepEqual(titles(lenses, "search"), ["Run Stage", "done · M2 · 98 % search · ⚑ 31 % math", "Show Token Drift"]);
  const drift = of(lenses, "search")[2]!;
  assert.deepEqual([drift.command, drift.target.skill, drift.target.split], ["seesaw.showDrift", "math", "id"]);
  assert.deepEqual(of(lenses, "math").map(({ range }) => range.line), [7, 7, 7], "over the stage's line");
});

test("an untrusted workspace is offered nothing that starts", () => {
  const lenses = stageLenses(viewOf([search, math]), emptyQueue, false);
  assert.deepEqual([...new Set(lenses.map(({ command }) => command))], ["focus", "seesaw.showDrift"]);
});

test("a live stage can be stopped; one that ended early resumed, when it has a checkpoint", () => {
  const live = makeRun("math", { status: "running", phase: "train", step: 40, total: 80, etaSeconds: 12 });
  assert.deepEqual(titles(stageLenses(makeView({ runs: [live] }), emptyQueue, true), "math"), ["Stop", "step 40 of 80 · 12 s left"]);
  const failed = makeRun("math", { status: "failed", step: 40, total: 80 });
  assert.deepEqual(titles(stageLenses(makeView({ runs: [failed] }), emptyQueue, true), "math"), ["Run Stage", "failed · at step 40 of 80"]);
  const kept = makeRun("math", { status: "cancelled", step: 40, total: 80, checkpoints: math.state.checkpoints });
  const lenses = stageLenses(makeView({ runs: [kept] }), emptyQueue, true);
  assert.deepEqual(titles(lenses, "math"), ["Resume", "Run Stage", "stopped · at step 40 of 80"]);
  assert.equal(of(lenses, "math")[0]?.target.run, kept.id);
});

test("a waiting stage says its place and can be taken out; a paused queue can go on", () => {
  const waiting = [{ file, stage: "math" }, { file, stage: "search" }];
  assert.deepEqual(titles(stageLenses(makeView(), { waiting, paused: null }, true), "search"), ["Cancel", "queued · position 2"]);
  assert.deepEqual(titles(stageLenses(makeView(), { waiting, paused: "It failed." }, true), "math"), ["Continue Queue", "Cancel", "queued · position 1 · paused"]);
});

test("a file with errors has no lenses: where its stages stand is not known", () => {
  assert.deepEqual(stageLenses(makeView({ text: "seesaw: 1\n" }), emptyQueue, true), []);
});

test("a raised flag is a finding on its stage's line, with the probes", () => {
  const [finding, ...more] = flagFindings(viewOf([search, math]));
  assert.equal(more.length, 0);
  assert.deepEqual([finding?.severity, finding?.code, finding?.range.line, finding?.probes?.file], ["warning", "flag-confirmed", 8, "/w/math.jsonl"]);
  assert.match(finding!.message, /^math \(in-domain\) has lost accuracy at step 40 of search/);
  const drifting = finishedRun("search", math, {}, flagged(flagOf("drifting")));
  assert.deepEqual(flagFindings(viewOf([drifting, math])).map(({ severity, code }) => [severity, code]), [["info", "flag-drifting"]]);
  assert.deepEqual([finding?.flagged.split, finding?.flagged.moved], ["id", []], "a flag that names no rows");
  const moved = finishedRun("search", math, {}, flagged({ ...flagOf("confirmed"), moved: [{ row: 6, line: 9, tokens: [], change: -2 }, { row: 1, line: 2, tokens: [0], change: -1 }] }));
  assert.deepEqual(flagFindings(viewOf([moved, math]))[0]?.flagged.moved, [9, 2], "a quick fix takes their lines");
});

test("a flag's finding goes when it has recovered, cannot be measured, or a newer run has none", () => {
  for (const state of ["recovered", "not-measurable"] as const) assert.deepEqual(flagFindings(viewOf([finishedRun("search", math, {}, flagged(flagOf(state))), math])), []);
  const again = finishedRun("search", math, {}, {}, "search-20270101T000000-bbbb");
  again.spec.created += 1000;
  assert.deepEqual(flagFindings(viewOf([again, search, math])), []);
});
