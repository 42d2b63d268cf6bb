import assert from "node:assert/strict";
import { test } from "node:test";
import { DriftSession, type DriftHost } from "../../../src/host/drift/driftSession.ts";
import type { PipelineView } from "../../../src/host/workspaceModel.ts";
import { emptySelection, type DriftSelection, type DriftSnapshot, type ToWebview } from "../../../src/protocol/webview.ts";
import type { TraceReader, TraceStore } from "../../../src/storage/traceStore.ts";
import { AppError } from "../../../src/util/errors.ts";
import { silentLog } from "../../../src/util/log.ts";
import { makeTrace, type HandMadeProbe } from "../domain/makeTrace.ts";
import { file, makeRun, makeView } from "./views.ts";

const good: HandMadeProbe[] = [{ hash: "a", logprob: [-0.1, -0.1, -0.1], correct: true }, { hash: "b", logprob: [-0.2, -0.2], correct: true }, { hash: "c", logprob: [-0.1], reason: "too long" }];
const bad: HandMadeProbe[] = [{ hash: "a", logprob: [-0.1, -0.2, -0.1], correct: true }, { hash: "b", logprob: [-0.2, -6], rank: [0, 9], correct: false }];

class Stage {
  readonly messages: ToWebview[] = [];
  readonly opened: string[] = [];
  readonly session: DriftSession;
  readonly openedLines: [string, number][] = [];
  closed = 0;
  views: PipelineView[];

  constructor(views: PipelineView[], traces: Record<string, ReturnType<typeof makeTrace>>, failure?: Error) {
    this.views = views;
    const store: TraceStore = {
      open: (path) => {
        this.opened.push(path);
        const trace = traces[path];
        if (trace === undefined) throw new AppError("trace-unreadable", `${path} is damaged.`);
        return { ...trace, path, close: () => void this.closed++ } as TraceReader;
      },
    };
    const host: DriftHost = {
      views: () => this.views,
      traces: () => (failure === undefined ? Promise.resolve(store) : Promise.reject(failure)),
      log: silentLog,
      trusted: () => true,
      run: () => {},
      openLine: (path, line) => void this.openedLines.push([path, line]),
    };
    this.session = new DriftSession(host, (message) => void this.messages.push(message));
  }

  async ask(selection: Partial<DriftSelection> | "ready"): Promise<DriftSnapshot> {
    if (selection === "ready") this.session.handle({ type: "ready", selection: null });
    else this.session.handle({ type: "select", selection: { ...emptySelection, ...selection } });
    return this.settled();
  }

