import assert from "node:assert/strict";
import { test } from "node:test";
import { driftTable } from "../../../../src/domain/drift/drift.ts";
import { driftColumns } from "../../../../src/domain/drift/driftColumns.ts";
import { filmstripOf } from "../../../../src/domain/drift/filmstrip.ts";
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
