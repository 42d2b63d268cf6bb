import assert from "node:assert/strict";
import { test } from "node:test";
import { liveFilm } from "../../../src/host/live/liveFilm.ts";
import { isProbeFile, planFor, requestFor } from "../../../src/host/live/livePlan.ts";
import { liveText } from "../../../src/host/live/liveText.ts";
import type { LiveScores } from "../../../src/host/live/liveTraces.ts";
import type { ScoredRow } from "../../../src/inference/scorer.ts";
import { makeView } from "../host/views.ts";

const utf8 = new TextEncoder();
const words = ["so", " 7", "2", "<|end|>"];

function scored(logprob: number[], rank: number[]): ScoredRow {
  const ends = [2, 4, 5, 5];
  return {
    prompt: "<|user|>What is 27 + 45 ?<|end|><|assistant|>", reference: "so 72", mask: "generation-block", note: null,
    scores: {
      ids: Uint32Array.of(10, 11, 12, 5), ends: Uint32Array.from(ends), logprob: Float32Array.from(logprob), entropy: Float32Array.of(0.1, 0.2, 0.3, 0.4), rank: Uint32Array.from(rank),
      topkIds: Uint32Array.of(10, 99, 11, 99, 99, 12, 5, 99), topkLogprob: Float32Array.of(-0.1, -3, -0.1, -3, -0.2, -2, -0.1, -3),
    },
    vocabulary: new Map([[10, utf8.encode("so")], [11, utf8.encode(" 7")], [12, utf8.encode("2")], [5, utf8.encode("<|end|>")], [99, utf8.encode(" no")]]),
  };
}

const results: LiveScores[] = [
  { label: "M0", scored: null, why: "model.safetensors has 5 of 9 bytes. It may still be being written: wait until it is complete.", against: null },
  { label: "M1", scored: scored([-0.1, -0.1, -0.1, -0.1], [0, 0, 0, 0]), why: null, against: "M0" },
  { label: "M2", scored: scored([-0.1, -0.1, -2.1, -0.1], [0, 0, 3, 0]), why: null, against: "M1" },
];

test("live scores become the page's film: compared with each stage's start, the reason where there is nothing", () => {
  const film = liveFilm(results, { line: 7 });
  assert.ok(film);
  assert.deepEqual([film.line, film.prompt, film.reference, film.total], [7, "What is 27 + 45 ?", "so 72", words.length]);
  assert.deepEqual(film.tokens.map(({ display }) => display), ["so", "·7", "2", "⏎"]);
  const [m0, m1, m2] = film.rows;
  assert.equal(m0?.cells, null);
  assert.match(m0?.note ?? "", /still be being written/);
  assert.ok(m1?.cells?.every(({ change, coloured }) => change === null && !coloured), "its reference could not be scored");
  assert.deepEqual(m2?.cells?.map(({ coloured, tokenClass, rank }) => [coloured, tokenClass, rank]), [[false, "kept", 1], [false, "kept", 1], [true, "lost", 4], [false, "kept", 1]]);
  assert.ok(Math.abs((m2?.cells?.[2]?.change as number) + 2) < 1e-6);
  assert.deepEqual(m2?.cells?.[2]?.top.map(({ text, isReference }) => [text, isReference]), [["·no", false], ["2", true]]);
  assert.equal(liveFilm([results[0] as LiveScores], { line: 7 }), null);
});

test("the text page has one line per token, in columns, and says what is missing", () => {
  const lines = liveText(results, { line: 7 }).split("\n");
  assert.deepEqual(lines.slice(0, 4), ["Line 7", "", "Prompt  What is 27 + 45 ?", "Answer  so 72"]);
  const head = lines.findIndex((line) => line.includes("M2 against M1"));
  assert.match(lines[head + 1] ?? "", /^whole answer {3}−0\.40 .*−2\.40 {2}−2\.00$/);
  const token = lines.find((line) => line.startsWith("2 ")) ?? "";
  assert.match(token, /−0\.10 {2}#1 .*−2\.10 {3}−2\.00 {2}#4 lost$/);
  assert.equal(token.indexOf("−2.10") - 1, (lines[head] ?? "").indexOf("M2 against M1"), "columns stand under their heads");
  assert.ok(lines.includes(`M0: ${results[0]?.why}`));
});

test("what is scored: the checkpoints on this disk, each against its stage's start, with the pipeline's graphs", () => {
  const view = makeView();
  const [base, first] = view.chain?.checkpoints ?? [];
  assert.ok(base && first);
  first.path = "/w/.seesaw/runs/math-1/checkpoints/step-000080";
  const plan = planFor([view], "/w/math.jsonl");
  assert.deepEqual(plan.checkpoints, [
    { label: "M0", folder: "/w/m0", against: null },
    { label: "M1", folder: "/w/.seesaw/runs/math-1/checkpoints/step-000080", against: "M0" },
  ]);
  assert.deepEqual(requestFor(plan, "{}"), { row: "{}", checkpoints: plan.checkpoints.map(({ label, folder }) => ({ label, folder })), graphs: "/w/.seesaw/cache/graphs", topK: 8 });
  assert.ok(isProbeFile([view], "/w/math.ood.jsonl") && !isProbeFile([view], "/w/else.jsonl"));
  assert.equal(planFor([view], "/elsewhere/rows.jsonl").graphs, plan.graphs, "the only pipeline there is");
  assert.throws(() => planFor([], "/w/math.jsonl"), { reason: "not-found", message: /no pipeline with checkpoints for this file/ });
});
