import assert from "node:assert/strict";
import { join } from "node:path";
import * as vscode from "vscode";
import { folder, seesaw, waitFor } from "../support.ts";

/** What stands in `seesaw.yaml` itself: lenses over the stages and flags on their lines. */
describe("seesaw.yaml in the editor", () => {
  const uri = (): vscode.Uri => vscode.Uri.file(join(folder(), "seesaw.yaml"));
  const lensesOf = async (): Promise<vscode.CodeLens[]> => (await vscode.commands.executeCommand<vscode.CodeLens[]>("vscode.executeCodeLensProvider", uri(), 100)) ?? [];
  const lineOf = (document: vscode.TextDocument, stage: string): number => document.getText().split("\n").findIndex((line) => line.trim() === `- id: ${stage}`);
  const flagsOn = (): vscode.Diagnostic[] => vscode.languages.getDiagnostics(uri()).filter(({ code }) => String(code).startsWith("flag-"));

  it("has over every stage what can be done, how it stands, and its drift", async () => {
    await seesaw();
    const document = await vscode.workspace.openTextDocument(uri());
    await vscode.window.showTextDocument(document);
    const lenses = await lensesOf();
    const at = (stage: string) => lenses.filter(({ range }) => range.start.line === lineOf(document, stage)).map(({ command }) => command!);
    assert.ok(lineOf(document, "math") > 0);
    assert.deepEqual(at("math").map(({ command }) => command), ["seesaw.runStage", "seesaw.stages.focus", "seesaw.showDrift"]);
    assert.match(at("math")[1]!.title, /^done · M1 · \d+ % math/);
    assert.match(at("search")[1]!.title, /^done · M2 · .*⚑ \d+ % math/);
    assert.deepEqual(at("search")[2]!.arguments, [{ file: uri().fsPath, stage: "search", run: at("search")[2]!.arguments![0].run, skill: "math", split: "id" }]);
    assert.deepEqual(at("format").map(({ title }) => title), ["$(play)\u00a0Run Stage", "not run yet"]);
  });

  it("opens the drift of the skill that fell when its lens is clicked", async () => {
    const { host } = await seesaw();
    const document = await vscode.workspace.openTextDocument(uri());
    const lens = (await lensesOf()).find(({ range, command }) => range.start.line === lineOf(document, "search") && command?.command === "seesaw.showDrift")!;
    await vscode.commands.executeCommand(lens.command!.command, ...lens.command!.arguments!);
    await waitFor("the skill in Token Drift", () => host.drift.selection.skill === "math" && host.drift.selection.split === "id");
  });

  it("has no lenses where the setting is off, and has them again", async () => {
    const setting = (on: boolean | undefined) => vscode.workspace.getConfiguration("seesaw").update("pipeline.codeLens", on, vscode.ConfigurationTarget.Workspace);
    await setting(false);
    assert.deepEqual(await lensesOf(), []);
    await setting(undefined);
    assert.ok((await lensesOf()).length > 0);
  });

  it("has the flags on the lines of their stages, with the numbers and the probes", async () => {
    await seesaw();
    const document = await vscode.workspace.openTextDocument(uri());
    const [flag] = flagsOn().filter(({ range }) => range.start.line === lineOf(document, "search"));
    assert.ok(flag, JSON.stringify(flagsOn()));
    assert.equal(flag.severity, vscode.DiagnosticSeverity.Warning);
    assert.deepEqual([flag.source, flag.code], ["seesaw", "flag-confirmed"]);
    assert.match(flag.message, /^math \(in-domain\) has lost accuracy at step \d+ of search, confirmed by a paired test/);
    assert.equal(flag.relatedInformation?.[0]?.location.uri.fsPath, join(folder(), "data", "math.probe.jsonl"));
    assert.deepEqual(flagsOn().filter(({ range }) => range.start.line === lineOf(document, "math")), []);
  });

  it("offers fixes on a flag that edit the file where it stands, and run nothing", async () => {
    const { host } = await seesaw();
    const document = await vscode.workspace.openTextDocument(uri());
    const runs = host.model.view(uri().fsPath)?.listing.runs.length;
    const before = document.getText();
    const line = lineOf(document, "search");
    const actions = (await vscode.commands.executeCommand<vscode.CodeAction[]>("vscode.executeCodeActionProvider", uri(), new vscode.Range(line, 0, line, 40), vscode.CodeActionKind.QuickFix.value)) ?? [];
    const of = (title: RegExp): vscode.CodeAction => {
      const found = actions.find((action) => title.test(action.title));
      assert.ok(found, `${title} is not among ${actions.map((action) => action.title).join(" | ")}`);
      assert.equal(found.command, undefined, "an edit, not a start");
      return found;
    };
    of(/^Replay 200 rows of math in search, at ratio 0\.1, first those nearest to what moved$/);
    assert.ok(await vscode.workspace.applyEdit(of(/^Halve the learning rate of search: 3\.5e-4$/).edit!));
    assert.equal(document.getText(), before.replace("learning_rate: 7.0e-4", "learning_rate: 3.5e-4"), "one number, and every comment as it was");
    assert.ok(document.isDirty, "it is seen, and can be undone, before it is saved");
    await vscode.window.showTextDocument(document);
    await vscode.commands.executeCommand("undo");
    await waitFor("the text as before", () => document.getText() === before);
    assert.equal(host.model.view(uri().fsPath)?.listing.runs.length, runs);
  });

  it("keeps them on the stage when lines are put before it", async () => {
    const { host } = await seesaw();
    const document = await vscode.workspace.openTextDocument(uri());
    const before = lineOf(document, "search");
    const edit = new vscode.WorkspaceEdit();
    edit.insert(uri(), new vscode.Position(0, 0), "# one\n# two\n");
    await vscode.workspace.applyEdit(edit);
    await waitFor("the model to read it", () => host.model.view(uri().fsPath)?.pipeline?.stages[1]?.range.line === before + 3);
    assert.ok(flagsOn().some(({ range }) => range.start.line === before + 2));
    assert.ok((await lensesOf()).some(({ range, command }) => range.start.line === before + 2 && command?.command === "seesaw.runStage"));
    const back = new vscode.WorkspaceEdit();
    back.delete(uri(), new vscode.Range(0, 0, 2, 0));
    await vscode.workspace.applyEdit(back);
    await waitFor("the model to read it", () => host.model.view(uri().fsPath)?.pipeline?.stages[1]?.range.line === before + 1);
    await document.save();
  });
});
