import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { isProbeFile, planFor, requestFor, type PlannedCheckpoint } from "../../../../src/host/live/livePlan.ts";
import { livePart, type LiveShow } from "../../../../src/host/live/liveShow.ts";
import { liveFilmstrip, type LiveScores } from "../../../../src/host/live/liveTraces.ts";
import { noiseFloor, type NoiseFloor } from "../../../../src/host/live/noiseFloor.ts";
import { unscored } from "../../../../src/host/live/scoreRows.ts";
import type { ScoredRow } from "../../../../src/inference/scorer.ts";
import { loadSqlite } from "../../../../src/storage/sqliteDriver.ts";
import { SqliteTraceStore } from "../../../../src/storage/traces/sqliteTraceStore.ts";
import { makeRun, makeView } from "../views.ts";

const utf8 = new TextEncoder();
const words = ["so", " 7", "2", "<|end|>"];
const first = [-0.1, -0.1, -0.1, -0.1];
const trace = (name: string): string => fileURLToPath(new URL(`../../../fixtures/protocol/trace/${name}.trace`, import.meta.url));

function scored(logprob: number[], rank: number[]): ScoredRow {
  const repeat = Math.ceil(logprob.length / words.length);
  const ids = Array.from({ length: logprob.length }, (_, index) => [10, 11, 12, 5][index % 4] as number);
  const sizes = [2, 2, 1, 0];
  let end = 0;
  return {
    prompt: "<|user|>What is 27 + 45 ?<|end|><|assistant|>", reference: "so 72".repeat(repeat), mask: "generation-block", note: "The prompt ends in a blank.",
    scores: {
      ids: Uint32Array.from(ids), ends: Uint32Array.from(ids, (_, index) => (end += sizes[index % 4] as number)), logprob: Float32Array.from(logprob), entropy: Float32Array.from(ids, () => 0.1), rank: Uint32Array.from(rank),
      topkIds: Uint32Array.from(ids.flatMap((id) => [99, id])), topkLogprob: Float32Array.from(ids.flatMap(() => [-0.2, -2])),
    },
    vocabulary: new Map([[10, utf8.encode("so")], [11, utf8.encode(" 7")], [12, utf8.encode("2")], [5, utf8.encode("<|end|>")], [99, utf8.encode(" no")]]),
  };
}

const checkpoints: PlannedCheckpoint[] = [
  { label: "M0", stage: null, folder: "/w/m0", against: null, stale: null },
  { label: "M1", stage: "math", folder: "/w/m1", against: "M0", stale: null },
  { label: "M2", stage: "search", folder: "/w/m2", against: "M1", stale: null },
];
const why = "model.safetensors has 5 of 9 bytes. It may still be being written: wait until it is complete.";
const text = JSON.stringify({ messages: [{ role: "user", content: "What is\n27 + 45 ?" }, { role: "assistant", content: "so 72" }] });

function show(rows: { line: number; second: number[]; rank?: number[] }[], noise: NoiseFloor | null = null, change: Partial<LiveShow> = {}): LiveShow {
  const made = rows.map(({ line, second, rank }) => {
    const results: LiveScores[] = [
      { label: "M0", scored: null, why, against: null },
      { label: "M1", scored: scored(second.map((_, index) => first[index] ?? -0.1), second.map(() => 0)), why: null, against: "M0" },
      { label: "M2", scored: scored(second, rank ?? second.map(() => 0)), why: null, against: "M1" },
    ];
    return { ...unscored({ line, text }), strip: liveFilmstrip(results, { line, noise }), notes: [] };
  });
  return { file: "/w/math.jsonl", name: "math.jsonl", edited: true, checkpoints, rows: made, progress: null, failure: null, noise, selected: made.length, ...change };
}

