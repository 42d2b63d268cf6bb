import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { chooseStage } from "../../../../src/host/choices.ts";
import { FakePage, folder, seesaw, treeByPath, waitFor } from "../support.ts";

describe("pipelines of the workspace", () => {
  const broken = "broken ü +%41 #1";
  const file = (): string => join(folder(), broken, "seesaw.yaml");
  after(() => rmSync(join(folder(), broken), { recursive: true, force: true }));

  it("finds every seesaw.yaml, the outermost first", async () => {
    const { host } = await seesaw();
    const labels = host.model.views().map(({ label }) => label);
    assert.equal(labels[0], "seesaw.yaml");
    assert.ok(labels.includes("slope/seesaw.yaml"), labels.join(", "));
    assert.deepEqual(host.model.views()[0]?.pipeline?.stages.map(({ id }) => id), ["math", "search", "tool", "format"]);
  });

  it("shows the errors of a broken one in the Problems view, in a folder with an odd name", async () => {
    const { host } = await seesaw();
    mkdirSync(join(folder(), broken));
    writeFileSync(file(), "seesaw: 1\nbase: models/m0\nskills: {}\nstages:\n  - { id: math, recipe: sft }\n  - { id: math, recipe: sft, dta: x }\n");
    const uri = vscode.Uri.file(file());
    const problems = await waitFor("diagnostics", () => {
      const found = vscode.languages.getDiagnostics(uri);
      return found.length > 0 ? found : null;
    });
    assert.ok(problems.some(({ severity }) => severity === vscode.DiagnosticSeverity.Error));
    assert.ok(problems.every(({ source, message }) => source === "seesaw" && message.length > 10));
    assert.ok(problems.some(({ range }) => range.start.line >= 4), "an error must stand at its line");
    assert.ok(host.model.view(uri.fsPath));
  });

  it("takes them back when the file is mended in the editor, before it is saved", async () => {
    const document = await vscode.workspace.openTextDocument(vscode.Uri.file(file()));
    const edit = new vscode.WorkspaceEdit();
    const all = new vscode.Range(0, 0, document.lineCount, 0);
    edit.replace(document.uri, all, "seesaw: 1\nbase: m0\nskills:\n  math: { probes: p.jsonl, check: { kind: text } }\nstages:\n  - { id: math, recipe: sft, data: d.jsonl }\n");
    await vscode.workspace.applyEdit(edit);
    await waitFor("no errors", () => !vscode.languages.getDiagnostics(document.uri).some(({ severity }) => severity === vscode.DiagnosticSeverity.Error));
    await document.save();
  });

  it("keeps showing the stages while the file is broken in the editor, and says so in the tree and in Token Drift", async () => {
    const { host } = await seesaw();
    const uri = vscode.Uri.file(join(folder(), "seesaw.yaml"));
    const view = () => host.model.view(uri.fsPath)!;
    const page = new FakePage(host);
    const before = await page.ready();
    assert.equal(before.empty, null);
    const document = await vscode.workspace.openTextDocument(uri);
    const good = document.getText();
    const put = async (text: string): Promise<void> => {
      const edit = new vscode.WorkspaceEdit();
      edit.replace(uri, new vscode.Range(0, 0, document.lineCount, 0), text);
      await vscode.workspace.applyEdit(edit);
    };
    await put(`${good}\n  - { id: [`);
    await waitFor("the errors", () => view().pipeline === null);
    assert.ok(vscode.languages.getDiagnostics(uri).length > 0);
    const tree = treeByPath(host);
    assert.equal(tree.get("cliff/seesaw.yaml has errors")?.opens, "pipeline");
    assert.match(tree.get("cliff/math")?.description ?? "", /^done/);
    assert.equal((await page.select({ row: before.prompts[2]!.row })).empty, null, "the page forgot what it showed");
    await assert.rejects(chooseStage(host.model.views(), { file: uri.fsPath, stage: "math" }), /seesaw\.yaml has errors, the first in line \d+/);
    await put(good);
    await waitFor("no errors", () => view().pipeline !== null && !vscode.languages.getDiagnostics(uri).some(({ severity }) => severity === vscode.DiagnosticSeverity.Error));
    assert.equal(treeByPath(host).has("cliff/seesaw.yaml has errors"), false);
    await vscode.commands.executeCommand("workbench.action.files.revert", uri);
    page.close();
  });

  it("forgets a pipeline whose file is gone, with its diagnostics", async () => {
    const { host } = await seesaw();
    const uri = vscode.Uri.file(file());
    await vscode.commands.executeCommand("workbench.action.closeAllEditors");
    rmSync(join(folder(), broken), { recursive: true });
    await waitFor("the pipeline to go", () => host.model.view(uri.fsPath) === undefined);
    assert.deepEqual(vscode.languages.getDiagnostics(uri), []);
  });
});
