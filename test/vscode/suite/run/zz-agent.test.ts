import assert from "node:assert/strict";
import * as vscode from "vscode";
import { RunStageTool } from "../../../../src/host/agents/runStageTool.ts";
import { folder, seesaw, waitFor } from "../support.ts";

/** The tool itself, not through the editor: the editor's question would wait for a person. */
describe("an agent that runs a stage", function () {
  this.timeout(240_000);
  const input = { stage: "math" };
  const invocation = { input, toolInvocationToken: undefined };
  const textOf = ({ content }: vscode.LanguageModelToolResult): string => content.map((part) => (part instanceof vscode.LanguageModelTextPart ? part.value : "")).join("");

  it("starts nothing that nobody confirmed, and names a stage that is not there", async () => {
    const { host } = await seesaw();
    const tool = new RunStageTool(() => host);
    const before = host.model.views()[0]!.listing.runs.length;
    await assert.rejects(tool.invoke(invocation), /nobody has confirmed it/);
    await assert.rejects(tool.prepareInvocation({ input: { stage: "maths" } }), /no stage "maths".*Did you mean "math"/);
    await host.model.refresh();
    assert.equal(host.model.views()[0]!.listing.runs.length, before);
  });

  it("always asks, with the exact command, the target and the steps", async () => {
    const { host } = await seesaw();
    const { confirmationMessages } = await new RunStageTool(() => host).prepareInvocation({ input });
    assert.ok(confirmationMessages !== undefined);
    assert.equal(confirmationMessages.title, "Run stage math?");
    const { message } = confirmationMessages;
    assert.ok(message instanceof vscode.MarkdownString);
    assert.equal(message.isTrusted, undefined);
    // appendText writes blanks as entities.
    assert.match(message.value.replaceAll("&nbsp;", " "), /Target: (local|here)\./);
    assert.match(message.value, /4 steps of sft/);
    assert.match(message.value, /python\S* -m seesaw_runner\.recipes\.sft \.seesaw\/runs\/math-<time>/);
  });

  it("starts nothing when the pipeline changed after it was confirmed", async () => {
    const { host } = await seesaw();
    const tool = new RunStageTool(() => host);
    await tool.prepareInvocation({ input });
    const uri = vscode.Uri.joinPath(vscode.Uri.file(folder()), "seesaw.yaml");
    const text = Buffer.from(await vscode.workspace.fs.readFile(uri)).toString("utf8");
    try {
      await vscode.workspace.fs.writeFile(uri, Buffer.from(text.replace(/max_steps: 4/, "max_steps: 5")));
      await waitFor("the change", () => host.model.views()[0]?.pipeline?.stages[0]?.args["max_steps"] === 5);
      await assert.rejects(tool.invoke(invocation), /has changed since it was confirmed/);
    } finally {
      await vscode.workspace.fs.writeFile(uri, Buffer.from(text));
      await waitFor("the change back", () => host.model.views()[0]?.pipeline?.stages[0]?.args["max_steps"] === 4);
    }
  });

  it("starts what was confirmed, once", async () => {
    const { host } = await seesaw();
    const tool = new RunStageTool(() => host);
    await tool.prepareInvocation({ input });
    const text = textOf(await tool.invoke(invocation));
    const id = /started as run (math-\S+?)\./.exec(text)?.[1];
    assert.ok(id !== undefined, text);
    await assert.rejects(tool.invoke(invocation), /nobody has confirmed it/);
    await waitFor("the end of the run", () => host.model.views()[0]?.listing.runs.find((run) => run.id === id)?.state.status === "done", 180_000);
  });
});
