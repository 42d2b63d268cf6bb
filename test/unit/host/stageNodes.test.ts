import assert from "node:assert/strict";
import { test } from "node:test";
import type { FlagRecord, RunStatus } from "../../../src/domain/run/runState.ts";
import { runLine } from "../../../src/host/runWords.ts";
import { stageNodes, type StageNode } from "../../../src/host/stageNodes.ts";
import { makeRun, makeView } from "./views.ts";

const stage = (nodes: StageNode[], label: string): StageNode => {
  const found = nodes.find((node) => node.label === label);
  assert.ok(found, label);
  return found;
};

const flag = (state: FlagRecord["state"]): FlagRecord => ({ id: "math.id", skill: "math", split: "id", step: 40, state, value: 1, lower: 0.5, threshold: 0.2, noise: 0.01, level: 0.01, n: 64, seq: 9, t: 1, attempt: 1 });

test("every status has words, an icon and the right menu", () => {
  const expected: Record<RunStatus, [icon: string, stage: string, run: string]> = {
    starting: ["loading~spin", "stage.live", "run.live"],
    running: ["loading~spin", "stage.live", "run.live"],
    stopping: ["loading~spin", "stage.live", "run.live"],
    orphan: ["loading~spin", "stage.live", "run.live"],
    done: ["pass", "stage", "run"],
    paused: ["debug-pause", "stage", "run.resumable"],
    failed: ["error", "stage", "run.resumable"],
    "out-of-memory": ["error", "stage", "run.resumable"],
    killed: ["circle-slash", "stage", "run.resumable"],
    cancelled: ["circle-slash", "stage", "run.resumable"],
    lost: ["question", "stage", "run.resumable"],
    unknown: ["question", "stage", "run.resumable"],
  };
  for (const [status, [icon, stageContext, runContext]] of Object.entries(expected)) {
    const node = stage(stageNodes([makeView({ runs: [makeRun("math", { status: status as RunStatus, step: 3, total: 80 })] })]), "math");
    assert.equal(node.icon.name, icon, status);
    assert.equal(node.context, stageContext, status);
    assert.equal(node.children.at(-1)?.context, runContext, status);
    assert.notEqual(node.description, "", status);
  }
});

test("a live run shows step, phase, time left and loss", () => {
  const state = makeRun("math", { status: "running", phase: "train", step: 40, total: 150, etaSeconds: 12, loss: 1.2345 }).state;
  assert.equal(runLine(state), "step 40 of 150 · 12 s left · loss 1.234");
  assert.equal(runLine({ ...state, phase: "probe" }), "step 40 of 150 · scoring probes · 12 s left · loss 1.234");
  assert.equal(runLine({ ...state, status: "stopping", etaSeconds: null, loss: null }), "stopping · step 40 of 150");
  assert.equal(runLine({ ...state, loss: Number.NaN, etaSeconds: null }), "step 40 of 150 · loss NaN");
});

test("a raised flag is in the description and leads to its drift; a recovered one is not", () => {
  const raised = stage(stageNodes([makeView({ runs: [makeRun("search", { status: "done", flags: [flag("drifting")] })] })]), "search");
  assert.match(raised.description, /^⚑ math · done$/);
  assert.equal(raised.children[0]?.opens, "drift");
  assert.deepEqual([raised.children[0]?.target.skill, raised.children[0]?.target.split], ["math", "id"]);
  const recovered = stage(stageNodes([makeView({ runs: [makeRun("search", { status: "done", flags: [flag("recovered")] })] })]), "search");
  assert.doesNotMatch(recovered.description, /⚑/);
});

test("a stale checkpoint says so, with the reason", () => {
  const node = stage(stageNodes([makeView({ runs: [makeRun("search", { status: "done", total: 60 })], statuses: { M2: "stale" } })]), "search");
  assert.match(node.description, /^stale · done/);
  assert.equal(node.icon.name, "history");
  assert.match(node.tooltip, /M2 is stale/);
});

test("a pipeline with errors, and a run that cannot be read, are shown as such", () => {
  const [broken] = stageNodes([makeView({ text: "seesaw: 1\n" })]);
  assert.equal(broken?.label, "seesaw.yaml has errors");
  assert.equal(broken?.opens, "pipeline");
  const view = makeView();
  view.listing.unreadable.push({ dir: "/w/x", id: "x", message: "It was written by a newer Seesaw." });
  assert.equal(stage(stageNodes([view]), "x").tooltip, "It was written by a newer Seesaw.");
});

test("several pipelines are told apart, and ids never meet", () => {
  const one = makeView();
  const other = { ...makeView(), uri: { fsPath: "/w/slope/seesaw.yaml" } as typeof one.uri, label: "slope/seesaw.yaml" };
  const nodes = stageNodes([one, other]);
  assert.deepEqual(nodes.map(({ context }) => context), ["pipeline", "pipeline"]);
  const ids = nodes.flatMap((node) => [node.id, ...node.children.map(({ id }) => id)]);
  assert.equal(new Set(ids).size, ids.length);
});
