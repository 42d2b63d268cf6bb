import assert from "node:assert/strict";
import { test } from "node:test";
import { compareSystems } from "../../../../src/domain/evaluation/compareSystems.ts";
import { evaluateSystem } from "../../../../src/domain/evaluation/evaluateSystem.ts";
import type { EvaluationRow } from "../../../../src/domain/evaluation/evaluationRow.ts";
import type { RoutedRow } from "../../../../src/domain/evaluation/evaluatedSystem.ts";
import { rowSentence } from "../../../../src/domain/evaluation/evaluationText.ts";
import { routingConfusion } from "../../../../src/domain/evaluation/routing.ts";
import { seesawIndex, seesawRows } from "../../../../src/domain/evaluation/seesawIndex.ts";
import { refusalOf, settingDifferences, type EvaluationSettings } from "../../../../src/domain/evaluation/settings.ts";
import { mcnemarExact } from "../../../../src/domain/statistics/pairs.ts";
import { seededRandom } from "../../../../src/domain/statistics/random.ts";
import { wilsonInterval } from "../../../../src/domain/statistics/shares.ts";
import { chain, counts, first, made, stage, system } from "./madeUpSystems.ts";

const near = (found: number | null | undefined, wanted: number, tolerance = 1e-9): void => assert.ok(found !== null && found !== undefined && Math.abs(found - wanted) <= tolerance, `${found} is not ${wanted}`);

test("the seesaw index by hand: as much won as lost is 1, one direction is 0, noise is nothing", () => {
  near(seesawIndex([{ change: 0.5, error: 0 }, { change: -0.5, error: 0 }]).index, 1);
  near(seesawIndex([{ change: 0.5, error: 0 }, { change: 0.2, error: 0 }]).index, 0);
  // 0.4 − 1.96·0.1 up, 0.3 − 1.96·0.05 down.
  const [up, down] = [0.4 - 0.196, 0.3 - 0.098];
  const found = seesawIndex([{ change: 0.4, error: 0.1 }, { change: -0.3, error: 0.05 }, { change: 0.02, error: 0.03 }]);
  near(found.index, (2 * Math.min(up, down)) / (up + down));
  near(found.magnitude, (up + down) / 3);
  assert.deepEqual(seesawIndex([{ change: 0.05, error: 0.04 }]), { index: null, magnitude: 0 });
});

test("the index of a chain's stages: none while nothing is lost, high where one skill is won and another lost", () => {
  const [one, two, three, all] = seesawRows([chain()]);
  assert.deepEqual([one?.split, two?.split, three?.split, all?.split], ["M0 → M1", "M1 → M2", "M2 → M3", "M0 … M3"]);
  near(one?.estimate, 0);
  assert.ok((two?.estimate ?? 0) > 0.3 && (two?.estimate ?? 0) < 0.8, String(two?.estimate));
  assert.ok(two?.interval && two.interval.low < (two.estimate ?? 0) && two.interval.high > (two.estimate ?? 0), JSON.stringify(two?.interval));
  assert.ok((all?.estimate ?? 0) > 0 && (all?.estimate ?? 1) < (three?.estimate ?? 0), "the first stage won without loss");
});

test("on 100 chains of pure noise the index is all but silent", () => {
  const random = seededRandom(2);
  let loud = 0;
  for (let round = 0; round < 100; round += 1) {
    const sets = ["a", "b", "c", "d"].map((skill) => [made(skill, "id", 64, () => random() < 0.6), made(skill, "id", 64, () => random() < 0.6)] as const);
    const [row] = seesawRows([system("noise", 0, [stage("M0", null, sets.map(([before]) => before)), stage("M1", null, sets.map(([, after]) => after))])]);
    if ((row?.estimate ?? 0) > 0.3) loud += 1;
  }
  assert.ok(loud <= 3, `${loud} of 100`);
});

test("a remedy against the baseline: paired by prompt and by seed, one correction over the table", () => {
  const remedied = (seed: number): ReturnType<typeof chain> => {
    const base = chain(seed);
    return { ...base, name: "replay", label: "replay", results: Object.keys(counts).flatMap((skill) => [made(skill, "id", 64, first(skill === "tool" ? 58 : 55)), made(skill, "ood", 32, first(12))]) };
  };
  const { rows, notes } = compareSystems([chain(0)], [[remedied(0)]]);
  const row = (measure: string, skill: string | null = null): (typeof rows)[number] => rows.find((one) => one.measure === measure && (skill === null || one.skill === skill)) as (typeof rows)[number];
  near(row("old-skills").estimate, ((55 - 10) / 64 + (55 - 50) / 64) / 2);
  near(row("new-skill").estimate, (58 - 62) / 64);
  near(row("new-skill").p, mcnemarExact(4, 0));
  near(row("skill", "math").estimate, 45 / 64);
  assert.deepEqual([row("ood").system, row("ood").from?.label, row("ood").to?.label], ["replay", "chain", "replay"]);
  assert.ok(rows.every(({ p, adjusted }) => p !== null && adjusted !== null && adjusted >= p - 1e-15));
  assert.deepEqual(notes, []);
  assert.match(rowSentence(row("new-skill")), /−6\.3 points .*: no change is shown .* a drop below 1\d\.\d points would mostly go unseen/);

  const more = compareSystems([chain(0), chain(1)], [[remedied(1), remedied(2)]]);
  assert.deepEqual(more.notes, ["replay: seed 0, 2 were run on one side only and are left out."]);
  assert.throws(() => compareSystems([chain(0)], [[remedied(3)]]), /replay and chain have no seed in common \(3 against 0\)/);
});

