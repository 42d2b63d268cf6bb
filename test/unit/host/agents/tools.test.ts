import assert from "node:assert/strict";
import { test } from "node:test";
import { compareCheckpoints } from "../../../../src/host/agents/compareCheckpoints.ts";
import { explainDrift } from "../../../../src/host/agents/explainDrift.ts";
import { listRuns } from "../../../../src/host/agents/listRuns.ts";
import { chooseView, readInput } from "../../../../src/host/agents/toolInputs.ts";
import { answerLimit, bounded, markdownTable, quote } from "../../../../src/host/agents/toolText.ts";
import { wilsonInterval } from "../../../../src/domain/statistics/shares.ts";
import { formatInterval } from "../../../../src/domain/format.ts";
import type { TraceReader, TraceStore } from "../../../../src/storage/traces/traceStore.ts";
import { makeTrace, type HandMadeProbe } from "../../domain/makeTrace.ts";
import { makeRun, makeView } from "../views.ts";

const probes = (fallen: number): HandMadeProbe[] =>
  Array.from({ length: 40 }, (_, index) => ({ hash: `h${index}`, logprob: index < fallen ? [-0.1, -6 - index / 10] : [-0.1, -0.1], rank: index < fallen ? [0, 9] : [0, 0], correct: index >= fallen }));
const traces: Record<string, ReturnType<typeof makeTrace>> = {
  t1: makeTrace(probes(0)),
  t2: makeTrace(probes(10)),
  other: makeTrace(probes(10), { tokenizer_hash: "another" }),
};
const store: TraceStore = { open: (path) => ({ ...traces[path], path, close: () => {} }) as TraceReader };
const open = (): Promise<TraceStore> => Promise.resolve(store);
const runs = [makeRun("math", { status: "done", step: 80, total: 80 }), makeRun("search", { status: "running", step: 3, total: 60 })];
const views = [makeView({ runs, traces: { M1: { "math.id": "t1" }, M2: { "math.id": "t2" } } })];
const unlike = [makeView({ runs, traces: { M1: { "math.id": "t1" }, M2: { "math.id": "other" } } })];

test("an input that does not fit is a sentence a model can correct itself by", () => {
  const fields = { skill: "text", row: "row", count: "count" } as const;
  assert.deepEqual(readInput({ skill: "math", row: 0, count: null }, fields), { skill: "math", row: 0 });
  assert.throws(() => readInput({ skil: "math" }, fields), { reason: "usage", message: /no input "skil".*Did you mean "skill"/ });
  assert.throws(() => readInput({ skill: 3 }, fields), /skill is a text/);
  assert.throws(() => readInput({ row: "0" }, fields), /row is a whole number from 0/);
  assert.throws(() => readInput({ count: 0 }, fields), /count is a whole number from 1/);
  assert.throws(() => readInput(["math"], fields), /object with named fields/);
  assert.throws(() => chooseView([], undefined), /no seesaw.yaml/);
  assert.throws(() => chooseView(views, "other.yaml"), /no pipeline "other.yaml"/);
});

test("an answer is bounded and says what it left out; a text of the data stays a quoted value", () => {
  const text = bounded(Array.from({ length: 5000 }, (_, index) => `line ${index}`));
  assert.ok(text.length <= answerLimit);
  assert.match(text, /\(\d+ more lines were left out/);
  assert.equal(bounded(["a", "b"]), "a\nb");
  assert.equal(quote('a\n# Ignore "all"'), '"a\\n# Ignore \\"all\\""');
  assert.deepEqual(markdownTable(["a"], [[quote("x|y")]]).at(-1), '| "x\\|y" |');
  assert.ok(quote("x".repeat(10_000)).length < 200);
});

test("listRuns names runs, states and checkpoints, and a stage that does not exist", () => {
  const text = listRuns(views, {});
  for (const { id } of runs) assert.ok(text.includes(id));
  assert.match(text, /step 3 of 60/);
  assert.match(text, /math\.id/);
  assert.match(text, /No flags were raised/);
  assert.ok(!listRuns(views, { stage: "math" }).includes(runs[1]?.id ?? "?"));
  assert.match(listRuns(views, { count: 1 }), /1 older run not listed/);
  assert.match(listRuns(views, { stage: "maths" }), /no stage "maths": there are math, search/);
});

test("explainDrift lists the most drifted prompts first and says which tokens fell, with rank and n", async () => {
  const text = await explainDrift(views, open, { skill: "math", split: "id", count: 2 });
  assert.match(text, /## math\.id, against M1 \(40 prompts\)/);
  assert.match(text, /\| 9 \| 10 \|/, "the prompt that fell most comes first");
  assert.match(text, /38 less drifted prompts are not listed/);
  assert.match(text, /Row 9 of math\.id/);
  assert.match(text, /M2: .*1 lost.*check failed/);
  assert.match(text, /token 1 "b" \(answer\) lost: −6\.80 to −6\.90, rank 10/);
  const other = await explainDrift(views, open, { skill: "math", row: 20 });
  assert.match(other, /Row 20 of math\.id/);
  assert.match(other, /M2: .*0 lost, 0 weakened; check passed/);
  await assert.rejects(explainDrift(views, open, { row: 2 }), /name it as `skill`/);
  await assert.rejects(explainDrift(views, open, { skill: "math", row: 99 }), /no row 99: rows are counted from 0, and there are 40/);
  await assert.rejects(explainDrift(views, open, { skill: "math", reference: "M9" }), /reference takes `own`, `start` or one of M0, M1, M2/);
  assert.match(await explainDrift(views, open, { skill: "search" }), /Nothing that can be shown has been scored/);
});

test("explainDrift shows no change across unlike settings, and says why", async () => {
  const text = await explainDrift(unlike, open, { skill: "math", split: "id" });
  assert.match(text, /Not comparable: the tokenizer differs/);
  assert.doesNotMatch(text, /−6\.\d\d/);
});

test("compareCheckpoints counts what was lost, with intervals and n", async () => {
  const text = await compareCheckpoints(views, open, { before: "math", after: "M2", skill: "math", split: "id" });
  assert.match(text, /# M1 against M2/);
  assert.ok(text.includes(`75.0 % (${formatInterval(wilsonInterval(30, 40))}, n = 40)`));
  assert.match(text, /\| 10 \/ 0 \| p = 0\.002 \|/);
  assert.match(text, /n = 40\) \| 10 of 40 prompts/);
  await assert.rejects(compareCheckpoints(views, open, { before: "M1" }), /Name a checkpoint as `after`/);
  await assert.rejects(compareCheckpoints(views, open, { before: "M1", after: "math" }), /both M1/);
  await assert.rejects(compareCheckpoints(views, open, { before: "M1", after: "M7" }), /no checkpoint "M7": there are M0, M1, M2/);
});

test("compareCheckpoints refuses unlike settings, and says what was not scored", async () => {
  const text = await compareCheckpoints(unlike, open, { before: "M1", after: "M2" });
  assert.match(text, /Nothing could be compared/);
  assert.match(text, /math\.id: Not comparable: the tokenizer differs/);
  assert.match(text, /search\.id: M1 has not been scored/);
});
