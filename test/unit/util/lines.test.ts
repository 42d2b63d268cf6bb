import assert from "node:assert/strict";
import { test } from "node:test";
import { LineSplitter, linesOf, previewOf, type Line } from "../../../src/util/lines.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const texts = (lines: Line[]): string[] => lines.map((line) => new TextDecoder().decode(line.bytes));

function split(chunks: Uint8Array[], maxBytes?: number): Line[] {
  const splitter = new LineSplitter(maxBytes === undefined ? {} : { maxBytes });
  const lines = chunks.flatMap((chunk) => splitter.push(chunk));
  const tail = splitter.end();
  return tail === null ? lines : [...lines, tail];
}

test("splits on LF only; CR before LF is dropped, other separators are text", () => {
  const lines = split([bytes("a\u2028b\u2029c\u0085d\re\r\n\r\nlast\r")]);
  assert.deepEqual(texts(lines), ["a\u2028b\u2029c\u0085d\re", "", "last\r"]);
  assert.deepEqual(lines.map(({ number, ended }) => [number, ended]), [[1, true], [2, true], [3, false]]);
});

test("chunks may end anywhere: every cut of a text gives the same lines and offsets", () => {
  const whole = bytes("é😀\r\n\n中\nx");
  const expected = split([whole]).map(({ offset, length, number }) => ({ offset, length, number }));
  for (let i = 0; i <= whole.length; i++) {
    for (let j = i; j <= whole.length; j++) {
      const lines = split([whole.subarray(0, i), whole.subarray(i, j), whole.subarray(j)]);
      assert.deepEqual(texts(lines), ["é😀", "", "中", "x"]);
      assert.deepEqual(lines.map(({ offset, length, number }) => ({ offset, length, number })), expected);
    }
  }
});

test("the caller may reuse its chunk", () => {
  const chunk = bytes("abc");
  const splitter = new LineSplitter();
  splitter.push(chunk);
  chunk.fill(120);
  assert.deepEqual(texts(splitter.push(bytes("d\n"))), ["abcd"]);
});

test("a follower goes on from the remembered offset and line number", () => {
  const splitter = new LineSplitter();
  splitter.push(bytes("one\ntwo\nthr"));
  assert.equal(splitter.offset, 8);
  assert.equal(splitter.number, 3);
  const again = new LineSplitter({ offset: splitter.offset, number: splitter.number });
  const [line] = again.push(bytes("three\n"));
  assert.deepEqual([line?.number, line?.offset, line?.length], [3, 8, 5]);
});

test("a huge line is cut, its length known, its neighbours whole", () => {
  const lines = split([bytes("a\n"), ...Array.from({ length: 100 }, () => bytes("x".repeat(1000))), bytes("\nb")], 2500);
  assert.deepEqual(lines.map(({ length, cut, offset }) => [length, cut, offset]), [[1, false, 0], [100000, true, 2], [1, false, 100003]]);
  assert.equal(lines[1]?.bytes.length, 2500);
});

test("a preview says how long the line is and never ends inside a character", () => {
  const [line] = split([bytes("😀".repeat(300))]);
  assert.ok(line);
  assert.equal(previewOf(line, 10), `${"😀".repeat(10)}… (1200 bytes)`);
  assert.equal(previewOf({ bytes: bytes("short"), length: 5 }, 10), "short");
  const [cut] = split([bytes("é".repeat(50))], 7);
  assert.ok(cut);
  assert.equal(previewOf(cut, 2), "éé… (100 bytes)");
});

test("an empty stream has no lines; a stream of chunks is read lazily", async () => {
  assert.deepEqual(split([]), []);
  const seen: string[] = [];
  for await (const line of linesOf([bytes("a\nb"), bytes("c\n")])) seen.push(new TextDecoder().decode(line.bytes));
  assert.deepEqual(seen, ["a", "bc"]);
});
