import assert from "node:assert/strict";
import { test } from "node:test";
import * as format from "../../../src/domain/format.ts";
import { diffTexts, diffTokens } from "../../../src/domain/drift/textDiff.ts";
import { didYouMean, nearest } from "../../../src/util/nearest.ts";
import { baseName, dirName, isAbsolutePath, joinPath, normalizePath } from "../../../src/util/paths.ts";

test("numbers are printed the same everywhere", () => {
  assert.deepEqual([1.005, -9.4, -0.001, 0, NaN, Infinity, -Infinity, null].map((value) => format.formatNumber(value)), ["1.00", "−9.40", "0.00", "0.00", "NaN", "∞", "−∞", "–"]);
  assert.deepEqual([0.12, -9.4, 0.001, null].map((value) => format.formatSigned(value)), ["+0.12", "−9.40", "0.00", "–"]);
  assert.deepEqual([9.4, -0.2, 0].map((value) => format.formatDrift(value)), ["−9.40", "+0.20", "0.00"]);
  assert.equal(format.formatAtLeast(0.0306), "≥ 0.031 nats (tail unknown)");
  assert.equal(format.formatPercent(0.59), "59.0 %");
  assert.equal(format.formatInterval({ low: 0.548, high: 0.93 }), "54.8–93.0 %");
  assert.deepEqual([0, 999, 1000, 1234567, -1234].map((value) => format.formatCount(value)), ["0", "999", "1,000", "1,234,567", "−1,234"]);
  assert.deepEqual([0.01921, 0.0004, null].map((value) => format.formatP(value)), ["p = 0.019", "p < 0.001", "p = –"]);
  assert.deepEqual([0, 0.34, 4.2, 9.96, 59.6, 185, 3599.7, 7620, 273600, NaN].map((value) => format.formatDuration(value)), ["0 ms", "340 ms", "4.2 s", "10 s", "1 min 00 s", "3 min 05 s", "1 h 00 min", "2 h 07 min", "3 d 4 h", "–"]);
  assert.deepEqual([0, 812, 999.6, 1_600_000, 12e9].map((value) => format.formatBytes(value)), ["0 B", "812 B", "1.0 kB", "1.6 MB", "12 GB"]);
  assert.deepEqual([format.formatRate(3.42, "steps"), format.formatRate(12345.6, "tokens"), format.formatRate(null, "steps")], ["3.4 steps/s", "12,346 tokens/s", "– steps/s"]);
  assert.deepEqual([format.formatPlural(1, "prompt"), format.formatPlural(64, "prompt"), format.formatNats(0.031, 3)], ["1 prompt", "64 prompts", "0.031 nats"]);
});

test("paths without node:path", () => {
  assert.deepEqual([joinPath("/a/b", "c/d"), joinPath("/a/b", "../c"), joinPath("/a", "/x/y"), joinPath("/a/", "./b/"), joinPath("/", "../a")], ["/a/b/c/d", "/a/c", "/x/y", "/a/b", "/a"]);
  assert.deepEqual([joinPath("C:\\a\\b", "../c/d"), joinPath("C:/a", "b"), joinPath("\\\\host\\share\\x", "..\\y"), joinPath("C:\\a", "D:\\b")], ["C:\\a\\c\\d", "C:\\a\\b", "\\\\host\\share\\y", "D:\\b"]);
  assert.deepEqual([dirName("/a/b"), dirName("/a"), dirName("/"), baseName("/a/b.c"), baseName("C:\\x\\y"), baseName("/a/b\\c")], ["/a", "/", "/", "b.c", "y", "b\\c"]);
  assert.deepEqual(["/a", "C:\\a", "C:/a", "\\\\h\\s", "a/b", "./a", "C:a", ""].map(isAbsolutePath), [true, true, true, true, false, false, false, false]);
  assert.deepEqual([normalizePath("a/../../b"), normalizePath(""), dirName("a/b")], ["../b", ".", "a"]);
});

test("the nearest name, or none", () => {
  assert.equal(nearest("serach", ["math", "search", "tool"]), "search");
  assert.equal(nearest("learningrate", ["learning_rate", "lr"]), "learning_rate");
  assert.equal(nearest("MATH", ["path", "math"]), "math");
  assert.equal(nearest("xyz", ["math", "search"]), null);
  assert.equal(didYouMean("mth", ["math"]), ' Did you mean "math"?');
});

test("two generations: where they part, and what changed", () => {
  const diff = diffTexts("7+5+0=12; so 72", "7+5+0=12; so 27");
  assert.deepEqual([diff.firstDivergence, diff.equal, diff.rewritten], [13, false, false]);
  assert.equal(diff.parts.filter((part) => part.kind !== "added").map((part) => part.text).join(""), "7+5+0=12; so 72");
  assert.equal(diff.parts.filter((part) => part.kind !== "removed").map((part) => part.text).join(""), "7+5+0=12; so 27");
  assert.deepEqual([diffTexts("a", "a").firstDivergence, diffTexts("a", "a").changedShare, diffTexts("", "").equal], [null, 0, true]);
  assert.equal(diffTexts("so 72", '{"tool": "train"}').rewritten, true);
  assert.equal(diffTexts("x😀", "x😁").firstDivergence, 1);
  assert.deepEqual(diffTokens(["a", "b", "c"], ["a", "x", "c"]).firstDivergence, 1);
  assert.equal(diffTokens(["a"], ["a", "b"]).firstDivergence, 1);
  assert.deepEqual(diffTokens(["a", "b"], ["a", "c"]).parts, [{ kind: "same", tokens: ["a"] }, { kind: "removed", tokens: ["b"] }, { kind: "added", tokens: ["c"] }]);
});