test("the smallest visible drop knows how far the seeds differ", () => {
  const lost = (counts: readonly number[]): EvaluationRow => {
    const base = counts.map((_, seed) => ({ ...chain(seed), results: [made("math", "id", 64, first(60))] }));
    const other = counts.map((count, seed) => ({ ...chain(seed), name: "other", results: [made("math", "id", 64, first(60 - count))] }));
    return compareSystems(base, [other]).rows.find(({ measure }) => measure === "all-skills") as EvaluationRow;
  };
  const [alike, apart] = [lost([20, 20, 20]), lost([17, 20, 23])];
  near(alike.estimate, apart.estimate ?? NaN);
  assert.equal(alike.resolution?.seeds, null);
  assert.ok((apart.smallestDrop ?? 0) > 1.1 * (alike.smallestDrop ?? 1), "seeds that disagree hide more");
  // What such a comparison shows in four of five cases is more than what it just shows: the half width of its interval.
  const half = (apart.estimate ?? 0) - (apart.interval?.low ?? 0);
  assert.ok((apart.smallestDrop ?? 0) > half, `${apart.smallestDrop} against ${half}`);
  assert.equal(lost([2, 30, 60]).smallestDrop, null, "no drop of any size would be shown");
});

test("a router's accuracy by set of prompts, the mean over skills, its regret and its confusion", () => {
  const routing: RoutedRow[] = [];
  const add = (skill: string, split: string, count: number, right: number): void => {
    for (let index = 0; index < count; index += 1) {
      const picked = index < right ? skill : skill === "math" ? "tool" : "math";
      routing.push({ key: `${skill}.${split}.${index}`, skill, split, picked, correct: { math: skill === "math", tool: skill === "tool" && index % 2 === 0 } });
    }
  };
  add("math", "id", 60, 60);
  add("tool", "id", 20, 10);
  add("math", "paraphrase", 40, 30);
  const { rows } = evaluateSystem([{ ...chain(), routing }]);
  const row = (measure: string, split: string): (typeof rows)[number] => rows.find((one) => one.measure === measure && one.split === split) as (typeof rows)[number];
  near(row("routing-accuracy", "id").estimate, 70 / 80);
  near(row("routing-accuracy", "id").interval?.low, wilsonInterval(70, 80).low);
  near(row("routing-accuracy-balanced", "id").estimate, 0.75);
  near(row("routing-accuracy", "paraphrase").estimate, 0.75);
  // Best expert: all 60 of math and 10 of tool; routed: 60 and 5.
  near(row("routing-regret", "id").estimate, -5 / 80);
  assert.equal(row("routing-regret", "id").p, null);
  const best = evaluateSystem([{ ...chain(), routing: routing.map((one) => ({ ...one, picked: one.skill })) }]).rows.find(({ measure }) => measure === "routing-regret");
  assert.deepEqual([best?.estimate, best?.interval?.high], [0, 0], "no choice is better than the best one");
  assert.deepEqual(routingConfusion(routing.filter(({ split }) => split === "id")), { skills: ["math", "tool"], picked: ["math", "tool"], counts: [[60, 0], [10, 10]] });
});

test("S05: settings are compared before scores, and the sentence names every field", () => {
  const base: EvaluationSettings = { harness: "0.4.2", task: "3", shots: 5, prompts: "aaaa", template: "t1", filter: "strict-match" };
  assert.equal(refusalOf(settingDifferences(base, { ...base }), "gsm8k"), null);
  assert.equal(refusalOf(settingDifferences(base, { ...base, filter: "flexible-extract" }), "gsm8k"), "gsm8k is not comparable: answer filter strict-match against flexible-extract. Score both with the same settings.");
  const moved = refusalOf(settingDifferences(base, { ...base, prompts: "bbbb", task: "4", harness: "0.4.5" }), "gsm8k");
  assert.match(moved ?? "", /the prompt set differs, version of the task 3 against 4, version of the harness 0\.4\.2 against 0\.4\.5/);
});
