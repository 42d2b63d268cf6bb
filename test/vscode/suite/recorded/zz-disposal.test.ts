import assert from "node:assert/strict";
import { join } from "node:path";
import * as vscode from "vscode";
import { commandIds } from "../../../../src/ids.ts";
import { extension, seesaw } from "../support.ts";

describe("disposal (last)", () => {
  it("takes back commands, diagnostics, views and watchers", async () => {
    const { host } = await seesaw();
    let changes = 0;
    host.model.onDidChange(() => changes++);
    const main = require(join(extension().extensionPath, "dist/extension.cjs")) as { deactivate(): void };
    main.deactivate();
    main.deactivate();
    const left = (await vscode.commands.getCommands(true)).filter((id) => (commandIds as readonly string[]).includes(id));
    assert.deepEqual(left, []);
    await host.model.refresh();
    await new Promise((resolve) => setTimeout(resolve, 1500));
    assert.equal(changes, 0, "the model still reads after it was disposed");
  });
});
