import assert from "node:assert/strict";
import * as vscode from "vscode";
import { seesaw, treeByPath } from "../support.ts";

describe("Stages tree from recorded runs", () => {
  it("shows each stage's state, flags and newest run", async () => {
    const { host } = await seesaw();
    const tree = treeByPath(host);
    const stage = (id: string) => tree.get(`cliff/${id}`);
    assert.equal(stage("math")?.icon.name, "pass");
    assert.match(stage("math")?.description ?? "", /^done · \d+ steps/);
    assert.match(stage("search")?.description ?? "", /⚑ math/);
    assert.equal(stage("format")?.description, "not run yet");
    assert.equal(stage("format")?.context, "stage");
    assert.equal(stage("format")?.children.length, 0);
  });

  it("lists the runs of a stage, the failed one with its reason, and their checkpoints", async () => {
    const { host } = await seesaw();
    const search = treeByPath(host).get("cliff/search");
    const steps = host.model.views()[0]?.pipeline?.stages[1]?.args["max_steps"];
    const runs = search?.children.filter(({ context }) => context.startsWith("run")) ?? [];
    assert.equal(runs.length, 2);
    assert.equal(runs[0]?.children[0]?.label, `M2 · step ${steps}`);
    assert.equal(runs[0]?.children[0]?.context, "checkpoint");
    assert.equal(runs[1]?.context, "run.resumable");
    assert.match(runs[1]?.tooltip ?? "", /loss became NaN at step 30/);
    assert.match(runs[1]?.description ?? "", /^failed · at step 30 of \d+/);
  });

  it("makes a flag lead to its token drift", async () => {
    const { host } = await seesaw();
    const flag = treeByPath(host).get("cliff/search")?.children.find(({ context }) => context === "note");
    assert.match(flag?.label ?? "", /^math \(in-domain\): loss confirmed$/);
    assert.ok(flag);
    const item = host.tree.getTreeItem(flag);
    assert.equal(item.command?.command, "seesaw.showDrift");
    assert.deepEqual([flag.target.skill, flag.target.split], ["math", "id"]);
  });

  it("gives tree items stable ids, a label for screen readers and a context for menus", async () => {
    const { host } = await seesaw();
    const nodes = [...treeByPath(host).values()];
    assert.equal(new Set(nodes.map(({ id }) => id)).size, nodes.length);
    for (const node of nodes) {
      const item = host.tree.getTreeItem(node);
      assert.equal(item.contextValue, node.context);
      assert.ok(item.accessibilityInformation?.label);
      assert.ok(item.iconPath instanceof vscode.ThemeIcon || typeof item.iconPath === "object");
    }
  });
});
