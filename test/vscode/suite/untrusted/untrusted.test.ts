import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { AppError } from "../../../../src/util/errors.ts";
import { FakePage, folder, seesaw, treeByPath } from "../support.ts";

/** Case V07: a workspace with settings, a script and run folders that want to start something. */
describe("an untrusted workspace", () => {
  const canaries = (): string[] => readdirSync(folder(), { recursive: true }).map(String).filter((name) => name.includes("CANARY"));
  const runs = (): string[] => readdirSync(join(folder(), ".seesaw/runs"));

  it("is shown: stages, runs, token drift", async () => {
    assert.equal(vscode.workspace.isTrusted, false);
    const { host } = await seesaw();
    assert.equal(treeByPath(host).get("math")?.icon.name ?? treeByPath(host).get("cliff/math")?.icon.name, "pass");
    const page = new FakePage(host);
    const state = await page.ready();
    assert.equal(state.empty, null);
    assert.ok(state.prompts.length > 0);
    page.close();
  });

  it("has no lens in seesaw.yaml that would start something", async () => {
    await seesaw();
    const uri = vscode.Uri.file(join(folder(), "seesaw.yaml"));
    await vscode.workspace.openTextDocument(uri);
    const lenses = await vscode.commands.executeCommand<vscode.CodeLens[]>("vscode.executeCodeLensProvider", uri, 100);
    assert.deepEqual([...new Set(lenses.map(({ command }) => command?.command))].sort(), ["seesaw.showDrift", "seesaw.stages.focus"]);
  });

  it("contacts no target, also when asked to", async () => {
    const { host } = await seesaw();
    await host.targets.check();
    const [target] = host.targets.getChildren().flatMap((node) => (node.context === "pipeline" ? node.children : [node]));
    assert.match(target?.description ?? "", /not checked: this workspace is not trusted/);
    assert.equal(host.targets.state(join(folder(), "seesaw.yaml"), "local").kind, "unchecked");
  });

  it("does not take the Python that the workspace names", () => {
    assert.equal(vscode.workspace.getConfiguration("seesaw").get("python.path"), "");
  });

  it("starts nothing: not by command, not by the launcher", async () => {
    const { host } = await seesaw();
    const before = runs();
    const view = host.model.views()[0]!;
    // The command shows a warning that nobody answers here, so it is not awaited.
    for (const id of ["seesaw.runStage", "seesaw.rerunStage", "seesaw.resumeRun", "seesaw.stopRun"]) void vscode.commands.executeCommand(id, { file: view.uri.fsPath, stage: "math" });
    await assert.rejects(host.launcher.startStage(view.pipeline!, view.diagnostics, "math", { trusted: false }), (error: AppError) => error.reason === "untrusted");
    await assert.rejects(host.launcher.python(view.pipeline!, "math", { trusted: false }), (error: AppError) => error.reason === "untrusted");
    await new Promise((resolve) => setTimeout(resolve, 2500));
    assert.deepEqual(runs(), before);
    assert.deepEqual(canaries(), []);
  });
});
