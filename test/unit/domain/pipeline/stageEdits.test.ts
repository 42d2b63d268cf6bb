import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { parsePipeline } from "../../../../src/domain/pipeline/pipeline.ts";
import type { Pipeline } from "../../../../src/domain/pipeline/pipelineModel.ts";
import { stageEdits, type FlaggedStage, type StageEdit } from "../../../../src/domain/pipeline/stageEdits.ts";
import { applyChanges } from "../../../../src/domain/pipeline/yamlEdits.ts";

const sample = readFileSync(new URL("../../../../media/sample/seesaw.yaml", import.meta.url), "utf8");
const flagged: FlaggedStage = { stage: "tool", skill: "math", split: "id", moved: [], step: 30, goodStep: 20 };

function pipelineOf(text: string): Pipeline {
  const { pipeline, diagnostics } = parsePipeline(text, "/p/seesaw.yaml");
  assert.deepEqual(diagnostics, [], text);
  return pipeline as Pipeline;
}

/** The pipeline after one kind of edit, and the lines that are new or gone. */
function edited(text: string, kind: StageEdit["kind"], what: FlaggedStage = flagged): { title: string; text: string; pipeline: Pipeline; added: string[]; removed: string[] } {
  const edit = stageEdits(text, pipelineOf(text), what).find((one) => one.kind === kind);
  assert.ok(edit, `there is no edit ${kind}`);
  const after = applyChanges(text, edit.changes);
  const [old, now] = [text.split("\n"), after.split("\n")];
  return { title: edit.title, text: after, pipeline: pipelineOf(after), added: now.filter((line) => !old.includes(line)), removed: old.filter((line) => !now.includes(line)) };
}

test("replay: a buffer and the stage's share are added, and nothing else in the file changes", () => {
  const { title, pipeline, added, removed } = edited(sample, "replay");
  assert.equal(title, "Replay 200 rows of math in tool, at ratio 0.1");
  assert.deepEqual(added, ["    replay: { buffer: math, ratio: 0.1 }", "buffers: { math: { from: [math], rows: 200, quality: { check: true }, diversity: minhash } }"]);
  assert.deepEqual(removed, []);
  assert.deepEqual(pipeline.stages[2]?.replay, { buffer: "math", ratio: 0.1 });
  assert.deepEqual(pipeline.buffers.map(({ id, from, rows, quality }) => [id, from, rows, quality]), [["math", ["math"], 200, { check: true }]]);
});

test("replay: a buffer that fits is used, one that the stage has grows, and quotas with it", () => {
  const withBuffer = `${sample}\nbuffers:\n  old: { from: [math, search], rows: 100 } # what came before\n`;
  assert.deepEqual(edited(withBuffer, "replay").added, ["    replay: { buffer: old, ratio: 0.1 }"]);
  const later = withBuffer.replace("[math, search]", "[math, format]");
  assert.deepEqual(edited(later, "replay").added.at(-1), "  math: { from: [math], rows: 200, quality: { check: true }, diversity: minhash }", "a buffer with rows of a later stage does not fit");
  const replaying = withBuffer.replace("  - id: tool\n", "  - id: tool\n    replay: { buffer: old, ratio: 0.1 }\n").replace("[math, search]", "[search]");
  const grown = edited(replaying, "replay");
  assert.equal(grown.title, "Replay 200 more rows of math in tool, at ratio 0.2");
  assert.deepEqual(grown.added, ["    replay: { buffer: old, ratio: 0.2 }", "  old: { from: [search, math], rows: 300 } # what came before"]);
  const quotas = replaying.replace("{ from: [search], rows: 100 }", "{ from: [search], quotas: { search: 40 } }");
  const shares = edited(quotas, "replay");
  assert.deepEqual(shares.pipeline.buffers[0]?.quotas, { search: 40, math: 200 });
  assert.deepEqual(shares.pipeline.buffers[0]?.from, ["search", "math"]);
});

