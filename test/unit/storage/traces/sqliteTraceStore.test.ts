import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { compatibility } from "../../../../src/domain/drift/compatibility.ts";
import { driftTable } from "../../../../src/domain/drift/drift.ts";
import { columnsOf } from "../../../../src/domain/drift/traceData.ts";
import { filmstrip } from "../../../../src/domain/drift/filmstrip.ts";
import { summaryDrift } from "../../../../src/domain/drift/summaryDrift.ts";
import { loadSqlite } from "../../../../src/storage/sqliteDriver.ts";
import { SqliteTraceStore } from "../../../../src/storage/traces/sqliteTraceStore.ts";
import { bytesOf, readFloats, readUints } from "../../../../src/storage/traces/traceBlobs.ts";
import { AppError } from "../../../../src/util/errors.ts";

const folder = fileURLToPath(new URL("../../../fixtures/protocol/trace/", import.meta.url));
const withoutNative = { betterSqlite3: () => Promise.reject(new Error("not here")), nodeSqlite: () => import("node:sqlite") };
const stores = [new SqliteTraceStore(await loadSqlite()), new SqliteTraceStore(await loadSqlite(withoutNative))];
const open = (name: string) => (stores[0] as SqliteTraceStore).open(join(folder, name));

for (const [index, store] of stores.entries()) {
  test(`a trace is read whole (driver ${index})`, () => {
    const reader = store.open(join(folder, "start.trace"));
    assert.deepEqual([reader.meta.schema, reader.meta.skill, reader.meta.split, reader.meta.step, reader.meta.noise, reader.segments], ["1.0", "math", "id", 0, { nll_q99: 0.01, token_q99: 0.002 }, ["answer", "terminator"]]);
    assert.deepEqual([reader.heldBytes, reader.probe?.(0)?.row, reader.probe?.(77)], [0, 0, null], "one probe is read without the others");
    const numbers = reader.columns?.();
    const [probe, skipped] = reader.probes();
    assert.deepEqual(numbers, columnsOf({ meta: reader.meta, segments: reader.segments, probes: () => reader.probes(), tokens: () => null, tokenBytes: () => null, summary: () => [] }));
    assert.deepEqual(reader.probe?.(0), probe);
    assert.deepEqual([probe?.line, probe?.tags, probe?.status, probe?.tokens, probe?.nll, probe?.kl_start, probe?.kl_base, probe?.correct, probe?.finish], [1, ["emoji", "short"], "ok", 10, 1.25, null, 0.25, true, "stop"]);
    assert.deepEqual([skipped?.status, skipped?.reason, skipped?.correct, Number.isNaN(skipped?.mean_entropy)], ["skipped", "The row has no answer.", null, true]);
    const tokens = reader.tokens(0);
    assert.ok(tokens);
    assert.deepEqual(Array.from(tokens.ids), [10, 1, 20, 21, 22, 23, 1, 30, 31, 99]);
    assert.deepEqual(Array.from(tokens.ends), [2, 3, 4, 5, 6, 7, 8, 9, 10, 10]);
    assert.deepEqual(Array.from(tokens.logprob), Array(10).fill(-0.125));
    assert.deepEqual(Array.from(tokens.segment), [0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert.deepEqual([tokens.topkIds.length, tokens.topkLogprob[1], tokens.klStart, tokens.klBase?.[0]], [20, -3, null, Math.fround(0.025)]);
    assert.equal(reader.tokens(1), null);
    assert.deepEqual(reader.tokenBytes(20), Uint8Array.of(0xf0));
    assert.equal(reader.tokenBytes(12345), null);
    const all = reader.summary().find((row) => row.kind === "all");
    assert.deepEqual([all?.tokens, all?.nll, all?.correct, all?.checked, all?.kl_start], [10, 1.25, 1, 1, null]);
    assert.ok(Math.abs((all?.perplexity ?? 0) - Math.exp(0.125)) < 1e-12);
    reader.close();
  });
}

test("the numbers of many probes are read in parts, with a pause after each, and their prompts at once", async (context) => {
  const path = join(mkdtempSync(join(tmpdir(), "seesaw-trace-")), "large.trace");
  context.after(() => rmSync(join(path, ".."), { recursive: true }));
  copyFileSync(join(folder, "start.trace"), path);
  const database = new DatabaseSync(path);
  database.exec("INSERT INTO probe(row, line, prompt, reference, status, nll, correct) WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 3 FROM n WHERE i < 75000) SELECT i, i + 1, 'prompt ' || i, '', 'ok', i / 7.0, i % 2 FROM n");
  database.close();
  for (const store of stores) {
    const [parts, whole] = [store.open(path), store.open(path)];
    let pauses = 0;
    await parts.readAhead?.(async () => void pauses++);
    assert.ok(pauses >= 3, `${pauses} pauses`);
    assert.deepEqual(parts.columns?.(), whole.columns?.());
    assert.ok((parts.columns?.().rows.length ?? 0) > 24_000);
    assert.deepEqual([...(parts.prompts?.([74998, 103, 5, 100]) ?? [])].sort(([a], [b]) => a - b), [[100, "prompt 100"], [103, "prompt 103"], [74998, "prompt 74998"]]);
    parts.close();
    whole.close();
  }
});

test("drift, filmstrip and summaries of two real files", () => {
  const [start, after] = [open("start.trace"), open("after.trace")];
  const table = driftTable(start, [{ label: "M1", trace: start }, { label: "M2", trace: after }]);
  assert.equal(table.rows.length, 1);
  assert.ok(Math.abs((table.rows[0]?.worst ?? 0) - (5 + 1 + 0.75 + 0.001)) < 1e-6, String(table.rows[0]?.worst));
  assert.match(table.notes[1]?.message ?? "", /batch size 16 against 32/);
  assert.equal(table.skipped.length, 1);
  const strip = filmstrip(start, [{ label: "M2", trace: after }], "a".repeat(64));
  assert.deepEqual(strip?.tokens.map((token) => token.display), ["ok", "·", "F0", "9F", "98", "80", "·", "C3", "A9", "⏎"]);
  assert.deepEqual(strip?.frames[0]?.cells?.map((cell) => (cell.coloured ? cell.class : "")), ["lost", "", "", "", "", "weakened", "", "weakened", "", ""]);
  assert.deepEqual(strip?.frames[0]?.cells?.[0]?.alternatives.map((one) => [one.display, one.isReference]), [["ok", true], ["·", false]]);
  assert.equal(strip?.frames[0]?.generated, "no");
  const lines = summaryDrift(start, [{ label: "M2", trace: after }]);
  assert.deepEqual(lines.map((line) => [line.kind, line.name]), [["all", "all"], ["segment", "answer"], ["tag", "emoji"]]);
  assert.ok(Math.abs((lines[1]?.worst ?? 0) - 6.751 / 9) < 1e-6, String(lines[1]?.worst));
  assert.match(compatibility(start.meta, open("other_template.trace").meta).message ?? "", /^Not comparable: the chat template differs, dtype float32 against bfloat16\./);
});

const throwsWith = (name: string, reason: string, sentence: RegExp): void => {
  assert.throws(() => open(name), (error) => AppError.is(error) && error.reason === reason && sentence.test(error.message));
};

test("missing, damaged and newer traces are sentences", () => {
  throwsWith("nothing.trace", "trace-unreadable", /^There is no trace at .*nothing\.trace: it was deleted, or these probes were not scored/);
  throwsWith("damaged.trace", "trace-unreadable", /damaged\.trace is damaged \(.+\)\. Delete it and run the stage again/);
  throwsWith("newer.trace", "newer-schema", /has format 2\.0; this Seesaw reads format 1\.0\. Update Seesaw/);
  throwsWith("../run.json", "trace-unreadable", /is damaged/);
});

test("arrays that do not fit are found when they are read", (context) => {
  const temporary = mkdtempSync(join(tmpdir(), "seesaw-trace-"));
  context.after(() => rmSync(temporary, { recursive: true, force: true }));
  const path = join(temporary, "short.trace");
  copyFileSync(join(folder, "start.trace"), path);
  const database = new DatabaseSync(path);
  database.exec("UPDATE tokens SET logprob = x'00000000'; DELETE FROM meta WHERE key = 'noise'");
  database.close();
  const reader = (stores[0] as SqliteTraceStore).open(path);
  context.after(() => reader.close());
  assert.equal(reader.meta.noise, undefined);
  assert.throws(() => reader.tokens(0), (error) => AppError.is(error, "trace-unreadable") && /logprob has 4 bytes instead of 40/.test(error.message));
});

test("blobs may begin at any address, and hold infinities", () => {
  const bytes = Uint8Array.of(9, 1, 0, 0, 0, 0, 0, 128, 255);
  assert.deepEqual(Array.from(readUints(bytes.subarray(1, 5), "ids")), [1]);
  assert.deepEqual(Array.from(readFloats(bytes.subarray(5), "logprob", 1)), [-Infinity]);
  assert.throws(() => readUints(bytes, "ids"), /ids has 9 bytes/);
  assert.throws(() => bytesOf(null), RangeError);
});
