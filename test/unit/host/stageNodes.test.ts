import assert from "node:assert/strict";
import { test } from "node:test";
import type { FlagRecord, RunStatus } from "../../../src/domain/run/runState.ts";
import { runLine, statusBarText } from "../../../src/host/runWords.ts";
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
    queued: ["watch", "stage.live", "run.live"],
    unreachable: ["debug-disconnect", "stage.live", "run.live"],
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

test("a run that waits in a scheduler's queue, or whose machine does not answer, says so and is not over", () => {
  const remote = { target: "cluster", kind: "slurm" as const, address: "login1 (Slurm)", job: "17", word: { state: "queued" as const, reason: "Priority" }, unreachable: null, heard: 1, complete: false };
  const queued = makeRun("math", { status: "queued", remote }).state;
  assert.equal(runLine(queued), "queued on cluster: others come first (Priority)");
  assert.equal(runLine({ ...queued, step: 40, total: 80 }), "queued on cluster: others come first (Priority) · step 40 of 80");
  const since = Date.now() / 1000;
  const away = { ...queued, status: "unreachable" as const, step: 3, total: 80, etaSeconds: 9, loss: 1, remote: { ...remote, unreachable: { since, reason: "no-route" as const, message: "login1 does not answer.", last: "running" as const } } };
  assert.match(runLine(away), /^cluster unreachable since \d\d:\d\d · last seen at step 3 of 80$/, "what it does now is not known");
  assert.match(runLine({ ...away, step: 0 }), /^cluster unreachable since \d\d:\d\d · before: running$/);
  const node = stage(stageNodes([makeView({ runs: [makeRun("math", away)] })]), "math");
  assert.match(node.tooltip, /Target cluster: login1 \(Slurm\), job 17, attempt 1\nUnreachable since \d\d:\d\d: login1 does not answer\.\nThe run may well go on there; before, it was: running\./);
  assert.deepEqual([statusBarText("math", queued), statusBarText("math", away)], ["math · queued", "math 3/80 · unreachable"]);
});

test("a checkpoint that lies on a target can be fetched, one of this machine need not be", () => {
  const checkpoint = { step: 80, path: "checkpoints/step-000080", kind: "full" as const, final: true, weightsHash: "", bytes: 1 };
  const contexts = (remote: ReturnType<typeof makeRun>["state"]["remote"]): (string | number | undefined)[] => {
    const found = stage(stageNodes([makeView({ runs: [makeRun("math", { status: "done", checkpoints: [checkpoint], remote })] })]), "math").children.at(-1)?.children[0];
    return [found?.context, found?.target.step];
  };
  assert.deepEqual(contexts(null), ["checkpoint", 80]);
  assert.deepEqual(contexts({ target: "box", kind: "ssh", address: "gpu-box", job: null, word: null, unreachable: null, heard: 1, complete: true }), ["checkpoint.remote", 80]);
});

test("a run with another seed than the file's says which, and is seen while it runs", () => {
  const own = makeRun("math", { status: "done" });
  const other = { ...own, id: "math-20990101T000000-ffff", spec: { ...own.spec, id: "math-20990101T000000-ffff", seed: own.spec.seed + 2, file_seed: own.spec.seed, created: own.spec.created + 60 }, state: { ...own.state, status: "running" as const } };
  const node = stage(stageNodes([makeView({ runs: [own, other] })]), "math");
  assert.deepEqual(node.children.map(({ label }) => label.includes(" · seed ")), [false, true]);
  assert.match(node.children[1]?.label ?? "", new RegExp(` · seed ${own.spec.seed + 2}$`));
  assert.deepEqual([node.target.run, node.context, node.expanded], [own.id, "stage", true]);
});
