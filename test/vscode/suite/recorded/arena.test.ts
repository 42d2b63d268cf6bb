import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import * as vscode from "vscode";
import type { ArenaPageState } from "../../../../src/domain/arena/arenaPage.ts";
import { seesaw, waitFor } from "../support.ts";

describe("arena", () => {
  after(() => vscode.commands.executeCommand("workbench.action.closeAllEditors"));

  it("opens one tab, however often it is asked for", async () => {
    const tabs = (): vscode.Tab[] => vscode.window.tabGroups.all.flatMap((group) => group.tabs).filter(({ input }) => input instanceof vscode.TabInputWebview && input.viewType.endsWith("seesaw.arena"));
    await vscode.commands.executeCommand("seesaw.openArena");
    await waitFor("the tab", () => tabs().length === 1);
    assert.equal(tabs()[0]?.label, "Arena");
    await vscode.commands.executeCommand("seesaw.openArena");
    assert.equal(tabs().length, 1);
    await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
    await waitFor("the end of the tab", () => tabs().length === 0);
  });

  it("says what a pipeline lacks, reads the arena of another one, and writes nothing for it", async () => {
    const { host } = await seesaw();
    const [first] = host.model.views();
    assert.ok(first);
    let state = null as ArenaPageState | null;
    const session = await host.arena.openSession((message) => {
      state = message.state;
    }, first.uri.fsPath);
    session.handle({ type: "ready" });
    assert.equal((await waitFor("an answer", () => state))?.empty?.action, "openPipeline");

    const folder = join(dirname(first.uri.fsPath), "with-arena");
    const file = join(folder, "seesaw.yaml");
    mkdirSync(folder);
    try {
      // Its files are not there, and need not be to be looked at; those of the recorded runs stay with their own pipeline.
      const text = readFileSync(first.uri.fsPath, "utf8");
      writeFileSync(file, `${text}\narena:\n  seeds: [0, 1]\n  remedies: [{ kind: replay }, { kind: joint }]\n`);
      await waitFor("the other pipeline", () => host.model.view(file)?.shown?.arena != null);
      session.show(file);
      const shown = await waitFor("the arena", () => (state?.progress != null && !state.reading ? state : null));
      assert.deepEqual([shown.plan?.systems.map(({ id }) => id), shown.plan?.seeds, shown.progress?.done, shown.result, shown.mayRun, shown.empty], [["replay-10", "joint"], [0, 1], 0, null, true, null]);
      assert.ok((shown.progress?.stages ?? 0) >= 8, `${shown.progress?.stages} stages`);
      assert.equal(existsSync(join(folder, ".seesaw")), false);
    } finally {
      session.close();
      rmSync(folder, { recursive: true, force: true });
      await waitFor("the end of the other pipeline", () => host.model.view(file) === undefined);
    }
  });
});
