import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunStatus } from "../../../src/domain/run/runState.ts";
import { RunQueue, queuePosition } from "../../../src/host/runQueue.ts";
import { statusBarText } from "../../../src/host/runWords.ts";
import { stageNodes } from "../../../src/host/stageNodes.ts";
import type { RunRecord } from "../../../src/storage/runs/runStore.ts";
import { finishedRun } from "./finishedRuns.ts";
import { file, makeView } from "./views.ts";

/** A workspace whose runs only change when the test says so. */
class Workshop {
  runs: RunRecord[] = [];
  readonly started: string[] = [];
  failure: Error | null = null;
  readonly queue = new RunQueue({
    runs: () => this.runs,
    start: async ({ stage }) => {
      await Promise.resolve();
      if (this.failure !== null) throw this.failure;
      this.started.push(stage);
      return this.put(stage, "running");
    },
    changed: () => {},
  });

  put(stage: string, status: RunStatus): string {
    const run = finishedRun(stage, null, {}, { status, reason: null });
    this.runs = [...this.runs.filter((one) => one.stage !== stage), run];
    return run.dir;
  }

  async end(stage: string, status: RunStatus): Promise<void> {
    this.put(stage, status);
    this.queue.update();
    await this.settle();
  }

  settle(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }
}

const item = (stage: string) => ({ file, stage });

test("a queued stage starts when the live one is done, then the next", async () => {
  const shop = new Workshop();
  shop.put("math", "running");
  assert.equal(shop.queue.add(item("search"), shop.queue.live()), 1);
  assert.equal(shop.queue.add(item("tool"), shop.queue.live()), 2);
  assert.equal(shop.queue.add(item("search")), 1, "it keeps its place");
  await shop.settle();
  assert.deepEqual(shop.started, []);
  await shop.end("math", "done");
  assert.deepEqual(shop.started, ["search"]);
  assert.deepEqual(shop.queue.waiting, [item("tool")]);
  await shop.end("search", "done");
  assert.deepEqual(shop.started, ["search", "tool"]);
  assert.deepEqual(shop.queue.waiting, []);
});

test("a run that fails or is stopped pauses the queue with a sentence, and a person lets it go on", async () => {
  for (const [status, words] of [["failed", /math ended as failed/], ["cancelled", /math was stopped/]] as const) {
    const shop = new Workshop();
    const dir = shop.put("math", "running");
    shop.queue.add(item("search"), shop.queue.live());
    await shop.end("math", status);
    assert.deepEqual(shop.started, [], status);
    assert.match(shop.queue.paused ?? "", words);
    assert.equal(shop.queue.isPausedBy(dir), true);
    shop.queue.update();
    await shop.settle();
    assert.deepEqual(shop.started, [], "looking again must not start it");
    shop.queue.resume();
    await shop.settle();
    assert.deepEqual(shop.started, ["search"]);
    assert.equal(shop.queue.paused, null);
  }
});

test("a run that ended while the person was asked counts; a run folder that is gone pauses", async () => {
  const shop = new Workshop();
  shop.put("math", "running");
  const seen = shop.queue.live();
  await shop.end("math", "failed");
  shop.queue.add(item("search"), seen);
  await shop.settle();
  assert.match(shop.queue.paused ?? "", /math ended as failed/);

  const gone = new Workshop();
  gone.put("math", "running");
  gone.queue.add(item("search"), gone.queue.live());
  gone.runs = [];
  gone.queue.update();
  await gone.settle();
  assert.match(gone.queue.paused ?? "", /run folder of math is gone/);
});

test("a start by hand lifts the pause, and its end moves the queue on", async () => {
  const shop = new Workshop();
  shop.put("math", "running");
  shop.queue.add(item("search"), shop.queue.live());
  await shop.end("math", "failed");
  await shop.queue.launch(item("math"), () => Promise.resolve(shop.put("math", "running")));
  assert.equal(shop.queue.paused, null);
  await shop.settle();
  assert.deepEqual(shop.started, [], "it waits for the new run");
  await shop.end("math", "done");
  assert.deepEqual(shop.started, ["search"]);
});

test("nothing is started while another start is under way; a start that fails keeps its place and pauses", async () => {
  const shop = new Workshop();
  let finish = (): void => {};
  const slow = shop.queue.launch(item("math"), () => new Promise<void>((resolve) => (finish = resolve)));
  assert.deepEqual(shop.queue.starting, item("math"));
  shop.queue.add(item("search"));
  await shop.settle();
  assert.deepEqual(shop.started, []);
  shop.failure = new Error("There is no Python.");
  finish();
  await slow;
  await shop.settle();
  assert.deepEqual(shop.queue.waiting, [item("search")]);
  assert.match(shop.queue.paused ?? "", /search could not be started: There is no Python\./);
  shop.queue.remove(file, "search");
  assert.equal(shop.queue.paused, null);
});

test("runs elsewhere do not stand in the way", () => {
  const shop = new Workshop();
  shop.put("math", "running");
  shop.runs[0]!.spec.target.kind = "ssh";
  assert.deepEqual(shop.queue.live(), []);
});

test("the tree shows the place in the queue, the pause, and that the queue is this window's", () => {
  const waiting = [item("math"), item("search")];
  const [, search] = stageNodes([makeView()], { waiting, paused: null });
  assert.deepEqual([search?.description, search?.context, search?.icon.name], ["queued · position 2", "stage.queued", "watch"]);
  assert.match(search!.tooltip, /the present run and 1 queued stage before it are done\.\n.*kept by this window/);
  const [paused] = stageNodes([makeView()], { waiting, paused: "The queue is paused: math failed." });
  assert.deepEqual([paused?.description, paused?.context], ["queued · position 1 · paused", "stage.paused"]);
  assert.match(paused!.tooltip, /math failed/);
  assert.equal(queuePosition({ waiting, paused: null }, "/other/seesaw.yaml", "math"), null);
});

test("the status bar has the run in a few words", () => {
  const state = finishedRun("tool", null, {}, { status: "running", phase: "train", step: 45, total: 120, etaSeconds: 12 }).state;
  assert.equal(statusBarText("tool", state), "tool 45/120 · ETA 12 s");
  assert.equal(statusBarText("tool", { ...state, phase: "probe", etaSeconds: null }), "tool 45/120 · scoring probes");
  assert.equal(statusBarText("tool", { ...state, status: "stopping" }), "tool 45/120 · stopping");
  assert.equal(statusBarText("tool", { ...state, phase: null, total: 0, etaSeconds: null }), "tool · starting");
});