test("live scores take over the page: the row's own film against each stage's start, the reason where there is nothing", () => {
  const part = livePart(show([{ line: 7, second: [-0.1, -0.1, -2.1, -0.1], rank: [0, 0, 3, 0] }]), { row: 0, token: null });
  assert.deepEqual(part.live, { file: "math.jsonl", line: 7, edited: true, prompt: "What is 27 + 45 ?", checkpoints: ["M0", "M1", "M2"], row: 0, progress: null });
  assert.equal(part.empty, null);
  assert.deepEqual(part.checkpoints.map(({ label, stage, state, against, note }) => [label, stage, state, against, note]), [["M0", null, "missing", null, why], ["M1", "math", "scored", null, null], ["M2", "search", "scored", 1, null]]);
  const film = part.film;
  assert.ok(film);
  assert.deepEqual([film.line, film.prompt, film.reference, film.from, film.total], [7, "What is 27 + 45 ?", "so 72", 0, words.length]);
  assert.deepEqual(film.tokens.map(({ display }) => display), ["so", "·7", "2", "⏎"]);
  const [m0, m1, m2] = film.rows;
  assert.equal(m0?.cells, null);
  assert.equal(m0?.note, why);
  assert.ok(m1?.cells?.every(({ change, coloured }) => change === null && !coloured), "its reference could not be scored");
  assert.deepEqual(m2?.cells?.map(({ coloured, tokenClass, rank }) => [coloured, tokenClass, rank]), [[false, "kept", 1], [false, "kept", 1], [true, "lost", 4], [false, "kept", 1]]);
  assert.ok(Math.abs((m2?.cells?.[2]?.change as number) + 2) < 1e-6);
  assert.deepEqual(m2?.cells?.[2]?.top.map(({ text: shown, isReference }) => [shown, isReference]), [["·no", false], ["2", true]]);
  assert.deepEqual([m2?.check, m2?.generated], ["not-run", null], "what is not measured live is not made up");
});

test("nothing within the project's noise is coloured, and a floor that nobody measured is not pretended", async () => {
  const fall = { line: 1, second: [-0.1, -0.1, -0.101, -0.1], rank: [0, 0, 1, 0] };
  const coloured = (one: LiveShow): boolean[] => livePart(one, { row: 0, token: null }).film?.rows[2]?.cells?.map((cell) => cell.coloured) ?? [];
  const unknown = show([fall]);
  assert.deepEqual(coloured(unknown), [false, false, true, false]);
  assert.match(livePart(unknown, { row: 0, token: null }).notes.join(), /^No noise floor is known, because no run has recorded one: falls of more than 0\.0001 nats can be coloured\.$/);
  const store = new SqliteTraceStore(await loadSqlite());
  const noise = await noiseFloor([trace("damaged"), trace("start"), "/nowhere.trace"], () => Promise.resolve(store));
  assert.deepEqual(noise, { nll_q99: 0.01, token_q99: 0.002 }, "of the traces that can be read");
  const known = show([fall], noise);
  assert.deepEqual(coloured(known), [false, false, false, false]);
  assert.deepEqual(livePart(known, { row: 0, token: null }).notes, []);
  assert.equal(livePart(known, { row: 0, token: null }).prompts[0]?.withinNoise, true);
  assert.equal(await noiseFloor([trace("start")], () => Promise.reject(new Error("no SQLite"))), null);
  assert.equal(await noiseFloor([], () => Promise.resolve(store)), null);
});

test("several rows: a list, the most drifted first, and the film of the one that is looked at", () => {
  const rows = show([{ line: 3, second: [-0.1, -0.1, -0.3, -0.1] }, { line: 9, second: [-0.1, -4, -0.1, -0.1] }], null, { selected: 40 });
  const part = livePart(rows, { row: 0, token: null });
  assert.deepEqual(part.prompts.map(({ row, line }) => [row, line]), [[1, 9], [0, 3]]);
  assert.deepEqual(part.prompts[0]?.changes.map((change) => (change === null ? null : Math.round(Number(change) * 10) / 10)), [null, null, -3.9]);
  assert.deepEqual([part.live?.line, part.film?.line, part.film?.row], [3, 3, 0]);
  assert.match(part.notes.join(" "), /Only the first 2 of 40 selected rows were scored\.$/);
  const other = livePart(rows, { row: 1, token: null });
  assert.deepEqual([other.live?.row, other.live?.line, other.film?.row, other.film?.line], [1, 9, 1, 9]);
  assert.equal(livePart(rows, { row: 5, token: null }).film?.row, 1, "a place that is no more");
  const stale = { ...rows, checkpoints: checkpoints.map((one) => ({ ...one, stale: one.label === "M2" ? "Its stage was changed since." : null })) };
  assert.ok(livePart(stale, { row: 0, token: null }).notes.includes("M2: Its stage was changed since."));
});