  async settled(): Promise<DriftSnapshot> {
    for (let tries = 0; tries < 200; tries++) {
      const state = this.state();
      if (state?.busy === false) return state;
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    throw new Error("the session never settled");
  }

  private state(): DriftSnapshot | null {
    const first = this.messages.findLastIndex(({ type }) => type === "snapshot");
    return this.messages.slice(Math.max(0, first)).reduce<DriftSnapshot | null>((state, message) => (message.type === "snapshot" ? message.state : state && { ...state, ...message.patch }), null);
  }
}

const view = (): PipelineView =>
  makeView({ runs: [makeRun("search", { status: "done" }), makeRun("math", { status: "done" })], traces: { M0: { "math.id": "t0" }, M1: { "math.id": "t1" }, M2: { "math.id": "t2" } } });

test("ready gives a snapshot, then one patch with everything", async () => {
  const stage = new Stage([view()], { t0: makeTrace(bad), t1: makeTrace(good), t2: makeTrace(bad) });
  const state = await stage.ask("ready");
  assert.deepEqual(stage.messages.map(({ type }) => type), ["snapshot", "patch"]);
  assert.deepEqual(stage.messages.map(({ seq }) => seq), [1, 2]);
  assert.equal(state.selection.reference, "M1", "the skill's own stage");
  assert.deepEqual(state.prompts.map(({ line }) => line), [2, 1]);
  assert.deepEqual(state.prompts[0]?.changes.map((change) => change === null), [true, true, false]);
  assert.equal(state.film?.row, 1, "the most drifted one that was right before");
  assert.equal(state.film?.rows[2]?.cells?.[1]?.tokenClass, "lost");
  assert.equal(state.film?.rows[2]?.cells?.[1]?.rank, 10);
  assert.match(state.notes.join(), /1 row could not be scored \(line 3: too long\)/);
  assert.equal(stage.closed, stage.opened.length, "every trace that was opened was closed");
});

test("of many requests in a row only the last is read", async () => {
  const stage = new Stage([view()], { t0: makeTrace(bad), t1: makeTrace(good), t2: makeTrace(bad) });
  await stage.ask("ready");
  const before = stage.opened.length;
  for (let i = 0; i < 20; i++) stage.session.handle({ type: "select", selection: { ...emptySelection, row: (i + 1) % 2 } });
  await stage.settled();
  assert.equal(stage.opened.length - before, 3, "one film: three traces");
});

test("a trace that cannot be read is named; the others are shown", async () => {
  const stage = new Stage([view()], { t0: makeTrace(bad), t1: makeTrace(good) });
  const state = await stage.ask("ready");
  assert.equal(state.empty, null);
  assert.match(state.notes.join(), /M2: t2 is damaged/);
  assert.equal(state.checkpoints[2]?.state, "missing");
});

test("traces of unlike settings are never compared, and the difference is named", async () => {
  const stage = new Stage([view()], { t0: makeTrace(bad), t1: makeTrace(good), t2: makeTrace(bad, { dtype: "bfloat16" }) });
  const state = await stage.ask("ready");
  assert.equal(state.checkpoints[2]?.state, "not-comparable");
  assert.match(state.notes.join(), /dtype/);
  assert.ok(state.prompts.every(({ changes }) => changes[2] === null));
  assert.ok(state.film?.rows[2]?.cells?.every(({ coloured }) => !coloured));
});

test("SQLite that cannot be loaded is a sentence, not a dead page", async () => {
  const stage = new Stage([view()], {}, new AppError("sqlite-missing", "SQLite cannot be loaded here."));
  const state = await stage.ask("ready");
  assert.equal(state.empty?.kind, "error");
  assert.equal(state.empty?.detail, "SQLite cannot be loaded here.");
  assert.deepEqual(state.choices.skills.map(({ value }) => value), ["math", "search"], "the choices stay usable");
});

test("empty states say what to do", async () => {
  assert.equal((await new Stage([], {}).ask("ready")).empty?.title, "No pipeline yet");
  assert.deepEqual((await new Stage([makeView()], {}).ask("ready")).empty?.actions, [{ label: "Run Stage", action: "runStage" }]);
  const broken = await new Stage([makeView({ text: "seesaw: 1\nbase: [\n" })], {}).ask("ready");
  assert.equal(broken.empty?.kind, "error");
  assert.match(broken.empty?.detail ?? "", /^Line \d+: /);
});

test("a closed page is not written to; a page that comes back gets everything", async () => {
  const stage = new Stage([view()], { t0: makeTrace(bad), t1: makeTrace(good), t2: makeTrace(bad) });
  await stage.ask("ready");
  stage.session.close();
  const count = stage.messages.length;
  stage.session.refresh();
  stage.session.select({ skill: "search" });
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(stage.messages.length, count);
  const state = await stage.ask("ready");
  assert.equal(state.selection.skill, "search");
});

test("a row is opened at its line", async () => {
  const stage = new Stage([view()], { t0: makeTrace(bad), t1: makeTrace(good), t2: makeTrace(bad) });
  await stage.ask("ready");
  stage.session.handle({ type: "openRow", row: 1 });
  assert.deepEqual(stage.openedLines, [["/w/math.jsonl", 2]]);
  assert.equal(file, "/w/seesaw.yaml");
});
