import assert from "node:assert/strict";
import { test } from "node:test";
import { joinSpans, SeenLines } from "../../../../src/host/rows/seenLines.ts";

test("what was seen stays, with a margin; scrolling inside it asks for nothing", () => {
  const seen = new SeenLines(10, 1000);
  assert.deepEqual(seen.see([{ first: 0, last: 30 }], 500), [{ first: 0, last: 40 }]);
  assert.ok(seen.covers([{ first: 5, last: 40 }], 500));
  assert.ok(!seen.covers([{ first: 5, last: 41 }], 500));
  assert.deepEqual(seen.see([{ first: 35, last: 60 }], 500), [{ first: 0, last: 70 }]);
  assert.deepEqual(seen.see([{ first: 300, last: 330 }], 500), [{ first: 0, last: 70 }, { first: 290, last: 340 }]);
  seen.forget();
  assert.deepEqual(seen.see([{ first: 490, last: 499 }], 500), [{ first: 480, last: 499 }]);
});

test("after many lines the old ones are let go", () => {
  const seen = new SeenLines(10, 100);
  for (let first = 0; first < 900; first += 30) seen.see([{ first, last: first + 29 }], 1000);
  const spans = seen.see([{ first: 950, last: 960 }], 1000);
  assert.ok(spans.reduce((sum, { first, last }) => sum + last - first + 1, 0) <= 120);
  assert.ok(seen.covers([{ first: 950, last: 960 }], 1000));
});

test("spans that touch are one; an empty document has none", () => {
  assert.deepEqual(joinSpans([{ first: 5, last: 9 }, { first: 0, last: 4 }, { first: 20, last: 30 }, { first: 22, last: 25 }]), [{ first: 0, last: 9 }, { first: 20, last: 30 }]);
  assert.deepEqual(new SeenLines().see([{ first: 0, last: -1 }], 0), []);
});
