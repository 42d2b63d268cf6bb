import assert from "node:assert/strict";
import { test } from "node:test";
import { compatibility } from "../../../../src/domain/drift/compatibility.ts";
import { driftTable, probeDrift, tokenDrift } from "../../../../src/domain/drift/drift.ts";
import { filmstrip } from "../../../../src/domain/drift/filmstrip.ts";
import { summaryDrift } from "../../../../src/domain/drift/summaryDrift.ts";
import { classifyToken } from "../../../../src/domain/drift/tokenClasses.ts";
import { showBlanks, showBytes, tokenTexts } from "../../../../src/domain/drift/tokenText.ts";
import type { TraceSummaryRow } from "../../../../src/protocol/trace.ts";
import { makeTrace, meta } from "../makeTrace.ts";

const start = makeTrace([
  { hash: "a", logprob: [-0.1, -0.1], correct: true },
  { hash: "b", logprob: [-0.5, -0.5], correct: true },
  { hash: "c", logprob: [-1, -1], correct: false },
  { hash: "d", logprob: [], reason: "The row has no answer." },
  { hash: "e", logprob: [-0.2], correct: true },
]);
const after = makeTrace([
  { hash: "c", logprob: [-1, -1.02], correct: false },
  { hash: "b", logprob: [-2, -3], rank: [1, 5], correct: false },
  { hash: "a", logprob: [-0.05, -0.05], correct: true },
], { step: 20, batch_size: 32 });

test("S05: traces with unlike settings are not compared, and the fields are named", () => {
  assert.deepEqual(compatibility(meta, meta), { comparable: true, differences: [], message: null });
  const template = compatibility(meta, { ...meta, template_hash: "other", dtype: "bfloat16", batch_size: 32 });
  assert.equal(template.comparable, false);
  assert.deepEqual(template.differences.map(({ field, blocking }) => [field, blocking]), [["template_hash", true], ["dtype", true], ["batch_size", false]]);
  assert.equal(template.message, "Not comparable: the chat template differs, dtype float32 against bfloat16. Score both checkpoints again with the same settings.");
  for (const field of ["tokenizer_hash", "template_hash", "probe_set_hash", "temperature", "dtype", "attention", "engine", "mask"] as const) {
    assert.equal(compatibility(meta, { ...meta, [field]: "x" }).comparable, false, field);
  }
});

test("L04: another batch size is comparable, and noted as noise", () => {
  const { comparable, message } = compatibility(meta, { ...meta, batch_size: 32 });
  assert.equal(comparable, true);
  assert.equal(message, "Scored with other settings (batch size 16 against 32): small differences are numerical noise.");
});

test("probe drift pairs rows by hash, and knows the noise", () => {
  const drift = probeDrift(start, after);
  assert.deepEqual(drift.map((one) => [one.hash, Number(one.delta.toFixed(6)), one.withinNoise]), [["a", -0.1, false], ["b", 4, false], ["c", 0.02, true]]);
  assert.equal(drift[1]?.deltaPerToken, 2);
});

test("the drift table is sorted by the worst drift and shows the checks", () => {
  const table = driftTable(start, [{ label: "M1", trace: start }, { label: "M2", trace: after }, { label: "M3", trace: null }]);
  assert.deepEqual(table.rows.map((row) => [row.hash, row.worst === null ? null : Number(row.worst.toFixed(6)), row.withinNoise]), [["b", 4, false], ["c", 0.02, true], ["a", 0, false], ["e", 0, true]]);
  assert.deepEqual(table.rows[0]?.cells.map((cell) => [cell.label, cell.correct, cell.why]), [["M1", true, null], ["M2", false, null], ["M3", null, "M3 has not been scored on these prompts."]]);
  assert.deepEqual(table.skipped, [{ row: 3, line: 4, reason: "The row has no answer." }]);
  assert.equal(table.notes[1]?.comparable, true);
  assert.match(table.notes[1]?.message ?? "", /batch size 16 against 32/);
});

