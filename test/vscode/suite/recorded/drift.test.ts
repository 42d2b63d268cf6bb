import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import * as vscode from "vscode";
import { note } from "../runSuite.ts";
import { FakePage, folder, seesaw, waitFor } from "../support.ts";

describe("Token Drift over typed messages", () => {
  let page: FakePage;
  before(async () => {
    page = new FakePage((await seesaw()).host);
  });
  after(() => page.close());

  it("answers ready with a snapshot and then the data", async () => {
    const start = performance.now();
    const state = await page.ready();
    note("driftFirstMs", performance.now() - start);
    assert.equal(page.received[0]?.type, "snapshot");
    assert.equal(state.empty, null);
    assert.equal(state.selection.skill, "math");
    assert.equal(state.selection.split, "id");
    assert.equal(state.selection.reference, "M1");
    assert.deepEqual(state.checkpoints.map(({ label, state: scored }) => [label, scored]), [["M0", "scored"], ["M1", "scored"], ["M2", "scored"], ["M3", "scored"]]);
    assert.deepEqual(state.notes, []);
  });

  it("lists the prompts by drift, with a mark per checkpoint", () => {
    const { prompts } = page.state!;
    assert.equal(prompts.length, 64);
    const worst = prompts.map(({ worst }) => Number(worst));
    assert.deepEqual(worst, [...worst].sort((a, b) => a - b), "most drifted first");
    assert.ok(worst[0]! < -5);
    assert.equal(prompts[0]?.checks.length, 4);
    assert.deepEqual(prompts[0]?.changes.slice(0, 2), [null, null], "nothing is compared up to the reference");
    assert.ok(prompts.some(({ checks }) => checks[1] === "passed" && checks[3] === "failed"));
  });

  it("gives the film of a prompt: tokens, classes, ranks from 1, alternatives", () => {
    const film = page.state!.film!;
    assert.equal(film.row, page.state!.prompts[0]?.row);
    assert.equal(film.rows.length, 4);
    const last = film.rows[3]?.cells ?? [];
    assert.equal(last.length, film.tokens.length);
    assert.equal(film.tokens.at(-1)?.display, "⏎");
    assert.ok(last.some(({ tokenClass, coloured }) => tokenClass === "lost" && coloured));
    assert.ok(last.every(({ rank }) => rank >= 1));
    assert.ok(last.every(({ top }) => top.length > 0 && top[0]!.probability <= 1));
    assert.ok(film.rows[1]?.cells?.every(({ change, coloured }) => change === null && !coloured), "the reference is not coloured");
    assert.notEqual(film.rows[3]?.diverges, null);
  });

  it("reads another prompt without reading the list again", async () => {
    const before = page.state!.prompts;
    const count = page.received.length;
    const row = before[5]!.row;
    const start = performance.now();
    const state = await page.select({ row });
    note("driftFilmMs", performance.now() - start);
    assert.equal(state.film?.row, row);
    assert.equal(state.selection.row, row);
    const patches = page.received.slice(count);
    assert.ok(patches.every((message) => message.type === "patch" && !("prompts" in message.patch)), "the prompts were sent again");
  });

  it("compares with the start of each stage, with the base, and on the other probe set", async () => {
    const starts = await page.select({ reference: "start", row: null });
    assert.ok(starts.prompts.every(({ changes }) => changes[0] === null && changes[1] !== null));
    const base = await page.select({ reference: "M0", row: null });
    assert.ok(base.prompts.every(({ changes }) => Number(changes[1]) > 0), "learning makes the reference likelier");
    const ood = await page.select({ split: "ood", row: null });
    assert.equal(ood.selection.split, "ood");
    assert.ok(ood.prompts.length >= 64);
  });

  it("asks for a snapshot after a gap", async () => {
    page.send({ type: "resync" });
    assert.equal(page.received.at(-1)?.type, "snapshot");
  });

  it("opens the row of the probe file", async () => {
    await page.select({ split: "id", row: null });
    const prompt = page.state!.prompts[3]!;
    page.send({ type: "openRow", row: prompt.row });
    const editor = await waitFor("the editor", () => vscode.window.activeTextEditor);
    await waitFor("the line", () => editor.selection.active.line === prompt.line - 1);
    assert.ok(editor.document.fileName.endsWith("math.probe.jsonl"));
    assert.ok(readFileSync(editor.document.fileName, "utf8").split("\n")[prompt.line - 1]!.includes(JSON.stringify(prompt.prompt).slice(1, -1)));
  });

  it("says in a sentence when a skill has no scores", async () => {
    const state = await page.select({ pipeline: `${folder()}/slope/seesaw.yaml`, skill: null, split: null, reference: null, row: null });
    assert.equal(state.empty?.kind, "none");
    assert.equal(state.empty?.title, "Nothing has been scored yet");
    assert.deepEqual(state.empty?.actions.map(({ action }) => action), ["runStage"]);
    await page.select({ pipeline: `${folder()}/seesaw.yaml` });
  });

  it("shows a flag's skill when it is chosen from the tree", async () => {
    await vscode.commands.executeCommand("seesaw.showDrift", { file: `${folder()}/seesaw.yaml`, skill: "search", split: "ood" });
  });
});
