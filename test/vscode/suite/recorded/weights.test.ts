import assert from "node:assert/strict";
import * as vscode from "vscode";
import type { WeightsState } from "../../../../src/protocol/weightsPage.ts";
import { seesaw, waitFor } from "../support.ts";

describe("compare weights", () => {
  after(() => vscode.commands.executeCommand("workbench.action.closeAllEditors"));

  it("opens one tab, however often it is asked for", async () => {
    const tabs = (): vscode.Tab[] => vscode.window.tabGroups.all.flatMap((group) => group.tabs).filter(({ input }) => input instanceof vscode.TabInputWebview && input.viewType.endsWith("seesaw.weights"));
    await vscode.commands.executeCommand("seesaw.compareWeights");
    await waitFor("the tab", () => tabs().length === 1);
    assert.equal(tabs()[0]?.label, "Compare Weights");
    await vscode.commands.executeCommand("seesaw.compareWeights");
    assert.equal(tabs().length, 1);
    await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
    await waitFor("the end of the tab", () => tabs().length === 0);
  });

  it("shows every checkpoint and what it can do, and says in words when weights are gone", async () => {
    const { host } = await seesaw();
    let state = null as WeightsState | null;
    const session = await host.weights.openSession((message) => {
      state = message.state;
    });
    session.handle({ type: "ready" });
    // The recorded runs have scores, but no weights.
    const shown = await waitFor("an answer", () => (state !== null && state.busy === null ? state : null));
    assert.deepEqual([shown.places[0]?.label, shown.from, shown.empty?.kind, shown.empty?.action], ["M0", "M0", "error", "retry"]);
    assert.match(shown.empty?.detail ?? "", /does not exist|no \*\.safetensors/);
    assert.ok(shown.capabilities.length > 1 && shown.capabilities.every(({ values }) => values.length === shown.capabilities[0]?.values.length));
    session.close();
  });
});
