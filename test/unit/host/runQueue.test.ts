import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import type { RunStatus } from "../../../src/domain/run/runState.ts";
import { RunQueue, queuePosition } from "../../../src/host/runQueue.ts";
import { statusBarText } from "../../../src/host/runWords.ts";
import { stageNodes } from "../../../src/host/stageNodes.ts";
import type { RunRecord } from "../../../src/storage/runs/runStore.ts";
import { QueueStore, queuePath } from "../../../src/targets/queueStore.ts";
import { AppError } from "../../../src/util/errors.ts";
import { finishedRun } from "./finishedRuns.ts";
import { file as shownFile, makeView } from "./views.ts";

let root = "";
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "seesaw-queue-"));
});
afterEach(() => rmSync(root, { recursive: true }));

/** A window on a workspace whose runs only change when the test says so. Its queue file is real. */
class Workshop {
  runs: RunRecord[] = [];
  readonly started: string[] = [];
  readonly said: string[] = [];
  failure: Error | null = null;
  trusted = true;
  private serial = 0;
  readonly queue = new RunQueue({
    store: new QueueStore(),
    files: () => [join(root, "seesaw.yaml")],
    runs: () => this.runs,
    refresh: () => Promise.resolve(),
    mayStart: () => this.trusted,
    say: (sentence) => void this.said.push(sentence),
    start: async ({ stage, resume }) => {
      await Promise.resolve();
      if (this.failure !== null) throw this.failure;
      this.started.push(resume ?? stage);
      return this.put(stage, "running");
    },
    changed: () => {},
  });

  put(stage: string, status: RunStatus): string {
    const live = this.runs.find((one) => one.stage === stage && ["running", "stopping"].includes(one.state.status));
    const id = live?.id ?? `${stage}-20260101T000000-${String(this.serial++).padStart(4, "0")}`;
    const run = finishedRun(stage, null, {}, { status, reason: status === "paused" ? { kind: "paused", flag: "math.id", step: 20 } : null }, id);
    this.runs = [...this.runs.filter((one) => one.id !== id), { ...run, dir: join(root, ".seesaw", "runs", id), spec: { ...run.spec, created: Date.now() / 1000 } }];
    return join(root, ".seesaw", "runs", id);
  }

  async end(stage: string, status: RunStatus): Promise<void> {
    this.put(stage, status);
    await this.settle();
  }

