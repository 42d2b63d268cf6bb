import assert from "node:assert/strict";
import { test } from "node:test";
import { bandsOf, brokenLines, cutToFit } from "../../../webview/picture/layout.ts";

const within = (most: number) => (part: string) => Array.from(part).length <= most;

test("a paragraph breaks at blanks, inside of words that are too long, and ends with … where it is cut", () => {
  assert.deepEqual(brokenLines("what is the sum", 9, within(8)), ["what is", "the sum"]);
  assert.deepEqual(brokenLines("abcdefgh", 9, within(3)), ["abc", "def", "gh"]);
  assert.deepEqual(brokenLines("逐词元显示提示", 9, within(3)), ["逐词元", "显示提", "示"]);
  assert.deepEqual(brokenLines("one two three four", 2, within(5)), ["one", "two…"]);
  assert.deepEqual(brokenLines("one\n\ntwo", 9, within(5)), ["one", "", "two"]);
  assert.deepEqual(brokenLines("one\ntwo", 1, within(5)), ["one…"]);
  assert.deepEqual(brokenLines("one\none", 1, within(5)), ["one…"]);
  assert.deepEqual(brokenLines("fits", 1, within(5)), ["fits"]);
});

test("cutting never splits a character", () => {
  assert.equal(cutToFit("👍👍👍", within(2)), "👍…");
  assert.equal(cutToFit("short", within(9)), "short");
  assert.equal(cutToFit("x", () => false), "");
});

test("columns fill bands in order, none is lost, and one that is too wide has a band of its own", () => {
  const widths = [10, 10, 10, 50, 10, 10];
  const bands = bandsOf(widths, 25);
  assert.deepEqual(bands.map(({ from }) => from), [0, 2, 3, 4]);
  assert.deepEqual(bands.map((band) => band.widths.length), [2, 1, 1, 2]);
  for (const band of bands) assert.ok(band.widths.reduce((a, b) => a + b, 0) <= 25);
  assert.deepEqual(bandsOf([], 25), []);
});
