import assert from "node:assert/strict";
import * as vscode from "vscode";
import type { StageNode } from "../../../../src/host/stageNodes.ts";
import { seesaw, waitFor } from "../support.ts";

describe("Skills tree from recorded runs", () => {
  const skillsOf = async (): Promise<StageNode[]> => {
    const { host } = await seesaw();
    const cliff = host.skills.getChildren().find(({ label }) => label === "cliff");
    assert.ok(cliff, "the pipeline is not among the skills");
    return host.skills.getChildren(cliff);
  };

  it("has every skill and split with its newest accuracy and what it lost", async () => {
    const { host } = await seesaw();
    const nodes = await skillsOf();
    const view = host.model.views()[0]!;
    assert.equal(nodes.length, view.pipeline!.skills.reduce((sum, { probes }) => sum + (probes.ood === undefined ? 1 : 2), 0));
    const math = nodes[0]!;
    const evals = view.chain!.checkpoints.map((checkpoint) => checkpoint.evals["math.id"]);
    const [own, last] = [evals[1]!, evals[3]!];
    assert.ok(math.description.startsWith(`⚑ ${Math.round((100 * last.correct) / last.n)} % (`), math.description);
    assert.match(math.description, /\) · −\d+ since M1$/);
    assert.match(math.tooltip, new RegExp(`^math \\(in-domain\\): ${last.correct} of ${last.n} answers .*\\n.* at M1, the end of its own stage`));
    assert.ok(own.correct > last.correct);
    assert.deepEqual(math.children.map(({ label }) => label), ["M3 tool", "M2 search", "M1 math", "M0 base"]);
    // A flag is shown by its shape, not by colour alone.
    assert.equal(math.icon.name, "arrow-down");
  });

  it("gives items stable ids and labels, and leads to the drift of that skill and split", async () => {
    const { host } = await seesaw();
    const nodes = await skillsOf();
    const all = nodes.flatMap((node) => [node, ...node.children]);
    assert.equal(new Set(all.map(({ id }) => id)).size, all.length);
    for (const node of all) assert.ok(host.skills.getTreeItem(node).accessibilityInformation?.label);
    const ood = host.skills.getTreeItem(nodes[1]!);
    assert.equal(ood.command?.command, "seesaw.showDrift");
    await vscode.commands.executeCommand(ood.command!.command, ...ood.command!.arguments!);
    await waitFor("the skill in Token Drift", () => host.drift.selection.skill === "math" && host.drift.selection.split === "ood");
  });

  it("copies the command of a run, and reveals its folder without an error", async () => {
    const { host } = await seesaw();
    const run = host.model.views()[0]!.listing.runs[0]!;
    const target = { file: host.model.views()[0]!.uri.fsPath, stage: run.stage, run: run.id };
    await vscode.commands.executeCommand("seesaw.revealRun", target);
    // The clipboard of a browser may be out of reach; what matters is that the command goes through.
    await vscode.commands.executeCommand("seesaw.copyCommand", target);
    assert.equal(host.follower.text, null, "no run lives, so the status bar says nothing");
    assert.deepEqual(host.queue.waiting, []);
  });
});