  /** Until the queue has done what it will do. */
  async settle(): Promise<void> {
    for (let calm = 0; calm < 2; calm = this.queue.starting === null ? calm + 1 : 0) {
      await this.queue.update();
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }
}

const item = (stage: string) => ({ file: join(root, "seesaw.yaml"), stage });
const onDisk = () => JSON.parse(readFileSync(queuePath(root), "utf8")) as { waiting: { stage: string }[]; starting: unknown; paused: unknown };
const writeQueue = (text: string): void => {
  mkdirSync(join(root, ".seesaw"), { recursive: true });
  writeFileSync(queuePath(root), text);
};

test("a queued stage starts when the live one is done, then the next", async () => {
  const shop = new Workshop();
  shop.put("math", "running");
  assert.equal(await shop.queue.add(item("search"), shop.queue.live()), 1);
  assert.equal(await shop.queue.add(item("tool"), shop.queue.live()), 2);
  assert.equal(await shop.queue.add(item("search")), 1, "it keeps its place");
  await shop.settle();
  assert.deepEqual(shop.started, []);
  await shop.end("math", "done");
  assert.deepEqual(shop.started, ["search"]);
  assert.deepEqual(shop.queue.waiting, [item("tool")]);
  await shop.end("search", "done");
  assert.deepEqual(shop.started, ["search", "tool"]);
  assert.deepEqual(shop.queue.waiting, []);
});

test("a run on another machine stands in nobody's way, but what needs its checkpoint waits for it", async () => {
  const shop = new Workshop();
  shop.put("math", "running");
  shop.runs = shop.runs.map((run) => ({ ...run, spec: { ...run.spec, target: { id: "box", kind: "ssh", python: "python3" } } }));
  const [far] = shop.runs as [RunRecord];
  assert.deepEqual(shop.queue.live(), []);
  assert.equal(shop.queue.busy, false);
  await shop.queue.add(item("search"), [far]);
  await shop.settle();
  assert.deepEqual([shop.started, shop.queue.paused], [[], null]);
  shop.runs = [{ ...far, state: { ...far.state, status: "unreachable" } }];
  await shop.settle();
  assert.deepEqual([shop.started, shop.queue.paused], [[], null], "out of reach is not over");
  shop.runs = [{ ...far, state: { ...far.state, status: "done" } }];
  await shop.settle();
  assert.deepEqual(shop.started, ["search"]);
});

test("a run that fails or is stopped pauses the queue with a sentence, and a person lets it go on", async () => {
  for (const [status, words] of [["failed", /math ended as failed/], ["cancelled", /math was stopped/], ["paused", /math is paused at step 20 by a flag, and Resume goes on with it/]] as const) {
    const shop = new Workshop();
    const dir = shop.put("math", "running");
    await shop.queue.add(item("search"), shop.queue.live());
    await shop.end("math", status);
    assert.deepEqual(shop.started, [], status);
    assert.match(shop.queue.paused ?? "", words);
    assert.equal(shop.queue.isPausedBy(dir), true);
    await shop.settle();
    assert.deepEqual(shop.started, [], "looking again must not start it");
    await shop.queue.resume();
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
  await shop.queue.add(item("search"), seen);
  await shop.settle();
  assert.match(shop.queue.paused ?? "", /math ended as failed/);

  await shop.queue.clear();

  const gone = new Workshop();
  gone.put("math", "running");
  await gone.queue.add(item("search"), gone.queue.live());
  gone.runs = [];
  await gone.settle();
  assert.match(gone.queue.paused ?? "", /run folder of math is gone/);
});

test("a start by hand lifts the pause, and its end moves the queue on", async () => {
  const shop = new Workshop();
  shop.put("math", "running");
  await shop.queue.add(item("search"), shop.queue.live());
  await shop.end("math", "failed");
  await shop.queue.launch(item("math"), async () => ({ dir: shop.put("math", "running") }));
  assert.equal(shop.queue.paused, null);
  await shop.settle();
  assert.deepEqual(shop.started, [], "it waits for the new run");
  await shop.end("math", "done");
  assert.deepEqual(shop.started, ["search"]);
});

test("nothing is started while another start is under way; a start that fails keeps its place and pauses", async () => {
  const shop = new Workshop();
  let finish = (): void => {};
  const done = new Promise<void>((resolve) => (finish = resolve));
  const slow = shop.queue.launch(item("math"), async () => {
    await done;
    return { dir: shop.put("math", "done") };
  });
  assert.deepEqual(shop.queue.starting, item("math"));
  await shop.queue.add(item("search"));
  for (let looks = 0; looks < 3; looks++) await shop.queue.update();
  assert.deepEqual(shop.started, []);
  shop.failure = new Error("There is no Python.");
  finish();
  await slow;
  await shop.settle();
  assert.deepEqual(shop.queue.waiting, [item("search")]);
  assert.match(shop.queue.paused ?? "", /search could not be started: There is no Python\./);
  await shop.queue.remove(item("search").file, "search");
  assert.equal(shop.queue.paused, null);
});

test("after the window was reloaded the queue is there and goes on; a run that failed meanwhile pauses it", async () => {
  for (const [status, started] of [["done", ["search"]], ["failed", []]] as const) {
    const before = new Workshop();
    before.put("math", "running");
    await before.queue.add(item("search"), before.queue.live());
    before.queue.dispose();
    const after = new Workshop();
    after.runs = before.runs;
    await after.settle();
    assert.deepEqual(after.queue.waiting, [item("search")]);
    await after.end("math", status);
    assert.deepEqual(after.started, started, status);
    assert.equal(after.queue.paused === null, status === "done");
    await after.queue.clear();
    assert.deepEqual(onDisk().waiting, []);
    if (started.length > 0) await after.end("search", "done");
  }
});

test("a window that closed, and one that is not trusted, start nothing", async () => {
  const closed = new Workshop();
  closed.put("math", "running");
  await closed.queue.add(item("search"), closed.queue.live());
  closed.queue.dispose();
  await closed.end("math", "done");
  assert.deepEqual(closed.started, []);
  const untrusted = new Workshop();
  untrusted.runs = closed.runs;
  untrusted.trusted = false;
  await untrusted.settle();
  assert.deepEqual([untrusted.queue.waiting, untrusted.started], [[item("search")], []]);
  untrusted.trusted = true;
  await untrusted.settle();
  assert.deepEqual(untrusted.started, ["search"]);
});

test("a run to go on with waits as such", async () => {
  const shop = new Workshop();
  shop.put("math", "running");
  await shop.queue.add({ ...item("search"), resume: "search-old" }, shop.queue.live());
  await shop.end("math", "done");
  assert.deepEqual(shop.started, ["search-old"]);
});

test("a file that is damaged is set aside and said; one of a newer version is left alone", async () => {
  for (const text of ["{ half wri", "[]", '{"v":1,"where":"x","waiting":[{}],"behind":[],"paused":null,"starting":null}', '{"where":"x"}']) {
    writeQueue(text);
    const shop = new Workshop();
    await shop.settle();
    assert.equal(shop.said.length, 1, text);
    assert.match(shop.said[0]!, /could not be read: .*\. It is empty now; the file is kept as \.seesaw\/queue\.damaged-\S+\.json\./);
    const [aside] = readdirSync(join(root, ".seesaw")).filter((name) => name.startsWith("queue.damaged-"));
    assert.equal(readFileSync(join(root, ".seesaw", aside!), "utf8"), text);
    rmSync(join(root, ".seesaw", aside!));
    shop.put("math", "running");
    assert.equal(await shop.queue.add(item("search"), shop.queue.live()), 1);
    assert.deepEqual(onDisk().waiting.map(({ stage }) => stage), ["search"]);
  }
  const text = '{"v":2,"waiting":"something new"}';
  writeQueue(text);
  const shop = new Workshop();
  await shop.settle();
  await shop.settle();
  assert.deepEqual(shop.said.map((sentence) => /written by a newer Seesaw \(version 2/.test(sentence)), [true], "said once");
  await assert.rejects(shop.queue.add(item("search")), (error) => AppError.is(error, "newer-schema"));
  assert.equal(readFileSync(queuePath(root), "utf8"), text);
});

test("what was asked for on another machine is shown, and starts when a person says so", async () => {
  writeQueue(JSON.stringify({ v: 1, where: "elsewhere boot", waiting: [{ stage: "search", t: 1 }], behind: [], paused: null, starting: null }));
  const shop = new Workshop();
  await shop.settle();
  assert.deepEqual([shop.queue.waiting, shop.started], [[item("search")], []]);
  assert.match(shop.queue.paused ?? "", /made on another machine/);
  await shop.queue.add(item("tool"));
  await shop.settle();
  assert.deepEqual(shop.started, [], "asking for another stage is no word about this one");
  assert.match(shop.queue.paused ?? "", /asked for on another machine/);
  await shop.queue.resume();
  await shop.settle();
  assert.deepEqual(shop.started, ["search"]);
});

/** A window in a process of its own: says what it does in lines. `mode`: what it does once its stage is being started. */
function otherWindow(mode: "hang" | "finish"): { line(pattern: RegExp): Promise<string>; kill(): Promise<void> } {
  const source = (path: string): string => JSON.stringify(join(import.meta.dirname, "../../../src", path));
  const child = spawn(process.execPath, ["--input-type=module", "-e", `
    const { RunQueue } = await import(${source("host/runQueue.ts")});
    const { QueueStore } = await import(${source("targets/queueStore.ts")});
    const queue = new RunQueue({
      store: new QueueStore(), files: () => [${JSON.stringify(join(root, "seesaw.yaml"))}], runs: () => [], refresh: async () => {}, mayStart: () => true,
      say: (sentence) => console.log("say " + sentence), changed: () => {},
      start: async ({ stage }) => {
        console.log("start " + stage);
        ${mode === "hang" ? "await new Promise(() => {});" : "await new Promise((wake) => setTimeout(wake, 300));"}
        throw new Error("the test needs no run");
      },
    });
    queue.follow();
    setInterval(() => {}, 1000);
    console.log("ready");
    await queue.update();`], { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  return {
    async line(pattern) {
      for (let tries = 0; tries < 400; tries++) {
        const found = pattern.exec(text);
        if (found !== null) return found[0];
        await new Promise((wake) => setTimeout(wake, 25));
      }
      throw new Error(`no ${String(pattern)} in: ${text}`);
    },
    kill: () => new Promise((resolve) => {
      child.once("exit", () => resolve());
      child.kill("SIGKILL");
    }),
  };
}

test("of two windows one starts the stage; while it does, the other shows it and starts nothing", async () => {
  writeQueue(JSON.stringify({ v: 1, where: new QueueStore().here, waiting: [{ stage: "search", t: 1 }, { stage: "tool", t: 2 }], behind: [], paused: null, starting: null }));
  const other = otherWindow("hang");
  try {
    await other.line(/start search/);
    const shop = new Workshop();
    await shop.queue.update();
    await shop.queue.update();
    assert.deepEqual([shop.queue.starting, shop.queue.busy, shop.started], [item("search"), true, []]);
    assert.deepEqual(shop.queue.waiting, [item("tool")]);
    await assert.rejects(shop.queue.launch(item("search"), () => assert.fail("it was started twice")), /`search` is just being started in another window \(process \d+\)/);
    assert.equal(await shop.queue.launch(item("format"), () => assert.fail("two at once")), null, "it waits instead");
    assert.deepEqual(shop.queue.waiting, [item("tool"), item("format")]);
  } finally {
    await other.kill();
  }
});

test("the stage of a window that died while it started it comes first again, and is started here", async () => {
  writeQueue(JSON.stringify({ v: 1, where: new QueueStore().here, waiting: [{ stage: "search", t: 1 }, { stage: "tool", t: 2 }], behind: [], paused: null, starting: null }));
  const other = otherWindow("hang");
  await other.line(/start search/);
  await other.kill();
  assert.notEqual(onDisk().starting, null, "it died in the middle");
  const shop = new Workshop();
  await shop.settle();
  assert.deepEqual([shop.started, shop.queue.waiting], [["search"], [item("tool")]]);

  // It died after the run had begun: that run counts, and nothing is started twice.
  await shop.end("search", "done");
  await shop.end("tool", "done");
  const { starting } = { starting: { stage: "format", t: 3, since: Date.now() / 1000, owner: { ...new QueueStore().owner(), pid: 2 ** 22 - 3 } } };
  writeQueue(JSON.stringify({ v: 1, where: new QueueStore().here, waiting: [{ stage: "math", t: 4 }], behind: [], paused: null, starting }));
  shop.put("format", "failed");
  await shop.settle();
  assert.deepEqual(shop.started, ["search", "tool"]);
  assert.match(shop.queue.paused ?? "", /format ended as failed/);
});

test("six windows change the queue at once and nothing is lost", async () => {
  const shops = Array.from({ length: 6 }, () => new Workshop());
  for (const shop of shops) shop.put("math", "running");
  await Promise.all(shops.map((shop, index) => shop.queue.add(item(`stage${index}`), shop.queue.live())));
  assert.deepEqual(onDisk().waiting.map(({ stage }) => stage).sort(), shops.map((_, index) => `stage${index}`));
  assert.deepEqual(readdirSync(join(root, ".seesaw")).filter((name) => name !== "queue.json"), [], "locks and copies are gone");
});

test("a chain in a terminal counts as what runs, between its stages too, and no longer when it is gone", async () => {
  const runsDir = join(root, ".seesaw", "runs");
  const child = spawn(process.execPath, ["--input-type=module", "-e", `
    const { holdChain } = await import(${JSON.stringify(join(import.meta.dirname, "../../../src/targets/stageLock.ts"))});
    await holdChain(${JSON.stringify(runsDir)}, ["math", "search"]);
    console.log("held");
    setInterval(() => {}, 1000);`], { stdio: ["ignore", "pipe", "inherit"] });
  await new Promise((resolve) => child.stdout.once("data", resolve));
  const shop = new Workshop();
  await shop.queue.add(item("tool"));
  await shop.settle();
  assert.deepEqual([shop.started, shop.queue.busy, shop.queue.elsewhere], [[], true, ["the chain math, search in a terminal"]]);
  await new Promise((resolve) => {
    child.once("exit", resolve);
    child.kill("SIGKILL");
  });
  await shop.settle();
  assert.deepEqual(shop.started, ["tool"]);
  assert.equal(existsSync(runsDir) && readdirSync(runsDir).some((name) => name.startsWith(".chain-")), false, "what it left is removed");
});

test("runs elsewhere do not stand in the way", () => {
  const shop = new Workshop();
  shop.put("math", "running");
  shop.runs[0]!.spec.target.kind = "ssh";
  assert.deepEqual(shop.queue.live(), []);
});

test("the tree shows the place in the queue, the pause, and what the queue is", () => {
  const waiting = [{ file: shownFile, stage: "math" }, { file: shownFile, stage: "search" }];
  const [, search] = stageNodes([makeView()], { waiting, paused: null });
  assert.deepEqual([search?.description, search?.context, search?.icon.name], ["queued · position 2", "stage.queued", "watch"]);
  assert.match(search!.tooltip, /the present run and 1 queued stage before it are done\.\n.*share the queue/);
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

test("a paused stage holds what waits until it is resumed and done", async () => {
  const shop = new Workshop();
  shop.put("math", "running");
  await shop.queue.add(item("search"), shop.queue.live());
  await shop.end("math", "paused");
  assert.deepEqual(shop.started, []);
  await shop.queue.launch({ ...item("math"), resume: "math-1" }, async () => ({ dir: await Promise.resolve(shop.put("math", "running")) }));
  await shop.settle();
  assert.deepEqual([shop.started, shop.queue.paused], [[], null]);
  await shop.end("math", "done");
  assert.deepEqual(shop.started, ["search"]);
});
