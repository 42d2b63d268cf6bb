import assert from "node:assert/strict";
import { test } from "node:test";
import { WeightsSession, type WeightsHost } from "../../../../src/host/weights/weightsSession.ts";
import type { WeightDrift } from "../../../../src/protocol/weights.ts";
import type { WeightsState } from "../../../../src/protocol/weightsPage.ts";
import { AppError } from "../../../../src/util/errors.ts";
import { finishedRun, viewOf } from "../finishedRuns.ts";

const numbers = { count: 4, changed: 0.5, norm: 2, delta_norm: 0.2, relative: 0.1, cosine: null };
const driftOf = (name: string): WeightDrift => ({ v: 1, total: numbers, layers: [], modules: [], tensors: [{ ...numbers, name, layer: 0, module: "mlp", shape: [2, 2] }], only_a: [], only_b: [], notes: [], seconds: 1 }) as unknown as WeightDrift;

const first = finishedRun("math", null, { "math.id": [10, 60] });
const second = finishedRun("search", first, { "math.id": [60, 20] });

/** Every comparison that was asked for, and how to end it. */
interface Asked {
  pair: string;
  rank: boolean;
  signal: AbortSignal;
  progress(share: number): void;
  answer(result: WeightDrift | AppError): Promise<void>;
}

function harness(views = [viewOf([first, second])]) {
  const states: WeightsState[] = [];
  const asked: Asked[] = [];
  const saved: { name: string; text: string }[] = [];
  const errors: string[] = [];
  const host: WeightsHost = {
    views: () => views,
    startOptions: async () => ({ trusted: true }),
    save: async (_view, name, text) => void saved.push({ name, text }),
    runStage: () => {},
    showLog: () => {},
    log: { debug() {}, info() {}, warn() {}, error: (text) => void errors.push(text) },
    drift: (_root, { from, to, before }, { rank, signal, onProgress }) =>
      new Promise((resolve, reject) => {
        assert.ok(signal);
        signal.addEventListener("abort", () => reject(new AppError("cancelled", "It was stopped.")));
        const answer = async (result: WeightDrift | AppError): Promise<void> => {
          if (result instanceof AppError) reject(result);
          else resolve(result);
          await settled();
        };
        asked.push({ pair: `${before?.label ?? "–"} ${from.label} ${to.label}`, rank, signal, progress: onProgress, answer });
      }),
  };
  const session = new WeightsSession(host, ({ state }) => states.push(state));
  const last = (): WeightsState => states.at(-1) as WeightsState;
  return { session, states, asked, saved, errors, last, views };
}

const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

test("it opens on the whole chain, is told of the end, and asks once for one pair", async () => {
  const { session, asked, last } = harness();
  session.handle({ type: "ready" });
  await settled();
  assert.deepEqual([asked.map(({ pair, rank }) => [pair, rank]), last().busy, last().drift], [[["– M0 M2", false]], 0, null]);
  assert.deepEqual(last().places.map(({ label, title }) => [label, title]), [["M0", "M0, the base model"], ["M1", "M1, math at step 80"], ["M2", "M2, search at step 80"]]);
  session.refresh();
  assert.equal(asked.length, 1);
  await asked[0]?.answer(driftOf("whole"));
  assert.deepEqual([last().drift?.tensors[0]?.name, last().busy, last().empty], ["whole", null, null]);
  assert.deepEqual(last().capabilities.map(({ label }) => label), ["M0", "M1", "M2"]);
  session.refresh();
  assert.equal(asked.length, 1, "what is shown is not computed again");
});

test("another choice stops the one at work; what comes late is not shown", async () => {
  const { session, asked, last } = harness();
  session.handle({ type: "ready" });
  await settled();
  session.handle({ type: "choose", from: "M1", to: "M2" });
  await settled();
  assert.deepEqual([asked[0]?.signal.aborted, asked[1]?.pair], [true, "M0 M1 M2"]);
  assert.deepEqual([last().from, last().to, last().before, last().empty], ["M1", "M2", "M0", null]);
  await asked[1]?.answer(driftOf("second"));
  assert.equal(last().drift?.tensors[0]?.name, "second");
  session.handle({ type: "choose", from: "M9", to: "M2" });
  await settled();
  assert.deepEqual([last().from, last().to], ["M0", "M2"], "a checkpoint that is gone is not insisted on");
});

