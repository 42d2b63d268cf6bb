import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import * as vscode from "vscode";
import type { DatasetSession } from "../../../../src/host/datasets/datasetSession.ts";
import type { DatasetLine, DatasetState, ToDatasetPage } from "../../../../src/protocol/datasets.ts";
import { note } from "../runSuite.ts";
import { folder, seesaw, waitFor } from "../support.ts";

const activeInput = (): unknown => vscode.window.tabGroups.activeTabGroup.activeTab?.input;
const activeEditor = (): string | null => {
  const input = activeInput();
  return input instanceof vscode.TabInputCustom ? input.viewType : null;
};

describe("datasets of any size", () => {
  after(() => vscode.commands.executeCommand("workbench.action.closeAllEditors"));

  it("an archive opens in the dataset editor, and closing the tab closes its session", async () => {
    const { host } = await seesaw();
    const path = join(folder(), "data", "copy.jsonl.gz");
    writeFileSync(path, gzipSync(readFileSync(join(folder(), "data/math.probe.jsonl"))));
    await vscode.commands.executeCommand("vscode.open", vscode.Uri.file(path));
    await waitFor("the dataset editor", () => activeEditor() === "seesaw.dataset");
    await waitFor("its session", () => host.datasets.open === 1);
    await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
    await waitFor("the end of the session", () => host.datasets.open === 0);
  });

  it("a .jsonl file stays in the text editor, until it is opened as a dataset", async () => {
    const uri = vscode.Uri.file(join(folder(), "data/math.train.jsonl"));
    await vscode.commands.executeCommand("vscode.open", uri);
    await waitFor("the text editor", () => activeInput() instanceof vscode.TabInputText);
    await vscode.commands.executeCommand("seesaw.openDataset");
    await waitFor("the dataset editor", () => activeEditor() === "seesaw.datasetLines");
    await vscode.commands.executeCommand("workbench.action.closeAllEditors");
    await vscode.commands.executeCommand("seesaw.openDataset", uri);
    await waitFor("the dataset editor, from a menu", () => activeEditor() === "seesaw.datasetLines");
  });

  it("shows the rows with the drift of the recorded runs", async () => {
    const { host } = await seesaw();
    const received: ToDatasetPage[] = [];
    const session: DatasetSession = await host.datasets.openSession(join(folder(), "data", "copy.jsonl.gz"), (message) => void received.push(message));
    const state = (): DatasetState | null => {
      const found = received.findLast(({ type }) => type === "state");
      return found?.type === "state" ? found.state : null;
    };
    const lines = (): DatasetLine[] => {
      const found = received.findLast(({ type }) => type === "block");
      return found?.type === "block" ? found.lines : [];
    };
    try {
      const start = performance.now();
      session.handle({ type: "ready" });
      await waitFor("the rows", () => state()?.complete);
      session.handle({ type: "want", version: state()!.version, blocks: [0] });
      await waitFor("the first rows", () => lines().length === 64);
      note("datasetFirstMs", performance.now() - start);
      await waitFor("their drift", () => lines().every(({ probe }) => probe !== null));
      assert.deepEqual(state()!.columns.map(({ label }) => label), ["M0", "M1", "M2", "M3"]);
      assert.ok(lines().some(({ probe }) => probe!.checks[1] === "passed" && probe!.checks[3] === "failed" && probe!.beyondNoise[3]));
    } finally {
      session.dispose();
    }
  });
});
