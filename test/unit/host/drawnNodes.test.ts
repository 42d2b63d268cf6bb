import assert from "node:assert/strict";
import { test } from "node:test";
import type { FlagRecord, RunState } from "../../../src/domain/run/runState.ts";
import { DrawnNodes, type Redraw } from "../../../src/host/drawnNodes.ts";
import { skillNodes } from "../../../src/host/skills/skillNodes.ts";
import { stageNodes } from "../../../src/host/stageNodes.ts";
import type { PipelineView } from "../../../src/host/workspaceModel.ts";
import { makeRun, makeView } from "./views.ts";

const flag: FlagRecord = { id: "math.id", skill: "math", split: "id", step: 20, state: "drifting", value: 1, lower: 0.5, threshold: 0.2, noise: 0.01, level: 0.01, n: 64, seq: 9, t: 1, attempt: 1 };
const checkpoint = { step: 20, path: "checkpoints/step-000020", kind: "full", final: false, weightsHash: "w", bytes: 1000 } as RunState["checkpoints"][number];
const live = (step: number, more: Partial<RunState> = {}): PipelineView => makeView({ runs: [makeRun("search", { status: "running", step, total: 60, loss: 1.5, flags: [flag], checkpoints: [checkpoint], ...more }), makeRun("math", { status: "done", step: 80, total: 80 })] });
const names = ({ nodes }: Redraw): string[] => nodes.map(({ label }) => label);

/** A tree that has drawn the view. */
function drawn(view: PipelineView): DrawnNodes {
  const tree = new DrawnNodes();
  tree.set(stageNodes([view]));
  assert.equal(tree.take().all, true, "the first time all of it");
  return tree;
}

test("nothing is drawn again where nothing looks different: no run, a live one, one that cannot be reached", () => {
  const heard = (at: number): PipelineView => {
    const remote = { target: "box", address: "me@box", job: null, word: null, unreachable: { since: 1_767_225_600, reason: "no-route", message: "No route.", last: "running" }, heard: at, complete: false } as unknown as RunState["remote"];
    return live(10, { status: "unreachable", remote });
  };
  for (const view of [() => makeView(), () => live(10), () => heard(1_767_225_500)]) {
    const tree = drawn(view());
    for (let turn = 0; turn < 20; turn++) {
      tree.set(stageNodes([view()]));
      assert.deepEqual(tree.take(), { all: false, nodes: [], shape: false, held: [] });
    }
  }
  // The word of when it was heard last is to the minute.
  const tree = drawn(heard(1_767_225_500));
  tree.set(stageNodes([heard(1_767_225_503)]));
  assert.deepEqual(names(tree.take()), []);
  const skills = new DrawnNodes();
  for (const all of [true, false]) {
    skills.set(skillNodes([live(10)]));
    assert.deepEqual([skills.changes().all, skills.take().nodes.length], [all, 0]);
  }
});

test("a step of a live run draws its stage alone, which is the same item with new words", () => {
  const tree = drawn(live(10));
  const [math, search] = tree.nodes;
  tree.set(stageNodes([live(11)]));
  const first = tree.changes();
  assert.deepEqual([first.all, first.shape, names(first)], [false, false, ["search"]]);
  assert.equal(first.nodes[0], search, "VS Code knows items by their objects");
  assert.deepEqual([tree.nodes[0] === math, search?.description.includes("step 11 of 60")], [true, true]);
  tree.take();
  assert.deepEqual(names(tree.take()), [], "once");
  tree.set(stageNodes([live(12)]));
  tree.set(stageNodes([live(11)]));
  assert.deepEqual(names(tree.take()), [], "what was taken back before it was drawn");
});

test("what a button depends on is drawn at once: another state, another run, one checkpoint more", () => {
  for (const [change, expected] of [
    [live(10, { status: "cancelled", reason: { kind: "cancelled" } as RunState["reason"] }), ["search"]],
    [live(10, { checkpoints: [checkpoint, { ...checkpoint, step: 40 }] }), ["2026-01-01 00:00"]],
    [makeView({ runs: [makeRun("math", { status: "running", total: 80 }, "math-20260102T000000-bbbb"), ...live(10).listing.runs] }), ["math"]],
  ] as const) {
    const tree = drawn(live(10));
    tree.set(stageNodes([change]));
    const found = tree.changes();
    assert.deepEqual([found.all, found.shape, names(found)], [false, true, expected]);
  }
  const tree = drawn(live(10));
  tree.set(stageNodes([makeView({ text: "seesaw: 1\nbase: m0\nskills: {}\nstages: [{ id: math, recipe: sft, data: math.jsonl }]\n" })]));
  assert.equal(tree.take().all, true, "a stage went");
});

test("while somebody points at a flag, the stage above it waits with its words, and not with its state", () => {
  const tree = drawn(live(10));
  const pointed = new Set([tree.nodes[1]?.children[0]?.id ?? ""]);
  tree.set(stageNodes([live(11)]));
  const waiting = tree.take(pointed);
  assert.deepEqual([names(waiting), waiting.held.map(({ label }) => label)], [["2026-01-01 00:00"], ["search"]]);
  assert.deepEqual(names(tree.take()), ["search"], "when nobody points any more");
  tree.set(stageNodes([live(12, { status: "done" })]));
  const done = tree.take(pointed);
  assert.deepEqual([done.held, names(done), done.shape], [[], ["search"], true]);
});

test("what was looked up for a hover is no reason to take it away; what comes later is drawn", () => {
  const nodes = (replay: string): PipelineView => ({ ...live(10), replay: () => ({ kind: "unread", buffer: replay, ratio: 0.1 }) });
  const tree = drawn(nodes("main"));
  const row = tree.nodes[1]?.children[0];
  assert.ok(row?.hover);
  tree.set(stageNodes([nodes("main, its rows read")]));
  tree.hovered(row);
  assert.deepEqual(names(tree.take()), []);
  tree.set(stageNodes([nodes("other")]));
  assert.deepEqual(names(tree.take()), ["math (in-domain) is drifting"]);
});
