import assert from "node:assert/strict";
import { test } from "node:test";
import { staleAfter } from "../../../../src/domain/run/staleAfter.ts";
import { finishedRun, viewOf } from "../../host/finishedRuns.ts";

const yaml = `seesaw: 1
base: m0
skills: { math: { probes: math.jsonl, check: { kind: text } } }
stages:
  - { id: math, recipe: sft, data: math.jsonl, args: { max_steps: 80 } }
  - { id: search, recipe: sft, data: s.jsonl, args: { max_steps: 80 } }
  - { id: tool, recipe: sft, data: t.jsonl, args: { max_steps: 80 } }
  - { id: side, recipe: sft, data: t.jsonl, from: math, args: { max_steps: 80 } }
  - { id: apart, recipe: sft, data: t.jsonl, from: base, args: { max_steps: 80 } }
`;

test("a new run makes stale what was trained from it, near and far, and nothing else", () => {
  const math = finishedRun("math", null, {});
  const search = finishedRun("search", math, {});
  const tool = finishedRun("tool", search, {});
  const view = viewOf([math, search, tool, finishedRun("apart", null, {})], yaml);
  assert.deepEqual(staleAfter(view.pipeline!, view.chain!, "math"), ["search", "tool"]);
  assert.deepEqual(staleAfter(view.pipeline!, view.chain!, "search"), ["tool"]);
  assert.deepEqual(staleAfter(view.pipeline!, view.chain!, "tool"), []);
  const sided = viewOf([math, finishedRun("side", math, {})], yaml);
  assert.deepEqual(staleAfter(sided.pipeline!, sided.chain!, "math"), ["side"], "search has no run to become stale");
});

test("what is stale already is not made so", () => {
  const math = finishedRun("math", null, {});
  const view = viewOf([math, finishedRun("search", { ...math, id: "math-of-before" }, {})], yaml);
  assert.equal(view.chain!.checkpoints[2]!.status, "stale");
  assert.deepEqual(staleAfter(view.pipeline!, view.chain!, "math"), []);
});
