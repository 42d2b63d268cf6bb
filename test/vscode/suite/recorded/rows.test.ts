import assert from "node:assert/strict";
import * as vscode from "vscode";
import type { Host } from "../../../../src/host/createHost.ts";
import { note } from "../runSuite.ts";
import { folder, seesaw, waitFor } from "../support.ts";

const uriOf = (name: string): vscode.Uri => vscode.Uri.file(`${folder()}/data/${name}`);
const lensesOf = async (uri: vscode.Uri): Promise<vscode.CodeLens[]> => (await vscode.commands.executeCommand<vscode.CodeLens[]>("vscode.executeCodeLensProvider", uri, 1000)) ?? [];
const titles = (lenses: readonly vscode.CodeLens[]): string[] => lenses.map(({ command }) => command?.title ?? "");

async function hoverAt(uri: vscode.Uri, line: number): Promise<{ markdown: vscode.MarkdownString; text: string } | null> {
  const hovers = await vscode.commands.executeCommand<vscode.Hover[]>("vscode.executeHoverProvider", uri, new vscode.Position(line, 3));
  const markdown = hovers.flatMap(({ contents }) => contents).find((content): content is vscode.MarkdownString => content instanceof vscode.MarkdownString && /Seesaw|seesaw|buffer/.test(content.value));
  return markdown === undefined ? null : { markdown, text: markdown.value };
}