test("a long answer is shown in parts, around the token that fell most or where it is asked for", () => {
  const rows = show([{ line: 1, second: Array.from({ length: 1200 }, (_, index) => (index === 900 ? -5 : -0.1)) }]);
  const at = (token: number | null): (number | undefined)[] => {
    const { film } = livePart(rows, { row: 0, token });
    return [film?.from, film?.total, film?.tokens.length, film?.rows[2]?.cells?.length];
  };
  assert.deepEqual(at(null), [700, 1200, 400, 400]);
  assert.deepEqual(at(0), [0, 1200, 400, 400]);
  assert.deepEqual(at(1199), [800, 1200, 400, 400]);
});

test("while it is scored the page says how far it is; what cannot be scored is one sentence", () => {
  const waiting: LiveShow = { ...show([]), rows: [unscored({ line: 2, text })], progress: { done: 1, of: 3 } };
  const part = livePart(waiting, { row: 0, token: null });
  assert.deepEqual([part.film, part.empty, part.notes, part.live?.progress, part.live?.prompt], [null, null, [], { done: 1, of: 3 }, "What is 27 + 45 ?"]);
  const failed = livePart({ ...waiting, progress: null, failure: "The row is no valid JSON." }, { row: 0, token: null });
  assert.deepEqual([failed.empty?.kind, failed.empty?.detail, failed.film], ["error", "The row is no valid JSON.", null]);
  const none = livePart({ ...waiting, progress: null, rows: [{ ...unscored({ line: 2, text }), notes: ["There is no scoring graph."] }] }, { row: 0, token: null });
  assert.equal(none.empty?.detail, "There is no scoring graph.");
  assert.equal(unscored({ line: 1, text: "{" }).prompt, "");
  assert.equal(unscored({ line: 1, text: JSON.stringify({ prompt: "😀 ".repeat(200), completion: "x" }) }).prompt, `${"😀 ".repeat(40).trim()}…`);
});

test("what is scored: the checkpoints on this disk, each against its stage's start, with the pipeline's graphs and noise", () => {
  const view = makeView({ runs: [makeRun("math", { status: "done" })], traces: { M0: { "math.id": "/t0", "math.ood": "/o0", "search.id": "/s0" }, M1: { "search.id": "/s1" } }, statuses: { M1: "stale" } });
  const [base, next] = view.chain?.checkpoints ?? [];
  assert.ok(base && next);
  next.path = "/w/.seesaw/runs/math-1/checkpoints/step-000080";
  const plan = planFor([view], "/w/math.jsonl");
  assert.deepEqual(plan.checkpoints, [
    { label: "M0", stage: null, folder: "/w/m0", against: null, stale: null },
    { label: "M1", stage: "math", folder: "/w/.seesaw/runs/math-1/checkpoints/step-000080", against: "M0", stale: "M1 is stale." },
  ]);
  assert.deepEqual(plan.traces, ["/t0"], "of the file's own probe set");
  assert.deepEqual(planFor([view], "/w/math.ood.jsonl").traces, ["/o0"]);
  assert.deepEqual(planFor([view], "/w/else.jsonl").traces, ["/t0", "/s1"], "of any probe set, one for each checkpoint");
  assert.deepEqual(requestFor(plan, "{}"), { row: "{}", checkpoints: plan.checkpoints.map(({ label, folder }) => ({ label, folder })), graphs: "/w/.seesaw/cache/graphs", topK: 8 });
  assert.ok(isProbeFile([view], "/w/math.ood.jsonl") && !isProbeFile([view], "/w/else.jsonl"));
  assert.equal(planFor([view], "/elsewhere/rows.jsonl").graphs, plan.graphs, "the only pipeline there is");
  assert.throws(() => planFor([], "/w/math.jsonl"), { reason: "not-found", message: /no pipeline with checkpoints for this file/ });
});
