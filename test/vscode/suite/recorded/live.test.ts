import assert from "node:assert/strict";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { folder, seesaw, waitFor } from "../support.ts";

describe("live scoring", () => {
  const probes = (): vscode.Uri => vscode.Uri.file(join(folder(), "data", "math.probe.jsonl"));
  const graphs = (): string => join(folder(), ".seesaw", "cache", "graphs");
  const page = (): vscode.TextDocument | undefined => vscode.workspace.textDocuments.find(({ uri }) => uri.scheme === "seesaw-live");
  let first = "";

  const openAt = async (line: number): Promise<vscode.TextEditor> => {
    const at = new vscode.Position(line, 0);
    return vscode.window.showTextDocument(await vscode.workspace.openTextDocument(probes()), { selection: new vscode.Range(at, at), viewColumn: vscode.ViewColumn.One });
  };

  before(async () => {
    const { host } = await seesaw();
    const view = host.model.view(join(folder(), "seesaw.yaml"));
    first = view?.chain?.checkpoints[1]?.path ?? "";
    assert.notEqual(first, "");
  });
  after(async () => {
    await openAt(0);
    await vscode.commands.executeCommand("workbench.action.files.revert");
    await vscode.commands.executeCommand("workbench.action.closeAllEditors");
    rmSync(graphs(), { recursive: true, force: true });
    rmSync(first, { recursive: true, force: true });
  });

  it("says what to do while no stage has left a graph", async () => {
    const { host } = await seesaw();
    await openAt(0);
    await assert.rejects(host.live.probe(), /There is no scoring graph for this model yet\. Run a stage once/);
    assert.equal(page(), undefined);
  });

  it("scores the row as it stands in the editor under every checkpoint that is here", async () => {
    // The repository's root, from .cache/vscode-tests/recorded/<workspace>.
    cpSync(join(folder(), "../../../../test/fixtures/graphs"), graphs(), { recursive: true });
    cpSync(join(folder(), "models", "m0"), first, { recursive: true });
    const weights = join(first, "model.safetensors");
    const bytes = readFileSync(weights);
    writeFileSync(weights, bytes.fill(0, bytes.length - 20_000));
    await openAt(0);
    await vscode.commands.executeCommand("seesaw.probeSelection");
    const saved = page()?.getText() ?? "";
    assert.match(saved, /^data\/math\.probe\.jsonl\n\nLine 1\n\nPrompt {2}What is /);
    assert.match(saved, / M0 +M1 against M0\n/);
    assert.match(saved, /\nwhole answer +−\d+\.\d\d +−\d+\.\d\d +[+−]\d+\.\d\d\n/);
    assert.match(saved, /\nM2: .*no model\.safetensors/);
    const editor = await openAt(0);
    const text = editor.document.lineAt(0).text;
    await editor.edit((edit) => edit.replace(editor.document.lineAt(0).range, text.replace(/"content": ?"(?=[^"]*so)/, '$&Edited ')));
    assert.notEqual(editor.document.lineAt(0).text, text);
    await vscode.commands.executeCommand("seesaw.probeSelection");
    // The editor fetches a changed page in its own time.
    const edited = await waitFor("the scores of the edited row", () => {
      const text = page()?.getText() ?? "";
      return text.startsWith("data/math.probe.jsonl (as edited, not saved)\n") ? text : null;
    });
    assert.match(edited, /\nAnswer {2}Edited /);
    assert.equal(vscode.window.activeTextEditor?.document.uri.fsPath, probes().fsPath, "the row keeps the focus");
  });

  it("offers itself on probe rows, and nowhere else", async () => {
    const offered = async (uri: vscode.Uri): Promise<string[]> => {
      const document = await vscode.workspace.openTextDocument(uri);
      const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>("vscode.executeCodeActionProvider", document.uri, document.lineAt(0).range);
      return actions.flatMap(({ command }) => command?.command ?? []);
    };
    assert.deepEqual((await offered(probes())).filter((id) => id === "seesaw.probeSelection"), ["seesaw.probeSelection"]);
    assert.ok(!(await offered(vscode.Uri.file(join(folder(), "seesaw.yaml")))).includes("seesaw.probeSelection"));
  });
});
