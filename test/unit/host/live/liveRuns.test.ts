import assert from "node:assert/strict";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { DriftSession, type DriftHost } from "../../../../src/host/drift/driftSession.ts";
import type { LivePlan } from "../../../../src/host/live/livePlan.ts";
import { LiveRuns, type LiveAsk } from "../../../../src/host/live/liveRuns.ts";
import type { LiveShow } from "../../../../src/host/live/liveShow.ts";
import { ThreadScorer } from "../../../../src/inference/threadScorer.ts";
import type { DriftSnapshot, FromWebview, ToWebview } from "../../../../src/protocol/webview.ts";
import type { TraceReader } from "../../../../src/storage/traces/traceStore.ts";
import { silentLog } from "../../../../src/util/log.ts";
import { makeTrace, type HandMadeProbe } from "../../domain/makeTrace.ts";
import { makeRun, makeView } from "../views.ts";

const root = fileURLToPath(new URL("../../../../", import.meta.url));
const base = join(root, "media/sample/models/m0");
const scorer = new ThreadScorer(new URL("../../../../src/inference/scorerWorker.ts", import.meta.url));
let dir = "";
let plan: LivePlan;

const rowOf = (question: string, answer = "so 7"): string => JSON.stringify({ messages: [{ role: "user", content: question }, { role: "assistant", content: answer }] });
const ask = (text: string, change: Partial<LiveAsk> = {}): LiveAsk => ({ file: "/w/math.jsonl", name: "math.jsonl", edited: false, rows: [{ line: 4, text }], selected: 1, plan, ...change });

before(async () => {
  dir = await mkdtemp(join(tmpdir(), "seesaw-live-runs-"));
  await cp(base, join(dir, "m1"), { recursive: true });
  const weights = join(dir, "m1", "model.safetensors");
  const bytes = await readFile(weights);
  await writeFile(weights, bytes.fill(0, bytes.length - 20_000));
  plan = {
    checkpoints: [{ label: "M0", stage: null, folder: base, against: null, stale: null }, { label: "M1", stage: "math", folder: join(dir, "m1"), against: "M0", stale: null }],
    graphs: join(root, "test/fixtures/graphs"), topK: 4, traces: [],
  };
});
after(async () => {
  scorer.dispose();
  await scorer.ended;
  await rm(dir, { recursive: true, force: true });
});

/** Token Drift without a webview: what the page would show, and everything it was told on the way. */
class Page {
  readonly states: DriftSnapshot[] = [];
  readonly opened: [string, number][] = [];
  readonly runs: LiveRuns;
  readonly session: DriftSession;
  readonly shows: (LiveShow | null)[] = [];

  constructor() {
    const good: HandMadeProbe[] = [{ hash: "a", logprob: [-0.1, -0.1], correct: true }];
    const traces = { open: (path: string): TraceReader => ({ ...makeTrace(good), path, close: () => {} }) };
    const view = makeView({ runs: [makeRun("math", { status: "done" })], traces: { M0: { "math.id": "t0" }, M1: { "math.id": "t1" } } });
    const host: DriftHost = {
      views: () => [view], traces: () => Promise.resolve(traces), log: silentLog, trusted: () => true, run: () => {},
      openLine: (path, line) => void this.opened.push([path, line]),
      cancelLive: () => this.runs.cancel(),
    };
    this.session = new DriftSession(host, (message) => this.take(message));
    this.runs = new LiveRuns({
      scorer: () => Promise.resolve(scorer),
      traces: () => Promise.resolve(traces),
      show: (show) => {
        this.shows.push(show);
        this.session.showLive(show);
      },
    });
  }

  get state(): DriftSnapshot {
    return this.states.at(-1) as DriftSnapshot;
  }

  send(message: FromWebview): void {
    this.session.handle(message);
  }

  async until(what: string, look: (state: DriftSnapshot) => boolean): Promise<DriftSnapshot> {
    for (const late = Date.now() + 5000; Date.now() < late; await new Promise((resolve) => setTimeout(resolve, 2))) if (this.states.length > 0 && !this.state.busy && look(this.state)) return this.state;
    throw new Error(`${what}: it never came`);
  }

  async ready(): Promise<this> {
    this.send({ type: "ready", selection: null });
    await this.until("the recorded prompts", ({ film }) => film !== null);
    return this;
  }

  private take(message: ToWebview): void {
    if (message.type === "snapshot") this.states.push(message.state);
    else if (message.type === "patch") this.states.push({ ...this.state, ...message.patch });
  }
}

