import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import type { Host } from "../../../../src/host/createHost.ts";
import { cleanTarget } from "../../../../src/host/targets/cleanTarget.ts";
import type { StageNode } from "../../../../src/host/stageNodes.ts";
import { answeringHost, closedHost } from "../../standInSsh.ts";
import { folder, seesaw, treeByPath, waitFor } from "../support.ts";

const file = (): string => join(folder(), "seesaw.yaml");
const rows = (host: Host): Map<string, StageNode> => new Map(host.targets.getChildren().map((node) => [node.label, node]));
/** What was asked of ssh; the stand-in keeps it. */
const calls = (): string[] => {
  const log = process.env["SEESAW_TEST_CALLS"] ?? "";
  return existsSync(log) ? readFileSync(log, "utf8").trim().split("\n") : [];
};

describe("targets: one that answers, and one at which nobody does", () => {
  it("nothing asks a target before the view is opened or somebody asks; a run that is there is followed", async () => {
    const { host } = await seesaw();
    assert.deepEqual([...rows(host)].map(([label, { description }]) => [label, description]), [
      ["local", "this machine · not checked yet"],
      ["near", `${answeringHost} · not checked yet`],
      ["far", `${closedHost} · not checked yet`],
    ]);
    assert.deepEqual(calls().filter((line) => line.includes(answeringHost)), [], "a target was asked without being asked to");
  });

  it("a run whose machine does not answer is unreachable and not lost, with what was known last", async () => {
    const { host } = await seesaw();
    const tool = await waitFor("the run", () => [...treeByPath(host)].find(([path]) => path.split("/").at(-1) === "tool")?.[1]);
    assert.match(tool.description, /far unreachable since \d\d:\d\d · last seen at step \d+ of \d+/);
    assert.deepEqual([tool.icon.name, tool.context], ["debug-disconnect", "stage.live"]);
    assert.match(tool.tooltip, new RegExp(`Target far: ${closedHost}, job 1, attempt 1\\nUnreachable since \\d\\d:\\d\\d: .*\\nThe run may well go on there; before, it was: running\\.\\nLast heard of at`));
    assert.match(host.follower.text ?? "", /\$\(debug-disconnect\) tool \d+\/\d+ · unreachable/);
  });

  it("a check tells why it failed and what a click does about it, and what the other one has", async () => {
    const { host } = await seesaw();
    await vscode.commands.executeCommand("seesaw.checkTarget");
    const far = rows(host).get("far");
    assert.equal(far?.description, `${closedHost} · cannot be reached`);
    assert.deepEqual([far.icon.name, far.expanded], ["debug-disconnect", true]);
    const [problem] = far.children;
    assert.match(problem?.label ?? "", /^closed-box refused the connection: no ssh server listens there at port 9\./);
    assert.deepEqual([problem?.opens, problem?.context], ["checkTarget", "problem.check"]);
    const near = rows(host).get("near");
    assert.match(near?.description ?? "", /^here-box · .*Python 3\.\d+\.\d+ · \d+/);
    assert.ok(near?.children.some(({ label }) => /^Python 3\./.test(label)) && near.children.some(({ label }) => label === "Disk"));
    assert.match(rows(host).get("local")?.description ?? "", /^this machine · .*Python 3\./);
  });

  it("the login is ssh in a terminal, its words as data, and when it is closed the target is asked again", async () => {
    const { host } = await seesaw();
    const before = calls().length;
    await vscode.commands.executeCommand("seesaw.logIn", { file: file(), on: "far" });
    const terminal = await waitFor("the terminal", () => vscode.window.terminals.find(({ name }) => name === `Log in to ${closedHost}`));
    const { shellPath, shellArgs } = terminal.creationOptions as vscode.TerminalOptions;
    assert.equal(shellPath, "ssh");
    assert.ok(Array.isArray(shellArgs) && shellArgs.slice(-2).join(" ") === `-- ${closedHost}`, JSON.stringify(shellArgs));
    assert.ok(!JSON.stringify(shellArgs).includes("BatchMode"), "there it may ask");
    const checked = (): number => {
      const state = host.targets.state(file(), "far");
      return state.kind === "checked" ? state.at : 0;
    };
    const at = checked();
    terminal.dispose();
    await waitFor("another check", () => checked() > at);
    assert.ok(calls().length > before);
  });

  it("a dry run is a page to read, and leaves nothing here or there", async () => {
    const { host } = await seesaw();
    const view = host.model.view(file());
    const stage = view?.pipeline?.stages[0];
    assert.ok(view?.pipeline && stage);
    const runs = (): string[] => readdirSync(join(folder(), ".seesaw", "runs")).sort();
    const before = runs();
    const on = { ...stage, on: "near" };
    await host.showDryRun({ view, pipeline: { ...view.pipeline, stages: view.pipeline.stages.map((one) => (one.id === stage.id ? on : one)) }, stage: on });
    const page = vscode.window.activeTextEditor?.document;
    assert.equal(page?.uri.scheme, "seesaw-text");
    const text = page.getText();
    assert.match(text, /^Dry run of math on near \(here-box\)\nNothing was started and nothing was copied\./);
    assert.match(text, /math\.train\.jsonl\n +→ \S*\/there\/objects\/[0-9a-f]{64}\/math\.train\.jsonl/);
    assert.match(text, /agent\.py run \S+ --detach/);
    assert.deepEqual(runs(), before);
    await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
  });

  it("cleaning up: the sum is asked about, and without a yes everything stays", async () => {
    const { host } = await seesaw();
    const target = host.model.view(file())?.shown?.targets.find(({ id }) => id === "near");
    assert.ok(target !== undefined && "dir" in target);
    const old = join(target.dir, "objects", "abc");
    mkdirSync(old, { recursive: true });
    writeFileSync(join(old, "data.jsonl"), "x".repeat(2048));
    const at = Date.now() / 1000 - 200_000;
    for (const path of [join(old, "data.jsonl"), old]) utimesSync(path, at, at);
    const asked: string[] = [];
    const answer = (yes: boolean) => (message: string, detail: string): Promise<boolean> => Promise.resolve(asked.push(`${message}\n${detail}`) > 0 && yes);
    await cleanTarget(host, { file: file(), on: "near" }, answer(false));
    assert.match(asked[0] ?? "", /^Remove 2\.0 kB in 1 shared folder from near\?\n• data abc, 2\.0 kB: no run there names it/);
    assert.ok(existsSync(old));
    await cleanTarget(host, { file: file(), on: "near" }, answer(true));
    assert.ok(!existsSync(old));
  });

  it("a new target is written into seesaw.yaml for the person to fill in, and can be undone", async () => {
    await seesaw();
    const done = vscode.commands.executeCommand("seesaw.addTarget", { file: file() });
    let ended = false;
    void done.then(() => (ended = true));
    await waitFor("the question to be answered", () => {
      if (!ended) void vscode.commands.executeCommand("workbench.action.acceptSelectedQuickOpenItem");
      return ended;
    });
    const editor = vscode.window.activeTextEditor;
    assert.equal(editor?.document.uri.fsPath, vscode.Uri.file(file()).fsPath);
    assert.equal(editor.document.getText(editor.selection), "your-gpu-box");
    assert.match(editor.document.getText(), /\n {2}box: \{ kind: ssh, host: your-gpu-box, python: ~\/envs\/trl\/bin\/python, dir: ~\/seesaw \}/);
    assert.equal(editor.document.isDirty, true);
    await vscode.commands.executeCommand("workbench.action.files.revert");
  });
});
