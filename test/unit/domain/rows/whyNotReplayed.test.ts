import assert from "node:assert/strict";
import { test } from "node:test";
import { parseJson, type JsonValue } from "../../../../src/domain/rows/jsonText.ts";
import type { ReplayRecord } from "../../../../src/domain/rows/membership.ts";
import { whyNotReplayed } from "../../../../src/domain/rows/whyNotReplayed.ts";
import type { ReplaySpec } from "../../../../src/protocol/runSpec.ts";

const spec: ReplaySpec = { buffer: "main", ratio: 0.1, rows: 200, from: [{ stage: "math", data: "/d", skill: "math" }], quality: { field: null, min: 0.7 }, diversity: { minhash: 0.8 } };
const record: ReplayRecord = { run: "r", stage: "search", buffer: "main", rows: [], ledger: [], dropped: { quality: 5, duplicate: 2, probe: 0 }, sources: [{ stage: "math", rows: 2000, kept: 1880, taken: 200 }] };
const why = (json: string, change: Partial<ReplaySpec> = {}, changed: Partial<ReplayRecord> = {}, isProbe = false): string => {
  const parsed = parseJson(json);
  const value: JsonValue = parsed.ok ? parsed.value : null;
  return whyNotReplayed({ value, isProbe }, { ...spec, ...change }, "math", { ...record, ...changed });
};

test("a score below the threshold, or none, is the reason; reward comes before score, as in the runner", () => {
  assert.equal(why('{"reward": 0.4}'), "below the quality threshold (reward 0.4, at least 0.7)");
  assert.equal(why('{"reward": 0.4, "score": 0.9}'), "below the quality threshold (reward 0.4, at least 0.7)");
  assert.match(why('{"score": 0.9}'), /^a near-duplicate/);
  assert.match(why('{"reward": "1.0", "score": 0.9}'), /^a near-duplicate/, "text is no number");
  assert.equal(why('{"reward": NaN}'), "below the quality threshold (reward NaN, at least 0.7)");
  assert.equal(why('{"text": "x"}'), "no reward to judge it by");
  assert.equal(why('{"rating": 0.1, "reward": 1}', { quality: { field: "rating", min: 0.5 } }), "below the quality threshold (rating 0.1, at least 0.5)");
});

test("what cannot be worked out again is said as what is left", () => {
  assert.equal(why('{"reward": 1}'), "a near-duplicate of another row, or not among the 200 of 1,880 taken at random");
  assert.equal(why('{"reward": 1}', {}, { dropped: { quality: 0, duplicate: 0, probe: 0 } }), "not among the 200 of 1,880 taken at random");
  assert.equal(why("{}", { quality: null, diversity: null }, { sources: [{ stage: "math", rows: 10, kept: 8, taken: 8 }] }), "a copy of another row");
  assert.equal(why("{}", { quality: { check: true } }, { dropped: { quality: 1, duplicate: 0, probe: 1 }, sources: [{ stage: "math", rows: 10, kept: 8, taken: 8 }] }), "its answer did not pass the check, or its prompt is a probe's");
  const left = { dropped: { quality: 1, duplicate: 0, probe: 0 } };
  const covered = { diversity: { minhash: 0.8, k_center: { features: "tfidf" as const } } };
  assert.equal(why("{}", { ...covered, quality: { reward_model: "./rm", min: 0.5 } }, left), "below 0.5 by the reward model ./rm, or not among the 200 of 1,880 that stand for the others (k-center)");
  assert.match(why("{}", { diversity: { clusters: { count: 9, features: "hidden" } }, quality: null }, left), /taken in equal shares from 9 clusters$/);
  const near = { ...left, nearness: [{ stage: "math", rows: 100, mean: 0.6, random: { mean: 0.2 } }] };
  assert.equal(why("{}", { quality: null }, near), "not among the 100 of 1,880 nearest to the rows that \"near\" names, and not among the 100 of 1,780 taken at random");
  assert.equal(why("{}", { quality: null }, { dropped: { quality: 0, duplicate: 0, probe: 0 }, sources: [{ stage: "math", rows: 10, kept: 10, taken: 10 }] }), "it was not in the file when the buffer was frozen");
});

test("a probe, and a row that is no object", () => {
  assert.match(why('{"reward": 1}', {}, {}, true), /^it is also a probe/);
  assert.equal(why("[1]"), "not an object");
});
