import assert from "node:assert/strict";
import { test } from "node:test";
import { curvesPicture } from "../../../../src/domain/battery/curvesPicture.ts";

test("the curves of the report card as a picture: a step for each point, names escaped, nothing beyond the axes", () => {
  const point = (rate: number, ahead: number) => ({ rate, ahead, found: 1, delay: null });
  const picture = curvesPicture([
    { curve: { id: "a", points: [point(0, 0), point(0.25, 0.5), point(0.9, 1)] }, label: "A < B & C" },
    { curve: { id: "b", points: [] }, label: "never quiet" },
  ]);
  // 0 … 50 % over 60 … 440, 0 … 100 % over 284 … 34.
  assert.match(picture, /<path d="M60,284H250V159H440"/);
  assert.match(picture, /<title>A &lt; B &amp; C<\/title>/);
  assert.match(picture, /<path d=""/, "a candidate that is never so quiet has a name and no line");
  assert.doesNotMatch(picture, /NaN|undefined/);
});
