import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { byCodePoint, canonicalText, rowHashes } from "../../../../src/domain/rows/canonical.ts";
import { canonicalNumber } from "../../../../src/domain/rows/jsonNumber.ts";
import { parseJson } from "../../../../src/domain/rows/jsonText.ts";
import { rowFormat } from "../../../../src/domain/rows/rowFormat.ts";
import { sha256Hex } from "../../../../src/storage/rows/sha256.ts";

interface FixtureRow {
  name: string;
  line: string;
  format: string;
  full: string;
  prompt: string | null;
  answer: string | null;
  canonical: string;
}

const fixture = JSON.parse(readFileSync(new URL("../../../fixtures/protocol/rows.json", import.meta.url), "utf8")) as FixtureRow[];

test("the fixture has rows", () => assert.ok(fixture.length >= 100));

for (const row of fixture) {
  test(`both languages agree: ${row.name}`, () => {
    const result = parseJson(row.line.replace(/\r$/, ""));
    assert.ok(result.ok);
    assert.equal(canonicalText(result.value), row.canonical);
    assert.equal(rowFormat(result.value), row.format);
    assert.deepEqual(rowHashes(result.value, sha256Hex), { full: row.full, prompt: row.prompt, answer: row.answer });
  });
}

test("numbers by value, without floats", () => {
  const same = (...texts: string[]): void => assert.equal(new Set(texts.map(canonicalNumber)).size, 1, texts.join(" "));
  same("0", "-0", "0.0", "0e99");
  same("1", "1.0", "10e-1", "0.1e1", "1E+0");
  same("100", "1e2", "100.00", "1e+2");
  same("1e99999999999999999999", "10e99999999999999999998");
  assert.notEqual(canonicalNumber("9007199254740992"), canonicalNumber("9007199254740993"));
  assert.equal(canonicalNumber("-Infinity"), "-Infinity");
});

test("keys sort by code point, not by UTF-16 unit", () => {
  const keys = ["\u{1f600}b", "\u{1f600}", "\uff01", "\ud83d", "z", "", "\ud83d\ud83d\ude00", "\ue000", "\ud83dz"];
  const points = (text: string): number[] => Array.from(text, (character) => character.codePointAt(0) ?? 0);
  const expected = [...keys].sort((a, b) => {
    const [left, right] = [points(a), points(b)];
    const i = left.findIndex((point, at) => point !== right[at]);
    return i === -1 ? left.length - right.length : (left[i] as number) - (right[i] ?? -1);
  });
  assert.deepEqual([...keys].sort(byCodePoint), expected);
});