test("a checkpoint can have a reference of its own (its stage's start)", () => {
  const third = makeTrace([{ hash: "b", logprob: [-2, -3.5], correct: false }]);
  const table = driftTable(start, [{ label: "M2", trace: after }, { label: "M3", trace: third, reference: after }], "last");
  const row = table.rows.find((one) => one.hash === "b");
  assert.deepEqual(row?.cells.map((cell) => cell.delta), [4, 0.5]);
  assert.equal(row?.last, 0.5);
});

test("what is not comparable has no drift, only its checks and the reason", () => {
  const other = makeTrace([{ hash: "a", logprob: [-9, -9], correct: false }], { dtype: "bfloat16" });
  const table = driftTable(start, [{ label: "M2", trace: other }]);
  const cell = table.rows.find((row) => row.hash === "a")?.cells[0];
  assert.deepEqual([cell?.delta, cell?.correct], [null, false]);
  assert.match(cell?.why ?? "", /^Not comparable: dtype float32 against bfloat16/);
});

test("a NaN score is no drift of 0", () => {
  const broken = makeTrace([{ hash: "a", logprob: [NaN, -0.1], correct: false }, { hash: "b", logprob: [-1, -1] }]);
  const table = driftTable(start, [{ label: "M2", trace: broken }]);
  assert.equal(table.rows[0]?.hash, "b");
  const cell = table.rows.find((row) => row.hash === "a")?.cells[0];
  assert.equal(cell?.delta, null);
  assert.match(cell?.why ?? "", /NaN/);
});

test("copies of a row are paired one to one", () => {
  const twice = makeTrace([{ hash: "a", logprob: [-1] }, { hash: "a", logprob: [-2] }]);
  const later = makeTrace([{ hash: "a", logprob: [-1.5] }, { hash: "a", logprob: [-4] }]);
  assert.deepEqual(probeDrift(twice, later).map((one) => one.delta), [0.5, 2]);
});

test("token classes (contract §8)", () => {
  const verdict = (rank: number, delta: number, noise = 0.1): string => {
    const { class: name, change, coloured } = classifyToken(rank, delta, noise);
    return `${name} ${change}${coloured ? " coloured" : ""}`;
  };
  assert.equal(verdict(0, 0), "kept same");
  assert.equal(verdict(0, -0.5), "kept fell");
  assert.equal(verdict(0, -0.71), "weakened fell coloured");
  assert.equal(verdict(0, -0.9, 1), "kept same");
  assert.equal(verdict(0, -1.1, 1), "weakened fell coloured");
  assert.equal(verdict(1, -0.2), "weakened fell coloured");
  assert.equal(verdict(2, -0.2), "weakened fell coloured");
  assert.equal(verdict(3, -0.2), "lost fell coloured");
  assert.equal(verdict(40, -0.05), "lost same");
  assert.equal(verdict(5, 2), "lost rose");
});

test("token drift is null when the tokens differ", () => {
  assert.deepEqual(Array.from(tokenDrift(start, after, 1, 1)?.delta ?? []), [-1.5, -2.5]);
  assert.equal(tokenDrift(start, makeTrace([{ hash: "a", logprob: [-1, -1, -1] }]), 0, 0), null);
});

test("a filmstrip shows one prompt under every checkpoint", () => {
  const strip = filmstrip(start, [{ label: "M1", trace: start }, { label: "M2", trace: after }, { label: "M3", trace: null }], "b");
  assert.ok(strip);
  assert.deepEqual(strip.tokens.map((token) => [token.text, token.segment]), [["a", "answer"], ["b", "answer"]]);
  const [m1, m2, m3] = strip.frames;
  assert.deepEqual(m1?.cells?.map((cell) => [cell.delta, cell.coloured]), [[0, false], [0, false]]);
  assert.deepEqual(m2?.cells?.map((cell) => [cell.class, cell.delta, cell.rank, cell.coloured]), [["weakened", -1.5, 1, true], ["lost", -2.5, 5, true]]);
  assert.deepEqual([m2?.delta, m2?.nll, m2?.correct], [4, 5, false]);
  assert.deepEqual(m2?.cells?.[0]?.alternatives, [{ id: 97, display: "a", logprob: -2, probability: Math.exp(-2), isReference: true }]);
  assert.equal(m3?.why, "M3 has not been scored on this prompt.");
  assert.equal(filmstrip(start, [], "no such row"), null);
});