test("ranks are added to what is shown, and when they do not come about it stays", async () => {
  const { session, asked, last } = harness();
  session.handle({ type: "ready" });
  await settled();
  await asked[0]?.answer(driftOf("plain"));
  session.handle({ type: "rank", wanted: true });
  await settled();
  assert.deepEqual([asked[1]?.rank, last().drift?.tensors[0]?.name, last().busy], [true, "plain", 0]);
  session.handle({ type: "cancel" });
  await settled();
  assert.deepEqual([last().drift?.tensors[0]?.name, last().busy, last().rank, last().empty], ["plain", null, false, null]);
  session.handle({ type: "rank", wanted: true });
  await settled();
  await asked[2]?.answer(driftOf("ranked"));
  assert.deepEqual([last().drift?.tensors[0]?.name, last().rank], ["ranked", true]);
});

test("a failure is a sentence that can be tried again; a stop is none", async () => {
  const { session, asked, last, errors } = harness();
  session.handle({ type: "ready" });
  await settled();
  await asked[0]?.answer(new AppError("bad-input", "norm.weight of M2 holds NaN."));
  assert.deepEqual([last().empty?.kind, last().empty?.detail, last().empty?.action, last().drift], ["error", "norm.weight of M2 holds NaN.", "retry", null]);
  assert.match(errors.join(), /holds NaN/);
  session.refresh();
  assert.equal(asked.length, 1, "not by itself");
  session.handle({ type: "retry" });
  await settled();
  assert.equal(asked.length, 2);
  session.handle({ type: "cancel" });
  await settled();
  assert.deepEqual([last().empty?.kind, last().empty?.action], ["none", "retry"]);
});

test("a hidden page computes nothing, and a chain without checkpoints says what to do", async () => {
  const { session, asked, states } = harness();
  session.handle({ type: "ready" });
  await settled();
  session.close();
  const told = states.length;
  await settled();
  session.refresh();
  assert.deepEqual([asked[0]?.signal.aborted, states.length], [true, told]);
  const empty = harness([viewOf([])]);
  empty.session.handle({ type: "ready" });
  assert.deepEqual([empty.last().empty?.action, empty.asked.length], ["runStage", 0]);
  const none = harness([]);
  none.session.handle({ type: "ready" });
  assert.deepEqual([none.last().empty?.action, none.last().empty?.kind], [null, "none"]);
});

test("of several pipelines one is shown, and another can be chosen", async () => {
  const other = { ...viewOf([finishedRun("math", null, {})]), uri: { fsPath: "/w/other/seesaw.yaml" } as never, label: "other/seesaw.yaml" };
  const { session, asked, last } = harness([viewOf([first, second]), other]);
  session.handle({ type: "ready" });
  await settled();
  session.handle({ type: "choose", from: "M1", to: "M2" });
  assert.deepEqual([last().pipelines.map(({ label }) => label), last().pipeline, last().from], [["seesaw.yaml", "other/seesaw.yaml"], "/w/seesaw.yaml", "M1"]);
  session.handle({ type: "pipeline", file: "/w/other/seesaw.yaml" });
  await settled();
  assert.deepEqual([last().pipeline, last().from, last().to, asked.at(-1)?.pair], ["/w/other/seesaw.yaml", "M0", "M1", "– M0 M1"]);
});

test("both pictures can be had as CSV", async () => {
  const { session, asked, saved } = harness();
  session.handle({ type: "ready" });
  await settled();
  session.handle({ type: "export", what: "weights" });
  assert.equal(saved.length, 0, "nothing is shown yet");
  await asked[0]?.answer(driftOf("whole"));
  session.handle({ type: "export", what: "weights" });
  session.handle({ type: "export", what: "capabilities" });
  await settled();
  assert.deepEqual(saved.map(({ name }) => name.replace(/^[^.]+/, "")), [".M0-M2.weights.csv", ".capabilities.csv"]);
  assert.match(saved[0]?.text ?? "", /\r\nM0,M2,whole,0,mlp,2x2,4,/);
  assert.match(saved[1]?.text ?? "", /\r\nM2,search,math,id,64,20,/);
});
