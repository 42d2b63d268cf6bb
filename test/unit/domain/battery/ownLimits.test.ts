import assert from "node:assert/strict";
import { test } from "node:test";
import type { ScoreCandidate } from "../../../../src/domain/battery/candidate.ts";
import { conformalLimit, ScoredBank } from "../../../../src/domain/battery/ownLimits.ts";
import { seededRandom } from "../../../../src/domain/statistics/random.ts";
import { abrupt, looks, makeRun, steady } from "./makeRuns.ts";

const between = (found: number, low: number, high: number): void => assert.ok(found >= low && found <= high, `${found} is not between ${low} and ${high}`);

test("a conformal limit is exceeded by one more run of the same kind with the chance that was asked for, and no more", () => {
  // 9 runs: above the highest only; 19: one may be higher; fewer than 9 say nothing at a tenth.
  assert.equal(conformalLimit([3, 1, 2, 9, 4, 5, 6, 7, 8], 0.1), 9);
  assert.equal(conformalLimit(Array.from({ length: 19 }, (_, i) => i), 0.1), 17);
  assert.equal(conformalLimit(Array.from({ length: 8 }, (_, i) => i), 0.1), null);
  const random = seededRandom(5);
  let above = 0;
  for (let round = 0; round < 4000; round += 1) {
    const scores = Array.from({ length: 20 }, () => random());
    if ((scores[19] as number) > (conformalLimit(scores.slice(0, 19), 0.1) as number)) above += 1;
  }
  between(above / 4000, 0.085, 0.115);
});

test("limits from a bank's own healthy runs keep the rate on the others, and losses are still found", () => {
  // Each healthy run scores its seed at most; a loss scores 100 from the third look on.
  const healthy = Array.from({ length: 40 }, (_, i) => ({ ...makeRun({ id: `h${i}`, seed: 1, skills: { math: steady } }), seed: i }));
  const lost = Array.from({ length: 5 }, (_, i) => makeRun({ id: `l${i}`, seed: 2, skills: { math: abrupt } }));
  const forgetting = new Set<unknown>(lost);
  const candidate: ScoreCandidate = { kind: "score", id: "made", label: "", family: "baseline", needs: "scores", rows: null, parameters: {}, score: (run) => looks.map((_, look) => (forgetting.has(run) ? (look >= 3 ? 100 : 0) : look === 2 ? run.seed : 0)) };
  const bank = new ScoredBank(candidate, [...healthy, ...lost]);
  assert.equal(bank.healthy.length, 40);
  const own = bank.byOwn(19, 300, 1);
  assert.ok(own !== null);
  between(own.falseAlarms, 0.08, 0.12);
  assert.ok(own.falseAlarmsSpread[0] < own.falseAlarmsSpread[1]);
  assert.deepEqual(bank.byOwn(19, 300, 1), own, "the same seed gives the same numbers");
  assert.equal(bank.byOwn(8, 10, 1), null);
  assert.equal(bank.byOwn(40, 10, 1), null, "no healthy run would be left to count on");
  assert.deepEqual(bank.at(34).falseAlarmsSpread, [5 / 40, 5 / 40]);
  assert.equal(bank.at(1000).ahead, 0);
  assert.equal(bank.at(1000).median, -Infinity);
  assert.equal(bank.at(34).median, own.median);
});