test("a row that is scored fills Token Drift in place of the recorded prompts, and leaving brings them back", async () => {
  const page = await new Page().ready();
  const recorded = page.state;
  await page.runs.score(ask(rowOf("What is 3 + 4?"), { edited: true }));
  const live = await page.until("the live film", (state) => state.live?.progress === null);
  assert.deepEqual([live.live?.prompt, live.live?.line, live.live?.edited, live.live?.checkpoints, live.live?.progress], ["What is 3 + 4?", 4, true, ["M0", "M1"], null]);
  assert.deepEqual(live.checkpoints.map(({ label, against }) => [label, against]), [["M0", null], ["M1", 0]]);
  assert.equal(live.film?.prompt, "What is 3 + 4?");
  assert.ok(live.film?.rows[1]?.cells?.some(({ change }) => typeof change === "number" && change < 0), "other weights, other numbers");
  assert.ok(live.film?.rows[1]?.cells?.every(({ top, entropy }) => top.length === 4 && Number(entropy) >= 0));
  assert.deepEqual([live.chart, live.prompts.length], [null, 1]);
  assert.deepEqual(live.selection, { ...recorded.selection, row: null }, "what was chosen of the recorded stays chosen");
  const told = page.states.length;
  page.session.refresh();
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(page.states.length, told, "while a stage runs, the same film is not sent again");
  page.send({ type: "openRow", row: 0 });
  assert.deepEqual(page.opened, [["/w/math.jsonl", 4]], "back to the row that is edited");
  page.send({ type: "leaveLive" });
  const back = await page.until("the recorded prompts", (state) => state.live === null);
  assert.deepEqual([back.prompts, back.film, back.selection], [recorded.prompts, recorded.film, recorded.selection]);
});

test("asked again, the film is replaced as a whole: no state mixes two askings", async () => {
  const page = await new Page().ready();
  await page.runs.score(ask(rowOf("first?", "so 1")));
  await page.until("the first film", ({ live }) => live?.prompt === "first?");
  const many = { ...plan, checkpoints: Array.from({ length: 400 }, () => plan.checkpoints[0] as LivePlan["checkpoints"][number]) };
  const slow = page.runs.score(ask(rowOf("too slow?", "so 2"), { plan: many }));
  await page.until("the progress of the slow one", ({ live }) => live?.progress != null && live.progress.done > 0);
  assert.deepEqual([page.state.film, page.state.live?.progress?.of], [null, 400]);
  const last = page.runs.score(ask(rowOf("last?", "so 3")));
  await Promise.all([slow, last]);
  await page.until("the last film", ({ live }) => live?.prompt === "last?" && live.progress === null);
  for (const { live, film } of page.states) {
    // The slow one may have been done at the very moment in which the last was asked for.
    const answers: Record<string, string> = { "first?": "so 1", "too slow?": "so 2", "last?": "so 3" };
    if (live !== null && film !== null) assert.deepEqual([film.prompt, film.reference], [live.prompt, answers[live.prompt]]);
    if (live === null) assert.ok(film === null || answers[film.prompt] === undefined);
  }
  const after = page.shows.findIndex((show) => show?.rows[0]?.prompt === "last?");
  assert.ok(page.shows.slice(after).every((show) => show?.rows[0]?.prompt === "last?"), "the one before is never shown after");
});

test("a scoring that is cancelled from the page ends, and the recorded prompts come back", async () => {
  const page = await new Page().ready();
  const many = { ...plan, checkpoints: Array.from({ length: 2000 }, () => plan.checkpoints[0] as LivePlan["checkpoints"][number]) };
  const running = page.runs.score(ask(rowOf("long?"), { plan: many }));
  const { live } = await page.until("its progress", (state) => state.live !== null);
  assert.ok(live?.progress && live.progress.done < 2000);
  page.send({ type: "leaveLive" });
  await running;
  await page.until("the recorded prompts", (state) => state.live === null && state.film !== null);
  assert.equal(page.shows.at(-1), null);
});

test("what is wrong with a row is said in the page, and a flag that is clicked leads away from live rows", async () => {
  const page = await new Page().ready();
  await page.runs.score(ask("{"));
  const failed = await page.until("the sentence", (state) => state.empty !== null);
  assert.match(failed.empty?.detail ?? "", /The row is no valid JSON/);
  assert.deepEqual([failed.live?.line, failed.film], [4, null]);
  page.session.select({ skill: "math" });
  await page.until("the recorded prompts", (state) => state.live === null && state.film !== null);
  await page.runs.score(ask("", { rows: [{ line: 1, text: rowOf("a?") }, { line: 2, text: rowOf("b?") }], selected: 2 }));
  await page.until("two rows", ({ prompts }) => prompts.length === 2);
  page.send({ type: "lookLive", row: 1, token: null });
  assert.equal((await page.until("the second row", ({ live }) => live?.row === 1)).film?.prompt, "b?");
  await page.runs.score(ask("", { rows: [{ line: 1, text: rowOf("a?") }, { line: 2, text: rowOf("b or c?") }], selected: 2 }));
  assert.equal((await page.until("the row edited again", ({ film }) => film?.prompt === "b or c?")).live?.row, 1, "the person stays at the row looked at");
});

test("a warm row takes well under the 150 ms that an edit may cost", async () => {
  const page = await new Page().ready();
  const five = { ...plan, checkpoints: [0, 1, 2, 3, 4].map((index) => ({ ...(plan.checkpoints[index % 2] as LivePlan["checkpoints"][number]), label: `M${index}`, against: index === 0 ? null : "M0" })) };
  const times: number[] = [];
  for (let turn = 0; turn < 8; turn++) {
    const start = performance.now();
    await page.runs.score(ask(rowOf(`What is ${turn} + 4?`), { plan: five }));
    await page.until("the film", ({ live }) => live?.prompt === `What is ${turn} + 4?`);
    times.push(performance.now() - start);
  }
  const median = times.sort((a, b) => a - b)[4] as number;
  assert.ok(median < 150, `${median.toFixed(1)} ms`);
});
