import assert from "node:assert/strict";
import { test } from "node:test";
import { clusterMeans, clustersOf } from "../../../../src/domain/flags/clusters.ts";
import { flagDefaults } from "../../../../src/domain/flags/defaults.ts";
import { detectors } from "../../../../src/domain/flags/detectors.ts";
import { accuracyChanges } from "../../../../src/domain/flags/expectedAccuracy.ts";
import { lookProgress } from "../../../../src/domain/flags/lookProgress.ts";
import { rowMargin, tokenMargins } from "../../../../src/domain/flags/margins.ts";
import { movedMost } from "../../../../src/domain/flags/moved.ts";
import { seriesNoise } from "../../../../src/domain/flags/noise.ts";
import { panelOf, type PanelRow } from "../../../../src/domain/flags/panel.ts";
import { nllChanges } from "../../../../src/domain/flags/sequenceNll.ts";
import { smallestDrop } from "../../../../src/domain/flags/smallestDrop.ts";
import { holmLevel } from "../../../../src/domain/flags/states.ts";
import { holm } from "../../../../src/domain/statistics/corrections.ts";

const rowsOf = (n: number, change: (row: number) => Partial<PanelRow> = () => ({})): PanelRow[] =>
  Array.from({ length: n }, (_, row) => ({ row, line: row + 1, group: null, scored: true, foundIn: null, ...change(row) }));

test("the panel leaves out what was not scored and what was trained on, and says where it was found", () => {
  const panel = panelOf(rowsOf(70, (row) => (row === 3 ? { scored: false } : row < 3 ? { foundIn: "data/math.train.jsonl" } : {})));
  assert.deepEqual([panel.n, panel.weak, panel.small], [66, false, false]);
  assert.deepEqual(panel.dropped.map(({ line }) => line), [1, 2, 3]);
  assert.equal(panel.dropped[0]?.foundIn, "data/math.train.jsonl");
  assert.equal(panel.rows[0], 4);
});

test("32 rows are enough to flag, 64 to rely on; rows of one group count once", () => {
  assert.deepEqual([31, 32, 63, 64].map((n) => panelOf(rowsOf(n))).map(({ weak, small }) => [weak, small]), [[false, true], [true, false], [true, false], [false, false]]);
  const grouped = panelOf(rowsOf(64, (row) => ({ group: row < 40 ? `g${row % 20}` : null })));
  assert.equal(grouped.n, 44);
  assert.ok(grouped.weak);
  assert.equal(grouped.rows.length, 64);
});

test("clusters are numbered by their first rows and averaged", () => {
  const clusters = clustersOf(6, Int32Array.of(7, -1, 2, 7, -1, 2));
  assert.deepEqual([...clusters.of], [0, 1, 2, 0, 3, 2]);
  assert.deepEqual([...clusterMeans(Float64Array.of(1, 10, 4, 3, 20, 8), clusters)], [2, 10, 6, 20]);
});

test("a copy of every row in its group changes no verdict", () => {
  const margins = Float64Array.from({ length: 40 }, (_, row) => Math.sin(row * 12.9898) * 3 + 1);
  const now = margins.map((margin, row) => margin - 0.6 - 0.5 * Math.sin(row * 78.233));
  const twice = (values: Float64Array): Float64Array => Float64Array.from([...values, ...values]);
  const base = { id: "a.id", skill: "a", split: "id" as const, seed: 1, correct: [], noise: { nll_q99: 0, margin_sd: 0 } };
  const setup = { ...flagDefaults, series: 1, looks: 1 };
  for (const id of ["soft", "nll"] as const) {
    const once = detectors[id].open({ ...base, margins, nll: margins }, setup).look({ step: 1, progress: 1, margins: now, nll: now });
    const groups = Int32Array.from({ length: 80 }, (_, row) => row % 40);
    const both = detectors[id].open({ ...base, margins: twice(margins), nll: twice(margins), groups }, setup).look({ step: 1, progress: 1, margins: twice(now), nll: twice(now) });
    assert.deepEqual(both, once);
    const separate = detectors[id].open({ ...base, margins: twice(margins), nll: twice(margins) }, setup).look({ step: 1, progress: 1, margins: twice(now), nll: twice(now) });
    assert.ok(separate.high - separate.estimate < once.high - once.estimate, "without groups the band would be too narrow");
  }
});

