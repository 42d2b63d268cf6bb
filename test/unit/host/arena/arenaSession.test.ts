import assert from "node:assert/strict";
import { test } from "node:test";
import type { ArenaPageState, ArenaProgress } from "../../../../src/domain/arena/arenaPage.ts";
import { ArenaSession, type ArenaHost } from "../../../../src/host/arena/arenaSession.ts";
import { priceText } from "../../../../src/host/arena/arenaPrice.ts";
import { stageLenses } from "../../../../src/host/pipelineFile/stageLenses.ts";
import type { PipelineView } from "../../../../src/host/workspaceModel.ts";
import { madeUpArena } from "../../domain/arena/madeUpArena.ts";
import { viewOf } from "../finishedRuns.ts";
import { arenaView } from "./arenaView.ts";

const made = madeUpArena([0]);
const idle: ArenaProgress = { stages: 10, done: 0, running: [], failed: [], held: false };

function harness(options: { views?: PipelineView[]; trusted?: boolean; run?: boolean; fails?: string } = {}) {
  const views = options.views ?? [arenaView()];
  const states: ArenaPageState[] = [];
  const calls: string[] = [];
  const errors: string[] = [];
  const world = { progress: idle, change: (): void => {} };
  const host: ArenaHost = {
    views: () => views,
    desk: async () => ({
      progress: async () => {
        if (options.fails !== undefined) throw new Error(options.fails);
        return world.progress;
      },
      jobs: async (_pipeline, wanted) => ({ count: wanted, why: "setting" }),
      result: async () => (calls.push("result"), made),
      watch: async (_pipeline, onChange) => {
        calls.push("watch");
        world.change = onChange;
        return () => void calls.push("unwatch");
      },
      hasOutput: () => false,
    }),
    trusted: () => options.trusted ?? true,
    run: async () => (calls.push("run"), options.run ?? true),
    stop: async () => (calls.push("stop"), true),
    wantedJobs: () => 2,
    export: async (_view, { pipeline }, what) => void calls.push(`export ${pipeline} ${what}`),
    openPipeline: () => void calls.push("openPipeline"),
    openOutput: async () => void calls.push("openOutput"),
    showLog: () => void calls.push("showLog"),
    log: { debug() {}, info() {}, warn() {}, error: (text) => void errors.push(text) },
  };
  const session = new ArenaSession(host, ({ state }) => states.push(state));
  const settled = async (): Promise<void> => {
    await new Promise((resolve) => setTimeout(resolve, 0));
    await session.settled();
  };
  return { session, states, calls, errors, world, settled, last: () => states.at(-1) as ArenaPageState };
}

test("nothing has run: it says what will be compared and reads no result", async () => {
  const { session, calls, last, settled } = harness();
  session.refresh();
  assert.equal(calls.length, 0, "a page that has not said ready is not read for");
  session.handle({ type: "ready" });
  await settled();
  assert.deepEqual([last().plan?.systems.map(({ id }) => id), last().plan?.seeds, last().progress, last().result, last().reading, last().mayRun, last().empty], [["replay-10", "joint"], [0, 1, 2], idle, null, false, true, null]);
  assert.deepEqual(last().jobs, { count: 2, why: "setting" }, "what starting it would use is told before it is asked");
  assert.deepEqual(calls, ["watch"]);
});

test("it follows the runs: the result is read again when another stage is done, and only then", async () => {
  const { session, calls, last, states, world, settled } = harness();
  session.handle({ type: "ready" });
  await settled();
  world.progress = { ...idle, done: 3, running: [{ seed: 0, stage: "replay-10-search", step: 4, total: 60 }] };
  world.change();
  await settled();
  assert.deepEqual([last().progress?.done, last().result?.pipeline, last().reading], [3, "arena", false]);
  assert.ok(states.some(({ reading, progress }) => reading && progress?.done === 3), "while it reads, the progress is shown already");
  world.progress = { ...world.progress, running: [{ seed: 0, stage: "replay-10-search", step: 8, total: 60 }] };
  world.change();
  await settled();
  assert.deepEqual([calls.filter((call) => call === "result").length, last().progress?.running[0]?.step], [1, 8]);
  world.progress = { ...world.progress, done: 4, running: [] };
  world.change();
  world.change();
  await settled();
  assert.deepEqual([calls.filter((call) => call === "result").length, calls.filter((call) => call === "watch").length], [2, 1]);
  session.close();
  world.progress = { ...world.progress, done: 5 };
  const before = states.length;
  world.change();
  await settled();
  assert.deepEqual([states.length, calls.at(-1)], [before, "unwatch"]);
});

