import assert from "node:assert/strict";
import { test } from "node:test";
import { DriftSession, type DriftHost } from "../../../src/host/drift/driftSession.ts";
import type { PipelineView } from "../../../src/host/workspaceModel.ts";
import { emptySelection, type DriftSelection, type DriftSnapshot, type PictureRequest, type ToWebview } from "../../../src/protocol/webview.ts";
import type { TraceReader, TraceStore } from "../../../src/storage/traces/traceStore.ts";
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
      cancelLive: () => {},
    };
    this.session = new DriftSession(host, (message) => void this.messages.push(message));
  }

  async ask(selection: Partial<DriftSelection> | "ready"): Promise<DriftSnapshot> {
    if (selection === "ready") this.session.handle({ type: "ready", selection: null });
    else this.session.handle({ type: "select", turn: 1, selection: { ...emptySelection, ...selection } });
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
  for (let i = 0; i < 20; i++) stage.session.handle({ type: "select", turn: 1, selection: { ...emptySelection, row: (i + 1) % 2 } });
  await stage.settled();
  assert.equal(stage.opened.length - before, 3, "one film: three traces");
});

test("a film that was shown is not read again, until the list is", async () => {
  const stage = new Stage([view()], { t0: makeTrace(bad), t1: makeTrace(good), t2: makeTrace(bad) });
  const first = (await stage.ask("ready")).film?.row;
  assert.equal((await stage.ask({ row: 0 })).film?.row, 0);
  const before = stage.opened.length;
  assert.equal((await stage.ask({ row: 1 })).film?.row, first);
  assert.equal((await stage.ask({ row: 0 })).film?.row, 0);
  assert.equal(stage.opened.length, before);
  await stage.ask({ row: 0, reference: "M0" });
  assert.ok(stage.opened.length > before, "another reference is another film");
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

test("while nothing changes, a refresh says nothing and reads nothing", async () => {
  const stage = new Stage([view()], { t0: makeTrace(bad), t1: makeTrace(good), t2: makeTrace(bad) });
  await stage.ask("ready");
  const [messages, opened] = [stage.messages.length, stage.opened.length];
  stage.session.refresh();
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual([stage.messages.length, stage.opened.length], [messages, opened]);
  stage.views = [{ ...view(), label: "other/seesaw.yaml" }];
  stage.session.refresh();
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual(stage.messages.slice(messages).map((message) => (message.type === "patch" ? Object.keys(message.patch).sort() : message.type)), [["busy", "choices"]]);
});

test("a long reference is shown in parts: around the token that fell most, or where it is asked for", async () => {
  const long = (fallAt: number): HandMadeProbe[] => [{ hash: "a", logprob: Array.from({ length: 5000 }, (_, index) => (index === fallAt ? -9 : -0.1)) }];
  const stage = new Stage([view()], { t0: makeTrace(long(-2)), t1: makeTrace(long(-1)), t2: makeTrace(long(3000)) });
  const worst = (await stage.ask("ready")).film!;
  assert.deepEqual([worst.from, worst.total, worst.tokens.length], [2800, 5000, 400]);
  assert.ok(Number(worst.rows[2]?.cells?.[200]?.change) < -8);
  assert.ok(worst.rows.every(({ cells }) => cells?.length === 400));
  const selection = stage.messages.findLast((message) => message.type === "patch" && message.patch.selection !== undefined);
  assert.equal(selection?.type === "patch" ? selection.patch.selection?.token : 0, null);
  assert.equal((await stage.ask({ row: 0, token: 0 })).film?.from, 0);
  assert.equal((await stage.ask({ row: 0, token: 4999 })).film?.from, 4600);
});

test("prompts are one line of bounded length in the list, whatever they hold", async () => {
  const prompt = `one\n\ttwo ${"👩‍👧 ".repeat(5000)}`;
  const asking = (probes: HandMadeProbe[]): ReturnType<typeof makeTrace> => {
    const trace = makeTrace(probes.slice(0, 1));
    const rows = trace.probes().map((row) => ({ ...row, prompt }));
    return { ...trace, probes: () => rows };
  };
  const stage = new Stage([view()], { t0: asking(bad), t1: asking(good), t2: asking(bad) });
  const state = await stage.ask("ready");
  assert.match(state.prompts[0]?.prompt ?? "", /^one two 👩.*…$/u);
  assert.ok((state.prompts[0]?.prompt.length ?? 0) < 600);
  assert.doesNotMatch(state.prompts[0]?.prompt ?? "", /[\ud800-\udbff](?![\udc00-\udfff])/u);
  assert.match(state.film?.prompt ?? "", /more characters\)$/);
});

test("while seesaw.yaml has errors, what was there is shown on", async () => {
  const stage = new Stage([{ ...view(), pipeline: null }], { t0: makeTrace(bad), t1: makeTrace(good), t2: makeTrace(bad) });
  const state = await stage.ask("ready");
  assert.equal(state.empty, null);
  assert.equal(state.prompts.length, 2);
});

test("a picture is asked of the page with all that it must say, and comes back to who asked", async () => {
  const stage = new Stage([view()], { t0: makeTrace(bad), t1: makeTrace(good), t2: makeTrace(bad) });
  await stage.ask("ready");
  const png = Uint8Array.of(1, 2, 3);
  const asked: PictureRequest[] = [];
  const picture = await stage.session.picture((request) => {
    asked.push(request);
    stage.session.handle({ type: "picture", turn: request.turn - 1, png: Uint8Array.of(0), problem: null });
    stage.session.handle({ type: "picture", turn: request.turn, png, problem: null });
  });
  assert.deepEqual([picture.png, picture.resolved.skill, asked.length], [png, "math", 1]);
  const { title, about, notes } = asked[0]!.about;
  assert.equal(title, "Token Drift: math (in-domain)");
  assert.match(about.join(" "), /compared with M1, after math/);
  assert.match(notes.join(" "), /Noise floor of log p: 0\.\d{4} nats a token/);
  for (const { label, run } of view().chain?.checkpoints.filter((one) => one.run !== null) ?? []) assert.ok(notes.join(" ").includes(`${label} `) && notes.join(" ").includes(run?.id ?? "?"), label);
});

test("a picture that cannot be drawn is a sentence", async () => {
  const empty = new Stage([makeView()], {});
  await empty.ask("ready");
  await assert.rejects(empty.session.picture(() => assert.fail("not asked")), (error) => AppError.is(error, "not-found") && /run a stage first/.test(error.message));
  const stage = new Stage([view()], { t0: makeTrace(bad), t1: makeTrace(good), t2: makeTrace(bad) });
  await stage.ask("ready");
  await assert.rejects(stage.session.picture(({ turn }) => stage.session.handle({ type: "picture", turn, png: null, problem: "no canvas" })), /no canvas/);
});
