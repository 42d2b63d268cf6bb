import assert from "node:assert/strict";
import { test } from "node:test";
import { driftTable } from "../../../../src/domain/drift/drift.ts";
import { driftColumns } from "../../../../src/domain/drift/driftColumns.ts";
import { filmstripOf } from "../../../../src/domain/drift/filmstrip.ts";
import { firstByKey } from "../../../../src/domain/drift/sortPlaces.ts";
import { columnsOf, type TraceData } from "../../../../src/domain/drift/traceData.ts";
import { makeTrace, type HandMadeProbe } from "../makeTrace.ts";

/** As the SQLite reader has it: numbers at once, texts one by one. Reading all texts is refused. */
function lean(trace: TraceData): TraceData {
  const all = trace.probes();
  const columns = columnsOf(trace);
  return { ...trace, columns: () => columns, probe: (row) => all.find((one) => one.row === row) ?? null, probes: () => assert.fail("all texts were read") };
}

const scores = (seed: number, skipped: readonly number[] = []): HandMadeProbe[] =>
  Array.from({ length: 40 }, (_, row) => ({ hash: `h${row % 30}`, logprob: [-((row * seed * 37) % 97) / 10, row === 7 ? NaN : -1], correct: row % seed === 0, ...(skipped.includes(row) ? { reason: "too long" } : {}) }));

test("of a large set the order and the rows come without the texts, and are those of the table", () => {
  const [start, middle, end] = [makeTrace(scores(3, [4])), makeTrace(scores(5, [4, 9])), makeTrace(scores(7, [4]))];
  const compared = [{ label: "M1", trace: start }, { label: "M2", trace: middle }, { label: "M3", trace: end, reference: middle }];
  for (const sortBy of ["worst", "last"] as const) {
    const table = driftTable(start, compared, sortBy, 1);
    const [a, b, c] = [lean(start), lean(middle), lean(end)] as [TraceData, TraceData, TraceData];
    const found = driftColumns(a, [{ label: "M1", trace: a }, { label: "M2", trace: b }, { label: "M3", trace: c, reference: b }], sortBy, 1);
    assert.ok(found);
    assert.deepEqual(Array.from(found.order, (place) => found.row(place, found.anchor.probe?.(found.probes.rows[place] as number) ?? assert.fail())), table.rows);
    assert.deepEqual(Array.from(found.skipped), [4]);
    assert.ok(table.rows.length === 39 && table.rows.some(({ worst }) => worst !== null && worst > 1));
  }
});

test("a probe's own row is compared, not another copy of it, where a copy was skipped", () => {
  const probes: HandMadeProbe[] = [{ hash: "a", logprob: [-1] }, { hash: "a", logprob: [-2] }];
  const later = makeTrace([{ hash: "a", logprob: [-9], reason: "too long" }, { hash: "a", logprob: [-5] }]);
  const table = driftTable(makeTrace(probes), [{ label: "M1", trace: later }]);
  assert.deepEqual(table.rows.map(({ row, cells }) => [row, cells[0]?.delta]), [[1, 3], [0, null]]);
});

test("traces of other probes are paired by the rows' hashes", () => {
  const other = makeTrace([{ hash: "b", logprob: [-4] }, { hash: "a", logprob: [-1] }], { probe_set_hash: "q" });
  const same = makeTrace([{ hash: "a", logprob: [-3] }, { hash: "b", logprob: [-4] }], { probe_set_hash: "p" });
  const found = driftColumns(same, [{ label: "M1", trace: other }]);
  assert.deepEqual(Array.from(found?.order ?? [], (place) => found?.columns[0]?.cell(place).nll), [1, 4]);
  assert.equal(found?.columns[0]?.comparable, false);
});

test("the film of one prompt reads that prompt alone; in another probe set the n-th copy stands for the n-th", () => {
  const [start, after] = [makeTrace(scores(3)), makeTrace(scores(5))].map(lean) as [TraceData, TraceData];
  const strip = filmstripOf(start, 35, start, [{ label: "M2", trace: after }]);
  assert.equal(strip?.probe.row, 35, "row 5 has the same hash");
  assert.ok(Math.abs((strip?.frames[0]?.nll ?? 0) - (((35 * 5 * 37) % 97) / 10 + 1)) < 1e-9);
  const copies = makeTrace([{ hash: "x", logprob: [-1] }, { hash: "h5", logprob: [-2, -2] }, { hash: "h5", logprob: [-3, -3] }], { probe_set_hash: "q" });
  assert.equal(filmstripOf(makeTrace(scores(3)), 35, null, [{ label: "M2", trace: copies }])?.frames[0]?.nll, 6);
});

test("the first of many places are those of the whole order, equal keys by their place", () => {
  for (const [count, kinds] of [[1, 1], [9, 3], [5000, 7], [5000, 4999], [3000, 1]] as const) {
    const keys = Float64Array.from({ length: count * 2 }, (_, i) => (i % 11 === 0 ? -Infinity : ((i * 7919) % kinds) - kinds / 2));
    const places = Uint32Array.from({ length: count }, (_, i) => i * 2);
    const whole = firstByKey(places, keys);
    assert.deepEqual(whole, Uint32Array.from([...places].sort((a, b) => keys[b]! - keys[a]! || a - b)));
    for (const limit of [0, 1, 2, Math.floor(count / 3), count - 1, count, count + 1]) assert.deepEqual(firstByKey(places, keys, limit), whole.slice(0, limit), `${limit} of ${count} with ${kinds} kinds`);
  }
});

test("where only some places are asked for, all scored probes are still counted", () => {
  const [start, after] = [makeTrace(scores(3, [4])), makeTrace(scores(5, [4]))];
  const all = driftColumns(start, [{ label: "M2", trace: after }]);
  const some = driftColumns(start, [{ label: "M2", trace: after }], "worst", 0, 5);
  assert.deepEqual([some?.order, some?.scored], [all?.order.slice(0, 5), 39]);
  const [place = -1] = some?.order ?? [];
  assert.deepEqual([some?.worst(place), some?.columns[0]?.correctAt(place)], [all?.columns[0]?.cell(place).delta, Number(all?.columns[0]?.cell(place).correct)]);
});
