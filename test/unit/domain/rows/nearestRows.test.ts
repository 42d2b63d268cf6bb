import assert from "node:assert/strict";
import { test } from "node:test";
import { nearestRows } from "../../../../src/domain/rows/nearestRows.ts";

const rows = ["What is 27 + 45?", "What is 3 + 9?", "Find the capital of Peru.", "¿Qué es 27?", ""].map((text, row) => ({ row, text }));

test("the rows with the rarest words in common come first", () => {
  const found = nearestRows(["What is 27 + 46?"], rows, 3);
  assert.deepEqual(found.map(({ row }) => row), [0, 1, 3]);
  assert.ok((found[0]?.similarity ?? 0) > (found[1]?.similarity ?? 1) && (found[0]?.similarity ?? 0) < 1);
});

test("the same text is at 1, one without a common word is left out, and the nearest of several counts", () => {
  assert.deepEqual(nearestRows(["Find the capital of Peru."], rows, 5).map(({ row, similarity }) => [row, Number(similarity.toFixed(9))]), [[2, 1]]);
  assert.deepEqual(nearestRows(["zzz"], rows, 5), []);
  assert.deepEqual(nearestRows(["capital", "27 + 45"], rows, 2).map(({ row }) => row).sort(), [0, 2]);
  assert.deepEqual(nearestRows([], rows, 2), []);
});