describe("rows of dataset files", () => {
  let host: Host;
  before(async () => {
    ({ host } = await seesaw());
  });
  after(async () => {
    for (const key of ["codeLens", "decorations", "hover"]) await vscode.workspace.getConfiguration("seesaw.rows").update(key, undefined, vscode.ConfigurationTarget.Workspace);
    await vscode.commands.executeCommand("workbench.action.revertAndCloseActiveEditor");
  });

  it("puts lenses with the drift over probe rows that are in view", async () => {
    const editor = await vscode.window.showTextDocument(uriOf("math.probe.jsonl"));
    const start = performance.now();
    const lenses = await lensesOf(editor.document.uri);
    note("rowLensesMs", performance.now() - start);
    assert.ok(lenses.length >= 20, `${lenses.length} lenses`);
    assert.ok(titles(lenses).some((title) => /^drift −\d+\.\d nats at M3 · lost since M[23] · M0 ✗ {2}M1 ✓ {2}M2 [✓✗] {2}M3 ✗$/.test(title)), titles(lenses).slice(0, 3).join("\n"));
    const [first] = lenses;
    assert.equal(first?.command?.command, "seesaw.showDrift");
    assert.deepEqual(first.command.arguments, [{ file: `${folder()}/seesaw.yaml`, skill: "math", split: "id", row: first.range.start.line }]);
  });

  it("opens Token Drift on the prompt that was clicked", async () => {
    const lens = (await lensesOf(uriOf("math.probe.jsonl")))[7];
    assert.ok(lens?.command);
    await vscode.commands.executeCommand(lens.command.command, ...(lens.command.arguments as unknown[]));
    await waitFor("the prompt", () => host.drift.selection.row === lens.range.start.line && host.drift.selection.skill === "math");
  });

  it("marks the ends of probe lines with checks and the worst token", async () => {
    const editor = await vscode.window.showTextDocument(uriOf("math.probe.jsonl"));
    const marks = await waitFor("the marks", () => (host.rows.marks(editor).length > 0 ? host.rows.marks(editor) : null));
    const [first] = marks;
    assert.match(String(first?.renderOptions?.before?.contentText), /^M0 ✗ {2}M1 ✓ {2}M2 [✓✗] {2}M3 [✓✗]$/);
    assert.ok(marks.some(({ renderOptions }) => /^‘.+’ −\d+\.\d at M3$/.test(String(renderOptions?.after?.contentText))));
    assert.equal(first?.range.start.character, editor.document.lineAt(first?.range.start.line ?? 0).text.length);
  });

  it("hovers with the tokens of every checkpoint, and trusts its own command alone", async () => {
    const hover = await hoverAt(uriOf("math.probe.jsonl"), 2);
    assert.ok(hover);
    assert.match(hover.text, /compared with M1 · \[Show Token Drift\]\(command:seesaw\.showDrift\?/);
    assert.match(hover.text, /\| M3\u00a0+\u2060 \| [✓✗]\u00a0+\u2060 \| .*«/);
    assert.match(hover.text, /Greedy answers:/);
    assert.deepEqual(hover.markdown.isTrusted, { enabledCommands: ["seesaw.showDrift"] });
    assert.notEqual(hover.markdown.supportHtml, true);
  });

  it("says of rows of a train file which buffer they are in, or why not", async () => {
    const editor = await vscode.window.showTextDocument(uriOf("math.train.jsonl"));
    const lenses = await lensesOf(editor.document.uri);
    assert.ok(lenses.length > 10 && lenses.length < 1000, `only what is in view: ${lenses.length}`);
    const member = lenses.find(({ command }) => /^replay: after-math since math · drawn \d+×/.test(command?.title ?? ""));
    const other = lenses.find(({ command }) => /^not in the replay buffer/.test(command?.title ?? ""));
    assert.ok(member && other, titles(lenses).slice(0, 5).join("\n"));
    assert.match((await hoverAt(editor.document.uri, member.range.start.line))?.text ?? "", /In the replay buffer of replay\\\/seesaw\\\.yaml\.\n\n- buffer \*\*after\\-math\*\*: came in with the data of math/);
    assert.match((await hoverAt(editor.document.uri, other.range.start.line))?.text ?? "", /Not in a replay buffer/);
  });

  it("finds rows that moved, and says of an edited one that its scores are of another", async () => {
    const editor = await vscode.window.showTextDocument(uriOf("math.probe.jsonl"));
    const before = titles(await lensesOf(editor.document.uri)).slice(0, 3);
    await editor.edit((edit) => edit.insert(new vscode.Position(0, 0), "\n"));
    const moved = await lensesOf(editor.document.uri);
    assert.deepEqual(moved.slice(0, 3).map(({ range }) => range.start.line), [1, 2, 3]);
    assert.deepEqual(titles(moved).slice(0, 3), before);
    const place = editor.document.lineAt(1).text.indexOf("What");
    await editor.edit((edit) => edit.insert(new vscode.Position(1, place), "Say: "));
    assert.equal(titles(await lensesOf(editor.document.uri))[0], "no scores: edited or added since the probes were scored");
    await waitFor("the mark of the edited row to go", () => host.rows.marks(editor).length > 0 && !host.rows.marks(editor).some(({ range }) => range.start.line === 1));
    await vscode.commands.executeCommand("workbench.action.files.revert");
  });

  it("each setting turns its part off, and on again, without a reload", async () => {
    const editor = await vscode.window.showTextDocument(uriOf("math.probe.jsonl"));
    const set = async (key: string, value: boolean | undefined): Promise<void> => vscode.workspace.getConfiguration("seesaw.rows").update(key, value, vscode.ConfigurationTarget.Workspace);
    await set("codeLens", false);
    assert.deepEqual(await lensesOf(editor.document.uri), []);
    assert.ok(await hoverAt(editor.document.uri, 2));
    await set("hover", false);
    assert.equal(await hoverAt(editor.document.uri, 2), null);
    await waitFor("marks", () => host.rows.marks(editor).length > 0);
    await set("decorations", false);
    await waitFor("no marks", () => host.rows.marks(editor).length === 0);
    for (const key of ["codeLens", "decorations", "hover"]) await set(key, undefined);
    await waitFor("marks again", () => host.rows.marks(editor).length > 0);
    assert.ok((await lensesOf(editor.document.uri)).length > 0);
  });

  it("says nothing about files of no pipeline", async () => {
    const document = await vscode.workspace.openTextDocument({ language: "jsonl", content: '{"a": 1}\n' });
    assert.deepEqual(await lensesOf(document.uri), []);
  });
});