test("T07: tokens that are parts of a character are grouped and shown as bytes", () => {
  const text = "ok 😀 café ²";
  const ends = [1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 16];
  const tokens = tokenTexts(text, ends, () => new TextEncoder().encode("<|end|>"));
  assert.deepEqual(tokens.slice(3, 7).map((token) => token.bytes), ["F0", "9F", "98", "80"]);
  assert.deepEqual(tokens.slice(3, 7).map((token) => token.display), ["F0", "9F", "98", "80"]);
  assert.equal(new Set(tokens.slice(3, 7).map((token) => token.group)).size, 1);
  assert.equal(new Set(tokens.map((token) => token.group)).size, 11);
  assert.deepEqual(tokens.slice(3, 7).map((token) => [token.start, token.end]), Array(4).fill([3, 5]));
  assert.deepEqual([tokens[7]?.display, tokens[7]?.start, tokens[7]?.end], ["·c", 5, 7]);
  assert.equal(tokens.map((token) => token.text).join(""), text);
  assert.deepEqual([tokens[15]?.terminator, tokens[15]?.display, tokens[15]?.start, tokens[15]?.end], [true, "⏎", 12, 12]);
  assert.ok(!tokens.some((token) => token.display.includes("\ufffd")));
});

test("a token may hold whole characters and the beginning of the next", () => {
  const tokens = tokenTexts("aéb", [2, 4]);
  assert.deepEqual(tokens.map((token) => [token.display, token.group, token.text]), [["61 C3", 0, "aéb"], ["A9 62", 0, ""]]);
});

test("blanks and incomplete bytes are visible", () => {
  assert.equal(showBlanks("a b\n\t\u00a0\u200b"), "a·b␊␉⍽⟨ZWSP⟩");
  assert.equal(showBytes(Uint8Array.of(0xf0, 0x9f)), "⟨F0 9F⟩");
  assert.equal(showBytes(new TextEncoder().encode(" é")), "·é");
  assert.equal(showBytes(null), "⟨?⟩");
});

test("summaries: change per token from the token-weighted perplexity, the most fallen segment first", () => {
  const line = (kind: TraceSummaryRow["kind"], name: string, perplexity: number, correct: number | null = null): TraceSummaryRow => ({ kind, name, rows: 4, tokens: 40, nll: 1, perplexity, mean_entropy: 0.5, kl_start: null, kl_base: 0.1, correct, checked: correct === null ? 0 : 4 });
  const before = makeTrace([], {}, [line("tag", "carry", 2), line("all", "all", 2, 4), line("segment", "reasoning", 2), line("segment", "answer", 1)]);
  const now = makeTrace([], {}, [line("all", "all", 2 * Math.E, 1), line("segment", "reasoning", 2 * Math.E), line("segment", "answer", Math.E ** 3), line("segment", "new", NaN)]);
  const found = summaryDrift(before, [{ label: "M2", trace: now }]);
  assert.deepEqual(found.map((one) => [one.kind, one.name, one.worst === null ? null : Number(one.worst.toFixed(9))]), [["all", "all", 1], ["segment", "answer", 3], ["segment", "reasoning", 1], ["segment", "new", null], ["tag", "carry", null]]);
  assert.deepEqual([found[0]?.cells[0]?.accuracy, found[1]?.cells[0]?.accuracy, found[3]?.cells[0]?.perplexity], [0.25, null, null]);
});
