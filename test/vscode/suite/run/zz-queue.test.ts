import assert from "node:assert/strict";
import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { folder, seesaw, treeByPath, waitFor } from "../support.ts";

/** Two real stages, the second asked for while the first one runs. */
describe("one run at a time (last)", function () {
  this.timeout(300_000);
  const file = (): string => join(folder(), "seesaw.yaml");
  const item = (stage: string) => ({ file: file(), stage });

  it("counts the rows of the training data for an estimate", async () => {
    const { host } = await seesaw();
    const data = join(folder(), "data", "math.train.jsonl");
    const lines = readFileSync(data, "utf8").split("\n").filter((line) => line !== "").length;
    assert.ok(lines > 100);
    assert.equal(await host.countRows(data, AbortSignal.timeout(20_000)), lines);
    await assert.rejects(host.countRows(join(folder(), "data", "none.jsonl"), AbortSignal.timeout(20_000)));
  });

  it("the second waits in the tree and the status bar, can be taken out, and starts when the first is done", async () => {
    const { host } = await seesaw();
    appendFileSync(file(), "  - { id: more, recipe: sft, data: data/math.train.jsonl, args: { max_steps: 2, learning_rate: 1.0e-4, per_device_train_batch_size: 8, logging_steps: 1 } }\n");
    const view = () => host.model.view(file())!;
    await waitFor("the new stage", () => view().pipeline?.stages.length === 2);
    await host.queue.launch(item("math"), async () => host.launcher.startStage(view().pipeline!, view().diagnostics, "math", await host.startOptions(view())));
    await host.model.refresh();
    const [first] = await waitFor("the live run", () => (host.queue.live().length === 1 ? host.queue.live() : null));
    await host.queue.add(item("more"), host.queue.live());
    const more = () => treeByPath(host).get("more")!;
    assert.deepEqual([more().description, more().context], ["queued · position 1", "stage.queued"]);
    await waitFor("the queue in the status bar", () => host.follower.text?.includes("1 queued"));
    assert.match(host.follower.text ?? "", /^\$\(sync~spin\) math/);
    await vscode.commands.executeCommand("seesaw.cancelQueued", item("more"));
    assert.equal(more().description, "not run yet");
    await host.queue.add(item("more"), host.queue.live());
    await waitFor("the second run", () => view().chain?.newest["more"], 200_000);
    const before = view().listing.runs.find(({ id }) => id === first!.id)!;
    assert.equal(before.state.status, "done", "it must not begin before the first is done");
    assert.equal(view().chain!.newest["more"]!.spec.start.run, first!.id, "it starts from what the first left");
    await waitFor("its end", () => view().chain?.newest["more"]?.state.status === "done", 200_000);
    assert.equal(host.follower.text, null);
    assert.deepEqual(host.queue.waiting, []);
  });

  it("a run that is stopped pauses the queue, which says so and goes on when it is told to", async () => {
    const { host } = await seesaw();
    const view = () => host.model.view(file())!;
    // Thousands of steps: the request to stop always arrives before the end.
    appendFileSync(file(), "  - { id: long, recipe: sft, data: data/math.train.jsonl, probe_every: 5000, eval_every: 5000, save_every: 5000, args: { max_steps: 5000, learning_rate: 1.0e-4, per_device_train_batch_size: 8, logging_steps: 1 } }\n");
    await waitFor("the long stage", () => view().pipeline?.stages.length === 3);
    const started = await host.queue.launch(item("long"), async () => host.launcher.startStage(view().pipeline!, view().diagnostics, "long", await host.startOptions(view())));
    const run = () => view().listing.runs.find(({ id }) => id === started!.id);
    await waitFor("its first step", () => run()?.state.status === "running" && run()!.state.step > 0, 120_000);
    await host.queue.add(item("more"), host.queue.live());
    const kept = JSON.parse(readFileSync(join(folder(), ".seesaw", "queue.json"), "utf8")) as { waiting: { stage: string }[] };
    assert.deepEqual(kept.waiting.map(({ stage }) => stage), ["more"], "the queue is in its file");
    await host.launcher.stopRun(folder(), started!.id, await host.startOptions(view()));
    await waitFor("the pause", () => host.queue.paused, 120_000);
    assert.equal(run()?.state.status, "cancelled");
    assert.match(host.queue.paused ?? "", /long was stopped/);
    const more = treeByPath(host).get("more")!;
    assert.equal(more.context, "stage.paused");
    assert.match(more.tooltip, /long was stopped/);
    const before = view().chain!.newest["more"]!.id;
    await vscode.commands.executeCommand("seesaw.continueQueue");
    await waitFor("the queued stage", () => view().chain?.newest["more"]?.id !== before && view().chain?.newest["more"]?.state.status === "done", 120_000);
    assert.deepEqual([host.queue.waiting, host.queue.paused], [[], null]);
  });
});
