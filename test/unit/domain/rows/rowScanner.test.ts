import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { canonicalText } from "../../../../src/domain/rows/canonical.ts";
import { parseJson, type JsonNoteCode } from "../../../../src/domain/rows/jsonText.ts";
import { rowFormat, rowFormats } from "../../../../src/domain/rows/rowFormat.ts";
import { RowScanner, scanNotes } from "../../../../src/domain/rows/rowScanner.ts";
import { formatCode } from "../../../../src/domain/rows/topKeys.ts";
import { RandomJson } from "../randomJson.ts";

const bits: Record<JsonNoteCode, number> = { "duplicate-key": scanNotes.duplicateKey, "non-finite": scanNotes.nonFinite, overflow: scanNotes.overflow, "unpaired-surrogate": scanNotes.unpairedSurrogate };

/** The scanner must say what the slow reader and the canonical writer say. */
function check(scanner: RowScanner, text: string, shift: number): boolean {
  const bytes = new TextEncoder().encode(text);
  if (shift + bytes.length + 1 > scanner.capacity) scanner.reserve(shift + bytes.length + 1);
  scanner.bytes.set(bytes, shift);
  const taken = scanner.scan(shift, shift + bytes.length);
  const result = parseJson(text);
  assert.equal(taken, result.ok, text);
  if (!result.ok) return false;
  const canonical = new TextDecoder("utf-8", { ignoreBOM: true }).decode(scanner.bytes.subarray(scanner.start, scanner.end));
  assert.equal(canonical, canonicalText(result.value), text);
  assert.equal(rowFormats[formatCode(scanner.first, scanner.keys)], rowFormat(result.value), text);
  assert.equal(scanner.notes, result.notes.reduce((all, { code }) => all | bits[code], 0), text);
  return true;
}

for (const simple of [false, true]) {
  test(`random texts, ${simple ? "without" : "with"} WebAssembly: as parseJson and canonicalText`, () => {
    const scanner = new RowScanner(64 * 1024, simple);
    const random = new RandomJson(simple ? 17 : 23);
    let accepted = 0;
    for (let i = 0; i < 30_000; i++) if (check(scanner, random.next(), i % 7)) accepted++;
    assert.ok(accepted > 20_000);
  });
}

test("the fixture's rows, also across the edge of the buffer", () => {
  const rows = JSON.parse(readFileSync(new URL("../../../fixtures/protocol/rows.json", import.meta.url), "utf8")) as { line: string }[];
  const scanner = new RowScanner(64);
  for (const { line } of rows) check(scanner, line, 0);
});

test("objects with many keys, deep nesting and long strings", () => {
  const scanner = new RowScanner(1024);
  const many = Array.from({ length: 3000 }, (_, i) => `"k${(i * 7919) % 3000}": "${"v".repeat(i % 50)}"`).join(", ");
  check(scanner, `{${many}}`, 3);
  check(scanner, `${"[".repeat(256)}${"]".repeat(256)}`, 0);
  check(scanner, `${"[".repeat(257)}${"]".repeat(257)}`, 0);
  check(scanner, `{"z":"${"é\\n".repeat(50_000)}","a":{"y":1.50,"b":[10,20,30]}}`, 1);
});

test("a row that is canonical as it stands is not copied", () => {
  const scanner = new RowScanner(1024);
  const text = '{"a":[1,"x\\n"],"b":{"c":null}}';
  scanner.bytes.set(new TextEncoder().encode(text), 5);
  assert.ok(scanner.scan(5, 5 + text.length));
  assert.deepEqual([scanner.start, scanner.end], [5, 5 + text.length]);
});
