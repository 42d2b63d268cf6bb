import assert from "node:assert/strict";
import * as vscode from "vscode";
import { seesaw } from "../support.ts";

describe("tools for agents in an untrusted workspace", () => {
  it("read what is recorded", async () => {
    await seesaw();
    const { content } = await vscode.lm.invokeTool("seesaw_listRuns", { input: {}, toolInvocationToken: undefined });
    assert.equal(content.length, 1);
  });

  it("start and install nothing", async () => {
    const { host } = await seesaw();
    const stage = host.model.views()[0]?.shown?.stages[0]?.id ?? "math";
    await assert.rejects(async () => vscode.lm.invokeTool("seesaw_runStage", { input: { stage }, toolInvocationToken: undefined }), /not trusted/);
    await assert.rejects(host.setup.plan("/tmp", { trusted: vscode.workspace.isTrusted, python: {} }), /before you trust this workspace/);
  });
});
