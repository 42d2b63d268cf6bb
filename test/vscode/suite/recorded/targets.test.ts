import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { folder, seesaw, waitFor } from "../support.ts";

describe("the target of Run Stage", () => {
  const file = (): string => join(folder(), "seesaw.yaml");
  let before: string;
  after(() => writeFileSync(file(), before));

  it("is asked for where the file names several; without an answer nothing starts", async () => {
    const { host } = await seesaw();
    before = readFileSync(file(), "utf8");
    writeFileSync(file(), `${before}\ntargets: { other: { kind: local, python: bin/other-python } }\n`);
    await waitFor("the targets", () => host.model.view(file())?.pipeline?.targets.length === 2);
    const runs = host.model.view(file())?.listing.runs.length;
    let ended = false;
    const running = Promise.resolve(vscode.commands.executeCommand("seesaw.runStage", { file: file(), stage: "math" })).then(() => (ended = true));
    await new Promise((resolve) => setTimeout(resolve, 1500));
    assert.ok(!ended, "something was asked");
    // A list ends by this; the question before a start, which would be next, does not.
    await vscode.commands.executeCommand("workbench.action.closeQuickOpen");
    await running;
    assert.equal(host.model.view(file())?.listing.runs.length, runs);
  });
});
