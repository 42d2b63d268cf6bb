import assert from "node:assert/strict";
import { test } from "node:test";
import { JsonNumber, maxDepth, parseJson, type JsonValue } from "../../../../src/domain/rows/jsonText.ts";
import { RandomJson } from "../randomJson.ts";

/** The value as JSON.parse gives it. */
function plain(value: JsonValue): unknown {
  if (value instanceof JsonNumber) return value.toNumber();
  if (Array.isArray(value)) return value.map(plain);
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, item]) => [key, plain(item)]));
  return value;
}

function valueOf(text: string): JsonValue {
  const result = parseJson(text);
  assert.ok(result.ok, text);
  return result.value;
}

function errorOf(text: string): string {
  const result = parseJson(text);
  assert.ok(!result.ok, text);
  return `${result.error.line}:${result.error.column} ${result.error.message}`;
}

test("random texts: the same values as JSON.parse, the same refusals", () => {
  const random = new RandomJson(4);
  let accepted = 0;
  for (let i = 0; i < 20_000; i++) {
    const text = random.next();
    // V8 13.6 (Node 24) misreads keys that begin with an escape once it has seen the key "\\": JSON.parse('{"m":1,"\\\\":2}') makes
    // a later {"m":1,"\\u0061":2} come out with the key "\\". Our reader does not use it; the comparison must not trip over it.
    if (text.includes("\\\\") || text.includes("\\u005c")) continue;
    const standard = text.replace(/"(?:[^"\\]|\\.)*"|NaN|-?Infinity/g, (token) => (token.startsWith('"') ? token : "0.125"));
    let expected: unknown;
    try {
      expected = JSON.parse(standard);
    } catch {
      assert.equal(parseJson(text).ok, false, text);
      continue;
    }
    accepted++;
    const result = parseJson(text);
    assert.ok(result.ok, text);
    if (standard === text && !text.includes("__proto__")) assert.deepEqual(plain(result.value), expected, text);
  }
  assert.ok(accepted > 10_000);
});

test("numbers keep their digits", () => {
  const texts = ["9007199254740992", "9007199254740993", "12345678901234567890", "-9223372036854775808", "1e400", "0.1", "-0", "1.0"];
  const value = valueOf(`[${texts.join(",")}]`) as JsonNumber[];
  assert.deepEqual(value.map(({ text }) => text), texts);
});

test("NaN and the infinities are numbers apart from null, and noted; the words inside strings are not touched", () => {
  const result = parseJson('{"a":NaN,"b":[-Infinity,Infinity],"c":null,"d":"NaN Infinity"}');
  assert.ok(result.ok);
  assert.deepEqual(result.notes.map(({ code, path }) => `${code} ${path}`), ["non-finite a", "non-finite b[0]", "non-finite b[1]"]);
  assert.deepEqual(plain(result.value), { a: Number.NaN, b: [-Infinity, Infinity], c: null, d: "NaN Infinity" });
});

test("duplicate keys: the last wins, the path is noted", () => {
  const result = parseJson('{"completion":"first","completion":"second","metadata":{"k":1,"\\u006b":2}}');
  assert.ok(result.ok);
  assert.deepEqual(result.notes.map(({ message }) => message), ['duplicate key "completion"; the last value is used', 'duplicate key "metadata.k"; the last value is used']);
  assert.deepEqual(plain(result.value), { completion: "second", metadata: { k: 2 } });
});

test("unpaired surrogates are kept, counted and noted; pairs are not", () => {
  const notes = (text: string): string[] => {
    const result = parseJson(text);
    return result.ok ? result.notes.map(({ message }) => message) : [];
  };
  assert.match(notes('{"p":"half \\ud83d end"}')[0] ?? "", /"p" \(1 code unit\)/);
  assert.match(notes('{"p":"swapped \\ude00\\ud83d"}')[0] ?? "", /\(2 code units\)/);
  assert.deepEqual(notes('{"p":"pair \\ud83d\\ude00"}'), []);
  assert.equal((valueOf('{"p":"half \\ud83d"}') as Map<string, JsonValue>).get("p"), "half \ud83d");
});

test("an overflowing number is noted", () => {
  for (const text of ["1e400", "-1e400", "9".repeat(400)]) {
    const result = parseJson(text);
    assert.deepEqual(result.ok && result.notes.map(({ code }) => code), ["overflow"], text);
  }
});

test("errors name the place and what to do", () => {
  assert.equal(errorOf('{"instruction":"Add","input":"2 2","output":"4",}'), "1:49 a comma before the closing bracket; remove it");
  assert.equal(errorOf('{"a":1},'), "1:8 a comma after the row; in JSON Lines rows are not separated by commas, remove it");
  assert.equal(errorOf('{"a":1}{"a":2}'), "1:8 more than one JSON value on this line; put each on a line of its own");
  assert.equal(errorOf('{"a":1} x'), "1:9 text after the end of the row; remove it");
  assert.equal(errorOf('{"a":"b'), "1:8 the row ends in the middle of a string; it may have been cut off");
  assert.equal(errorOf('{"a":"b\tc"}'), "1:8 the control character U+0009 in a string; write it as an escape");
  assert.equal(errorOf("{\n  'a': 1}"), `2:3 "'" where a key in double quotes is expected`);
  assert.equal(errorOf('{"a" 1}'), '1:6 "1" where : after the key is expected');
  assert.equal(errorOf("\ufeff{}"), "1:1 a byte order mark in the middle of the file (from joining files?); remove it");
  assert.equal(errorOf(" "), "1:2 there is no JSON value here");
  assert.equal(errorOf('{"é😀":?}'), '1:8 "?" where a value is expected');
});

test("nesting is bounded", () => {
  const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);
  assert.ok(parseJson(nested(maxDepth)).ok);
  assert.match(errorOf(nested(maxDepth + 1)), /nested deeper than 256 levels/);
  assert.match(errorOf("[".repeat(1_000_000)), /nested deeper/);
});

test("keys like object members are only keys", () => {
  const value = valueOf('{"__proto__":{"a":1},"constructor":2,"toString":3}') as Map<string, JsonValue>;
  assert.deepEqual([...value.keys()], ["__proto__", "constructor", "toString"]);
  assert.equal(({} as { a?: number }).a, undefined);
});