test("in a workspace that is not trusted it is shown, and a message that asks to start it starts nothing", async () => {
  const { session, calls, last, world, settled } = harness({ trusted: false });
  world.progress = { ...idle, done: 2 };
  session.handle({ type: "ready" });
  await settled();
  session.handle({ type: "run" });
  session.handle({ type: "stop" });
  await settled();
  assert.deepEqual([last().mayRun, last().result !== null, calls.includes("run") || calls.includes("stop")], [false, true, false]);
});

test("run and export go to the host, an export only with something to write", async () => {
  const { session, calls, world, settled } = harness();
  session.handle({ type: "ready" });
  await settled();
  session.handle({ type: "export", what: "tests" });
  session.handle({ type: "run" });
  session.handle({ type: "stop" });
  await settled();
  world.progress = { ...idle, done: 1 };
  session.refresh();
  await settled();
  session.handle({ type: "export", what: "html" });
  session.handle({ type: "openOutput" });
  await settled();
  assert.deepEqual(calls.filter((call) => !/watch|result/.test(call)), ["run", "stop", "export arena html", "openOutput"]);
});

test("without an arena, without a pipeline, and what cannot be read: a sentence and what to do", async () => {
  const none = harness({ views: [] });
  none.session.handle({ type: "ready" });
  await none.settled();
  assert.deepEqual([none.last().empty?.title, none.last().empty?.action], ["No pipeline", null]);
  const plain = harness({ views: [viewOf([])] });
  plain.session.handle({ type: "ready" });
  await plain.settled();
  assert.deepEqual([plain.last().empty?.title, plain.last().empty?.action, plain.calls], ["No arena in this pipeline", "openPipeline", []]);
  const broken = harness({ fails: "The stage \"math\" has no max_steps." });
  broken.session.handle({ type: "ready" });
  await broken.settled();
  assert.deepEqual([broken.last().empty?.kind, broken.last().empty?.detail, broken.last().empty?.action], ["error", "The stage \"math\" has no max_steps.", "retry"]);
  assert.match(broken.errors.join(), /no max_steps/);
});

test("of several pipelines the one with an arena is shown, until another is asked for", async () => {
  const plain = { ...viewOf([]), uri: { fsPath: "/other/seesaw.yaml" } as PipelineView["uri"] };
  const { session, last, settled } = harness({ views: [plain, arenaView()] });
  session.handle({ type: "ready" });
  await settled();
  assert.equal(last().pipeline, "arena");
  session.show("/other/seesaw.yaml");
  await settled();
  assert.equal(last().empty?.title, "No arena in this pipeline");
});

test("the question before the start says how much, how long, where and the exact command", () => {
  const jobs = { count: 2, why: "cores" } as const;
  const price = { systems: 3, seeds: [0, 1], stages: 10, done: 4, tokens: 123_456.4, seconds: 754 };
  const text = priceText(price, jobs, ["/x/cli.js", "arena", "--file", "/my work/seesaw.yaml"], "/venv/bin/python");
  assert.match(text, /^3 systems and 2 seeds: 10 stages, 4 of them done\.\nAbout 12 min 34 s of training, .* About 123,456 trained tokens\.\n/);
  assert.match(text, /\n\/x\/cli\.js arena --file '\/my work\/seesaw\.yaml'\n/);
  assert.match(text, /goes on when this window is closed/);
  assert.match(priceText({ ...price, tokens: null, seconds: null }, jobs, [], "p"), /known when a stage has run/);
  assert.match(priceText({ ...price, done: 10 }, jobs, [], "p"), /Everything is done/);
  assert.match(text, /\n2 seeds at a time, with half of this machine's cores\.\n/);
  assert.match(priceText(price, { count: 1, why: "accelerator" }, [], "p"), /\n1 seed at a time, so that none shares the accelerator/);
  assert.match(priceText(price, { count: 3, why: "setting" }, [], "p"), /\n3 seeds at a time, as the setting seesaw\.arena\.jobs says\.\n/);
});

test("a lens over `arena:` opens it, in a workspace that is not trusted too", () => {
  const queue = { waiting: [], paused: null, busy: false } as unknown as Parameters<typeof stageLenses>[1];
  const lens = stageLenses(arenaView(), queue, false).find(({ command }) => command === "seesaw.openArena");
  assert.deepEqual([lens?.range.line, lens?.target.file], [10, "/w/seesaw.yaml"]);
  assert.equal(stageLenses(viewOf([]), queue, true).some(({ command }) => command === "seesaw.openArena"), false);
});

test("an arena's process that outlives its last stage is asked for again, until it has ended", async () => {
  const { session, last, world, settled } = harness();
  world.progress = { ...idle, done: 10, held: true };
  session.handle({ type: "ready" });
  await settled();
  assert.equal(last().progress?.held, true);
  world.progress = { ...idle, done: 10 };
  for (let round = 0; round < 100 && last().progress?.held === true; round += 1) await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(last().progress?.held, false, "nothing else would have told: no run has changed");
});