test("replay: rows nearest to the probes that moved come first, where rows are added to a buffer", () => {
  const moved: FlaggedStage = { ...flagged, moved: [25, 3, 17] };
  const near = { rows: "/p/data/math.probe.jsonl", lines: [3, 17, 25] };
  const fresh = edited(sample, "replay", moved);
  assert.equal(fresh.title, "Replay 200 rows of math in tool, at ratio 0.1, first those nearest to what moved");
  assert.deepEqual(fresh.added.at(-1), "buffers: { math: { from: [math], rows: 200, quality: { check: true }, diversity: minhash, near: { rows: data/math.probe.jsonl, lines: [3, 17, 25] } } }");
  assert.deepEqual(fresh.pipeline.buffers[0]?.near, near);
  assert.equal(edited(sample, "replay", { ...moved, split: "ood" }).pipeline.buffers[0]?.near?.rows, "/p/data/math.ood.jsonl");
  const fitting = edited(`${sample}\nbuffers:\n  old: { from: [math, search], rows: 100 }\n`, "replay", moved);
  assert.deepEqual([fitting.title, fitting.pipeline.buffers[0]?.near], ["Replay 100 rows of math in tool, at ratio 0.1", undefined], "a buffer that fits stays as it is");
});

test("replay: a buffer that grows keeps what it is near to, and rows of another file as well", () => {
  const moved: FlaggedStage = { ...flagged, moved: [25, 3] };
  const replaying = (buffer: string): string => `${sample}\nbuffers:\n${buffer}\n`.replace("  - id: tool\n", "  - id: tool\n    replay: { buffer: old, ratio: 0.1 }\n");
  const grown = edited(replaying("  old: { from: [math], rows: 100 } # what came before"), "replay", moved);
  assert.equal(grown.title, "Replay 200 more rows of math in tool, at ratio 0.2, first those nearest to what moved");
  assert.deepEqual(grown.added.at(-1), "  old: { from: [math], rows: 300, near: { rows: data/math.probe.jsonl, lines: [3, 25] } } # what came before");
  const again = edited(grown.text, "replay", { ...moved, moved: [4, 3] });
  assert.deepEqual(again.pipeline.buffers[0]?.near?.lines, [3, 4, 25]);
  const other = edited(replaying("  old: { from: [math], rows: 100, near: { rows: data/search.probe.jsonl, lines: [7] } }"), "replay", moved);
  assert.deepEqual([other.title, other.pipeline.buffers[0]?.near], ["Replay 200 more rows of math in tool, at ratio 0.2", { rows: "/p/data/search.probe.jsonl", lines: [7] }]);
  const quotas = edited(replaying("  old:\n    from: [search]\n    quotas:\n      search: 40 # few"), "replay", moved);
  assert.deepEqual(quotas.added.slice(-2), ["      math: 200", "    near: { rows: data/math.probe.jsonl, lines: [3, 25] }"], "two insertions at one place, in the order that an editor keeps too");
  assert.deepEqual(quotas.pipeline.buffers[0]?.quotas, { search: 40, math: 200 });
  const edit = stageEdits(quotas.text, quotas.pipeline, moved).find(({ kind }) => kind === "replay");
  assert.equal(new Set(edit?.changes.map(({ offset }) => offset)).size, edit?.changes.length);
});

test("replay: a path that means something in a flow map is written in quotes", () => {
  const odd = sample.replaceAll("data/math.probe.jsonl", "data/a, b.jsonl");
  const { added, pipeline } = edited(odd, "replay", { ...flagged, moved: [2] });
  assert.match(added.at(-1) ?? "", /near: \{ rows: "data\/a, b\.jsonl", lines: \[2\] \}/);
  assert.equal(pipeline.buffers[0]?.near?.rows, pipeline.skills[0]?.probes.id);
});

test("replay is not offered where no stage taught the skill before, or the recipe mixes no rows", () => {
  const kinds = (text: string, what: FlaggedStage): string[] => stageEdits(text, pipelineOf(text), what).map(({ kind }) => kind);
  assert.ok(!kinds(sample, { ...flagged, skill: "format" }).includes("replay"), "a later stage teaches it");
  assert.ok(!kinds(sample, { ...flagged, stage: "math" }).includes("replay"), "the stage itself teaches it");
  const dpo = sample.replace("- id: tool\n    recipe: sft", "- id: tool\n    recipe: dpo");
  assert.ok(!kinds(dpo, flagged).includes("replay"));
});

