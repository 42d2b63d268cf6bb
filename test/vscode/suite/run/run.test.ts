import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { note } from "../runSuite.ts";
import { FakePage, folder, seesaw, treeByPath, waitFor } from "../support.ts";

/** A real stage on the tiny model: a few steps, through the launcher that the command uses. */
describe("running a stage", function () {
  this.timeout(240_000);

  it("starts detached, shows live, and ends done with scores", async () => {
    const { host } = await seesaw();
    const view = host.model.views()[0]!;
    assert.deepEqual(view.diagnostics.filter(({ severity }) => severity === "error"), []);
    const begin = Date.now();
    const started = await host.launcher.startStage(view.pipeline!, view.diagnostics, "math", await host.startOptions(view));
    note("startMs", Date.now() - begin);
    assert.ok(existsSync(join(started.dir, "run.json")));
    const stage = () => treeByPath(host).get("math");
    await waitFor("the live stage", () => stage()?.context === "stage.live");
    assert.equal(host.model.hasLiveRun(), true);
    await waitFor("steps in the tree", () => / of 4/.test(stage()?.description ?? "") || stage()?.context === "stage", 120_000);
    await waitFor("the end", () => stage()?.context === "stage", 180_000);
    note("runMs", Date.now() - begin);
    assert.match(stage()?.description ?? "", /^done · 4 steps/, `${stage()?.description}\n${stage()?.tooltip}`);
  });

  it("then has token drift to show", async () => {
    const { host } = await seesaw();
    const page = new FakePage(host);
    const state = await page.ready({ skill: "math", split: "id", reference: "M0" });
    assert.equal(state.empty, null);
    assert.deepEqual(state.checkpoints.map(({ label }) => label), ["M0", "M1"]);
    assert.ok(state.film!.rows[1]!.cells!.some(({ change }) => Number(change) !== 0), "training moved no token");
    page.close();
  });

  it("refuses to resume or stop what is done, in a sentence", async () => {
    const { host } = await seesaw();
    const run = host.model.views()[0]!.listing.runs[0]!;
    await assert.rejects(host.launcher.resumeRun(folder(), run.id, { trusted: true }), /is finished/);
    await assert.rejects(host.launcher.stopRun(folder(), run.id, { trusted: true }), /is not running/);
  });

  it("shows the run's log", async () => {
    const run = (await seesaw()).host.model.views()[0]!.listing.runs[0]!;
    await vscode.commands.executeCommand("seesaw.showRunLog", { file: join(folder(), "seesaw.yaml"), run: run.id });
    await waitFor("the log", () => /(out\.log|agent\.log|journal\.jsonl)$/.test(vscode.window.activeTextEditor?.document.fileName ?? ""));
  });
});