test("progress of planned and of unplanned looks", () => {
  assert.deepEqual([30, 120, 130].map((step) => lookProgress(step, 120, 1)), [0.25, 1, 1]);
  assert.deepEqual([1, 2, 3].map((j) => lookProgress(10 * j, null, j)), [1 / 2, 1 - 1 / 3, 3 / 4]);
});

test("noise of rescoring: bias counts, and so does what is no number", () => {
  const start = { nll: Float64Array.of(1, 2, 3, 4), margins: Float64Array.of(0, 1, 2, 3) };
  const noise = seriesNoise(start, { nll: Float64Array.of(1, 2.5, 3, 3), margins: Float64Array.of(0.1, 1.1, 2.1, 3.1) });
  assert.ok(Math.abs(noise.margin_sd - 0.1) < 1e-12);
  assert.ok(Math.abs(noise.nll_q99 - 0.985) < 1e-12);
  assert.ok(seriesNoise(start, { ...start, margins: Float64Array.of(0, 1, 2, NaN) }).margin_sd > 20);
});

test("a gold token that is not the first still has the best other one as its rival", () => {
  const scores = { ids: Uint32Array.of(4, 4, 4), logprob: Float32Array.of(-1, -1, -9), topkIds: Uint32Array.of(3, 4, 4, 3, 1, 2), topkLogprob: Float32Array.of(-1, -1, -1, -1.5, -0.5, -2) };
  const margins = tokenMargins(scores);
  assert.deepEqual([...(margins ?? [])], [0, 0.5, -8.5]);
  assert.equal(rowMargin(margins ?? new Float64Array()), -8.5);
  assert.equal(rowMargin(Float64Array.of(3, NaN)), -50);
  assert.equal(tokenMargins({ ...scores, topkIds: Uint32Array.of(3, 4, 1), topkLogprob: Float32Array.of(-1, -1, -0.5) }), null);
});

test("an answer that became impossible, or whose likelihood is no number, counts as lost", () => {
  const clusters = clustersOf(4, undefined);
  assert.deepEqual([...nllChanges(Float64Array.of(1, 1, 1, 1), Float64Array.of(NaN, Infinity, -Infinity, 3), clusters)], [1000, 1000, -1000, 2]);
  assert.deepEqual([...accuracyChanges(Float64Array.of(40, 40), Float64Array.of(NaN, 40), 1, clustersOf(2, undefined))].map((change) => Math.round(1e6 * change) / 1e6), [-1, 0]);
});

test("the rows that moved most, worst first, with their tokens in the order of the text", () => {
  const row = (number: number, ...now: number[]): Parameters<typeof movedMost>[0][number] => ({ row: number, line: number + 1, start: Float64Array.from(now, () => 2), now: Float64Array.from(now), tokens: now.map((_, token) => token) });
  const moved = movedMost([row(0, 2, 2), row(1, 1, -1), row(2, 2, 1.95), row(3, -3, 0), row(4, 1, 2), row(5, 0, 2), row(6, 0.5, 2), row(7, -9, NaN)], 0.1);
  assert.deepEqual(moved.map(({ row: number }) => number), [7, 3, 1, 5, 6]);
  assert.deepEqual(moved.map(({ tokens }) => tokens), [[0, 1], [0, 1], [0, 1], [0], [0]]);
  assert.deepEqual(moved.map(({ change }) => change), [-52, -5, -3, -2, -1.5]);
  assert.equal(moved[2]?.line, 2);
});

test("what a check can see shrinks with rows and grows with what it is corrected for", () => {
  const drops = [smallestDrop(32, 1), smallestDrop(64, 1), smallestDrop(256, 1)].map(Number);
  assert.ok(drops[0]! > drops[1]! && drops[1]! > drops[2]! && drops[2]! > 0 && drops[0]! < 100, String(drops));
  assert.ok(Number(smallestDrop(64, 4)) > drops[1]!);
  assert.ok(Number(smallestDrop(64, 1, 3)) > drops[1]!);
  assert.equal(smallestDrop(3, 1), null);
});

test("the level of Holm's procedure rejects what the adjusted p-values reject", () => {
  for (const p of [[0.001, 0.03, 0.02], [0.02, 0.02, 0.02], [0.01, 0.04, 1], [0.2, 0.5, 0.9], [0.04], [0.012, 0.013, 0.024, 0.05]]) {
    const { rejected } = holm(p);
    assert.deepEqual(p.map((value, index) => value <= holmLevel(p, index)), rejected, String(p));
  }
});