test("the learning rate is halved in the way it is written, its comment kept", () => {
  assert.deepEqual(edited(sample, "rate", { ...flagged, stage: "math" }).added, ["      learning_rate: 5.0e-4 # high, since the model is tiny"]);
  const plain = sample.replace("learning_rate: 1.0e-3 # high", "learning_rate: 0.001 # high");
  const { pipeline, added, title } = edited(plain, "rate", { ...flagged, stage: "math" });
  assert.deepEqual(added, ["      learning_rate: 0.0005 # high, since the model is tiny"]);
  assert.equal(title, "Halve the learning rate of math: 0.0005");
  assert.equal(pipeline.stages[0]?.args["learning_rate"], 0.0005);
  assert.equal(edited(sample, "rate", { ...flagged, stage: "search" }).pipeline.stages[1]?.args["learning_rate"], 0.00035);
});

test("checks at every look, where the stage probes by a number or a list", () => {
  assert.deepEqual(edited(sample, "checks").added, ["    eval_every: 30"]);
  assert.deepEqual(edited(sample, "checks", { ...flagged, stage: "math" }).pipeline.stages[0]?.probe.eval_every, 40);
});

test("a fork repeats the stage at the end of the chain, from the checkpoint before the flag", () => {
  const { pipeline, added, removed, text, title } = edited(sample, "fork");
  assert.equal(title, "Fork tool from its checkpoint at step 20, as a new stage tool-fork");
  assert.deepEqual(removed, []);
  assert.deepEqual(added, ["  # tool once more from its checkpoint at step 20, before math was flagged at step 30: change here what should go better.", "  - id: tool-fork", "    from: tool@20"]);
  const [tool, fork] = [pipeline.stages[2], pipeline.stages[4]];
  assert.deepEqual([fork?.id, fork?.from, fork?.fromStep, fork?.args, fork?.data], ["tool-fork", "tool", 20, tool?.args, tool?.data]);
  assert.equal(pipeline.stages[3]?.from, "tool", "what came after the stage still does");
  assert.equal(edited(text, "fork").pipeline.stages.at(-1)?.id, "tool-fork2");
  const flow = "seesaw: 1\nbase: m\nskills:\n  a: { probes: p, check: { kind: text } }\nstages:\n  - { id: a, recipe: sft, data: d } # first\n  - { id: b, recipe: sft, data: d } # second\n";
  const flowFork = edited(flow, "fork", { ...flagged, stage: "b", skill: "a", step: 9, goodStep: 5 });
  assert.deepEqual(flowFork.added.at(-1), "  - { id: b-fork, recipe: sft, data: d, from: b@5 }");
});

test("without a checkpoint to fork from, keeping some is offered instead", () => {
  const what = { ...flagged, goodStep: null };
  assert.deepEqual(stageEdits(sample, pipelineOf(sample), what).map(({ kind }) => kind), ["replay", "rate", "checks", "save"]);
  assert.deepEqual(edited(sample, "save", what).added, ["    save_every: 30"]);
});

test("line ends stay what they are, and what stands elsewhere is left alone", () => {
  const windows = sample.replaceAll("\n", "\r\n");
  for (const kind of ["replay", "rate", "checks", "fork"] as const) {
    const after = edited(windows, kind, { ...flagged, moved: [3] }).text;
    assert.ok(!/[^\r]\n/.test(after), `${kind} mixes line ends`);
  }
  const merged = sample.replace("skills:", "x-args: &args { learning_rate: 1.0e-3, max_steps: 5 }\nskills:").replace(/ {4}args:\n {6}max_steps: 60[^]*?\n\n/, "    args: *args\n\n");
  const aliased = merged.replace("x-args: &args { learning_rate: 1.0e-3, max_steps: 5 }\n", "").replace(/ {4}args:\n {6}max_steps: 80/, "    args: &args\n      max_steps: 80");
  assert.ok(!stageEdits(aliased, pipelineOf(aliased), { ...flagged, stage: "search" }).some(({ kind }) => kind === "rate"), "the number belongs to another stage");
});
