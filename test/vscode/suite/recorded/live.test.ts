import assert from "node:assert/strict";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import type { DriftSnapshot } from "../../../../src/protocol/webview.ts";
import { note } from "../runSuite.ts";
import { folder, seesaw, waitFor } from "../support.ts";

describe("live scoring", () => {
  const probes = (): vscode.Uri => vscode.Uri.file(join(folder(), "data", "math.probe.jsonl"));
  const graphs = (): string => join(folder(), ".seesaw", "cache", "graphs");
  let first = "";

  const openAt = async (line: number): Promise<vscode.TextEditor> => {
    const at = new vscode.Position(line, 0);
    return vscode.window.showTextDocument(await vscode.workspace.openTextDocument(probes()), { selection: new vscode.Range(at, at), viewColumn: vscode.ViewColumn.One });
  };

  const offered = async (uri: vscode.Uri): Promise<vscode.Command[]> => {
    const document = await vscode.workspace.openTextDocument(uri);
    const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>("vscode.executeCodeActionProvider", document.uri, document.lineAt(0).range);
    return actions.flatMap(({ command }) => command ?? []);
  };

  /** What the real page was told, once nothing is on its way. */
  const live = async (what: string, look: (state: DriftSnapshot) => boolean): Promise<DriftSnapshot> => {
    const { host } = await seesaw();
    for (const late = Date.now() + 20_000; Date.now() < late; await new Promise((resolve) => setTimeout(resolve, 2))) {
      const state = host.drift.shown;
      if (state.live?.progress === null && look(state)) return state;
    }
    throw new Error(`${what}: not within 20 s`);
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

  it("says in Token Drift what to do while no stage has left a graph", async () => {
    await openAt(0);
    await vscode.commands.executeCommand("seesaw.probeSelection");
    const state = await live("the sentence", ({ empty }) => empty !== null);
    assert.match(state.empty?.detail ?? "", /There is no scoring graph for this model yet\. Run a stage once/);
    assert.deepEqual([state.film, state.live?.file, state.live?.line], [null, "data/math.probe.jsonl", 1]);
  });

  it("fills Token Drift with the row as it stands in the editor, under every checkpoint that is here", async () => {
    // The repository's root, from .cache/vscode-tests/recorded/<workspace>.
    cpSync(join(folder(), "../../../../test/fixtures/graphs"), graphs(), { recursive: true });
    cpSync(join(folder(), "models", "m0"), first, { recursive: true });
    const weights = join(first, "model.safetensors");
    const bytes = readFileSync(weights);
    writeFileSync(weights, bytes.fill(0, bytes.length - 20_000));
    await openAt(0);
    await vscode.commands.executeCommand("seesaw.probeSelection");
    const saved = await live("the film", ({ film }) => film !== null);
    assert.deepEqual([saved.live?.edited, saved.live?.line, saved.chart], [false, 1, null]);
    assert.match(saved.live?.prompt ?? "", /^What is /);
    assert.equal(saved.film?.prompt, saved.live?.prompt);
    assert.deepEqual(saved.film?.rows.map(({ checkpoint, cells }) => [saved.checkpoints[checkpoint]?.label, cells !== null]), [["M0", true], ["M1", true], ["M2", false], ["M3", false]]);
    assert.match(saved.film?.rows[2]?.note ?? "", /no model\.safetensors/);
    const cells = saved.film?.rows[1]?.cells ?? [];
    assert.ok(cells.some(({ coloured, change }) => coloured && Number(change) < 0) && cells.every(({ rank, top }) => rank >= 1 && top.length > 0));
    assert.deepEqual(saved.notes, [], "the recorded traces know the noise");
  });

  it("shows an edit of the row at the next asking, from its code action, in at most 150 ms when warm", async () => {
    const editor = await openAt(0);
    const [action] = (await offered(probes())).filter(({ command }) => command === "seesaw.probeSelection");
    assert.ok(action);
    const text = editor.document.lineAt(0).text;
    const times: number[] = [];
    for (let turn = 1; turn <= 7; turn++) {
      await editor.edit((edit) => edit.replace(editor.document.lineAt(0).range, text.replace(/"content": ?"(?=[^"]*so)/, `$&Edited ${turn} `)));
      const start = performance.now();
      await vscode.commands.executeCommand(action.command);
      const state = await live("the film of the edited row", ({ film }) => film?.reference.startsWith(`Edited ${turn} `) === true);
      times.push(performance.now() - start);
      assert.equal(state.live?.edited, true);
      await vscode.window.showTextDocument(editor.document, { viewColumn: vscode.ViewColumn.One });
    }
    const median = times.sort((a, b) => a - b)[3] as number;
    note("liveEditMs", median);
    assert.ok(median <= 150, `${times.map((ms) => ms.toFixed(0)).join(", ")} ms`);
  });

  it("gives Token Drift back to the recorded prompts", async () => {
    const { host } = await seesaw();
    await vscode.commands.executeCommand("seesaw.showDrift", { file: `${folder()}/seesaw.yaml`, skill: "search" });
    await waitFor("the recorded prompts", () => host.drift.shown.live === null && host.drift.shown.prompts.length > 1);
    assert.equal(host.drift.shown.selection.skill, "search");
  });

  it("offers itself on probe rows, and nowhere else", async () => {
    const ids = async (uri: vscode.Uri): Promise<string[]> => (await offered(uri)).map(({ command }) => command).filter((id) => id === "seesaw.probeSelection");
    assert.deepEqual(await ids(probes()), ["seesaw.probeSelection"]);
    assert.deepEqual(await ids(vscode.Uri.file(join(folder(), "seesaw.yaml"))), []);
  });
});
