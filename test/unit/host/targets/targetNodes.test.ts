import assert from "node:assert/strict";
import { test } from "node:test";
import type { StageNode } from "../../../../src/host/stageNodes.ts";
import { targetNodes, type TargetState } from "../../../../src/host/targets/targetNodes.ts";
import type { TargetReport } from "../../../../src/protocol/remote.ts";
import { report, unreached } from "../../domain/targets/reports.ts";
import { makeView } from "../views.ts";

const text = `seesaw: 1
base: m0
skills:
  math: { probes: math.jsonl, check: { kind: text } }
stages:
  - { id: math, recipe: sft, data: math.jsonl, on: cluster }
  - { id: search, recipe: sft, data: math.jsonl, on: cluster }
targets:
  box: { kind: ssh, host: gpu-box, dir: ~/seesaw }
  cluster: { kind: slurm, host: login1, dir: /shared/seesaw }
  here: { kind: slurm, dir: /shared/seesaw }
  ray: { kind: ray, address: "http://head:8265", dir: /shared/seesaw }
`;
const view = makeView({ text });
const now = Date.now() / 1000;
const nodes = (states: Record<string, TargetState> = {}, trusted = true): StageNode[] => targetNodes([view], (_file, id) => states[id] ?? { kind: "unchecked" }, now, trusted);
const node = (id: string, state: TargetState): StageNode => {
  const found = nodes({ [id]: state }).find(({ label }) => label === id);
  assert.ok(found, id);
  return found;
};
const checked = (change: Partial<TargetReport>): TargetState => ({ kind: "checked", report: { ...unreached, ...change }, at: now });

test("before anybody asked, targets are listed with their place and nothing is said of what they have", () => {
  assert.deepEqual(nodes().map(({ label, description, context, children }) => [label, description, context, children.length]), [
    ["local", "this machine · not checked yet", "target", 0],
    ["box", "gpu-box · not checked yet", "target.ssh", 0],
    ["cluster", "login1 (Slurm) · not checked yet", "target.ssh", 0],
    ["here", "this machine (Slurm) · not checked yet", "target.slurm", 0],
    ["ray", "http://head:8265 · not checked yet", "target.ray", 0],
  ]);
  assert.match(nodes()[2]?.tooltip ?? "", /Runs and data lie in \/shared\/seesaw\.\nRuns: math, search\./);
  assert.match(nodes()[1]?.tooltip ?? "", /write `on: box` at a stage/);
  assert.match(nodes({}, false)[1]?.description ?? "", /not checked: this workspace is not trusted/);
});

test("checking, failed and checked have words and icons of their own", () => {
  assert.equal(node("box", { kind: "checking", report: null }).icon.name, "loading~spin");
  const failed = node("box", { kind: "failed", message: "Something of ours broke.", at: now });
  assert.deepEqual([failed.icon.name, failed.expanded, failed.children.map(({ label, opens }) => [label, opens])], ["error", true, [["Something of ours broke.", "checkTarget"]]]);
  const good = node("cluster", { kind: "checked", report: { ...report, problems: [] }, at: now });
  assert.deepEqual([good.icon.name, good.expanded, good.description], ["pass", false, "login1 (Slurm) · 2 GPUs, 12 GB of 160 GB used · Python 3.11.2 · 42 ms"]);
  assert.match(good.tooltip, /Checked at \d\d:\d\d\./);
  assert.deepEqual(good.children.map(({ label }) => label), ["GPUs", "Queue", "Python 3.11.2", "Disk", "Versions", "Round trip"]);
  assert.equal(node("cluster", { kind: "checked", report, at: now }).icon.name, "warning");
  // What was known stays to be seen while it is asked again.
  assert.equal(node("cluster", { kind: "checking", report }).children.length, 7);
});

test("a click on a problem does something about it, by its reason and the kind of target", () => {
  const fix = (id: string, reason: TargetReport["problems"][number]["reason"]): (string | null)[] => {
    const problem = node(id, checked({ problems: [{ reason, message: "It is so." }] })).children[0];
    assert.equal(problem?.label, "It is so.");
    return [problem.opens, problem.context, problem.target.on ?? ""];
  };
  assert.deepEqual(fix("box", "login"), ["logIn", "problem.login", "box"]);
  assert.deepEqual(fix("cluster", "host-key"), ["logIn", "problem.login", "cluster"]);
  assert.deepEqual(fix("box", "refused"), ["logIn", "problem.login", "box"]);
  assert.deepEqual(fix("ray", "refused"), ["rayToken", "problem.token", "ray"]);
  assert.deepEqual(fix("ray", "expired"), ["rayToken", "problem.token", "ray"]);
  assert.deepEqual(fix("box", "no-python"), ["pipeline", "problem.file", "box"]);
  assert.deepEqual(fix("cluster", "resources"), ["pipeline", "problem.file", "cluster"]);
  assert.deepEqual(fix("box", "no-route"), ["checkTarget", "problem.check", "box"]);
  // VS Code keeps what it knows closed, so what is to be open is another item for it.
  assert.notEqual(node("box", checked({})).id, node("box", { kind: "unchecked" }).id);
  // There is nothing to log in to.
  assert.deepEqual(fix("here", "login"), ["checkTarget", "problem.check", "here"]);
  assert.equal(node("box", checked({})).icon.name, "debug-disconnect");
});

test("with this machine only there is a way to add another; a file with errors is told; ids never meet", () => {
  const alone = targetNodes([makeView()], () => ({ kind: "unchecked" }), now, true);
  assert.deepEqual(alone.map(({ label, opens }) => [label, opens]), [["local", null], ["Add another machine…", "addTarget"]]);
  const broken = makeView({ text: "seesaw: 1\n" });
  assert.deepEqual(targetNodes([broken], () => ({ kind: "unchecked" }), now, true).flatMap(({ children }) => children.map(({ opens }) => opens)), ["pipeline"]);
  const all: string[] = [];
  const walk = (some: readonly StageNode[]): void => some.forEach((one) => (all.push(one.id), walk(one.children)));
  walk(nodes({ cluster: { kind: "checked", report, at: now }, box: checked({}) }));
  assert.equal(new Set(all).size, all.length);
});
