import assert from "node:assert/strict";
import { test } from "node:test";
import { benchmark, rawDrop, testedDrop, tunedDrop } from "../../../../src/domain/battery/baselines/accuracy.ts";
import { atRandomLooks, chance } from "../../../../src/domain/battery/baselines/chance.ts";
import { fixedKl, meanKl, meanNll, ofTraining } from "../../../../src/domain/battery/baselines/distance.ts";
import { alarmsOf, alphaGrid, firstAbove, type LevelCandidate, type ScoreCandidate } from "../../../../src/domain/battery/candidate.ts";
import { readRawRun, type RawRun } from "../../../../src/domain/battery/rawRun.ts";
import { tune } from "../../../../src/domain/battery/tune.ts";
import { clopperPearson } from "../../../../src/domain/statistics/shares.ts";
import { abrupt, gradual, looks, makeRun, steady } from "./makeRuns.ts";

const near = (found: number, wanted: number, tolerance: number): void => assert.ok(Math.abs(found - wanted) <= tolerance, `${found} is not ${wanted}`);

/** Runs of which only a number matters: their seed. */
const numbered = (values: readonly number[]): RawRun[] => values.map((seed) => ({ seed, skills: ["math"], looks: [0, 1, 2] }) as unknown as RawRun);
const bySeed: ScoreCandidate = { kind: "score", id: "seed", label: "", family: "baseline", needs: "scores", rows: null, parameters: {}, score: (run) => [99, 0, run.seed] };

test("Clopper–Pearson against published limits", () => {
  // 0/60: 1 − 0.025^(1/60); 6 of 60 as in earlywarning §9; 0/20 as there.
  near(clopperPearson(0, 60).high, 1 - 0.025 ** (1 / 60), 1e-9);
  near(clopperPearson(6, 60).low, 0.038, 5e-4);
  near(clopperPearson(6, 60).high, 0.205, 5e-4);
  near(clopperPearson(0, 20).high, 0.168, 5e-4);
  near(clopperPearson(20, 20).low, 1 - 0.168, 5e-4);
});

test("a threshold is the lowest that lets a tenth of the healthy runs alarm", () => {
  const healthy = numbered(Array.from({ length: 25 }, (_, i) => i));
  const threshold = tune(bySeed, healthy) as number;
  assert.equal(threshold, 22);
  assert.equal(healthy.filter((run) => firstAbove(bySeed.score(run, "math"), threshold) !== null).length, 2);
  // Any lower one would let a third run alarm.
  assert.equal(healthy.filter((run) => firstAbove(bySeed.score(run, "math"), threshold - 1e-9) !== null).length, 3);
  assert.equal(tune(bySeed, healthy, 0), 24);
  assert.equal(tune(bySeed, []), null);
  assert.equal(tune({ ...bySeed, fixed: 7 }, healthy), 7);
});

test("ties count as no alarm, so the rate is kept where many runs score alike", () => {
  const healthy = numbered([5, 5, 5, 5, 5, 5, 5, 5, 5, 5]);
  assert.equal(tune(bySeed, healthy), 5);
});

test("a budget is the largest of the grid that keeps the rate; none where even the smallest does not", () => {
  const fires = (at: number): LevelCandidate => ({ ...bySeed, kind: "level", first: (run, _skill, alpha) => (alpha * 100 > run.seed * at ? 1 : null) });
  const healthy = numbered(Array.from({ length: 20 }, (_, i) => i));
  for (const at of [0.5, 1, 3, 10, 30]) {
    const rate = (alpha: number): number => healthy.filter((run) => alarmsOf(fires(at), run, alpha)[0] !== null).length / 20;
    const best = alphaGrid.filter((alpha) => rate(alpha) <= 0.1).at(-1) ?? null;
    assert.equal(tune(fires(at), healthy), best, `at ${at}`);
  }
  assert.equal(tune(fires(0.05), healthy), null);
});

test("the look at the start is never an alarm", () => {
  assert.equal(firstAbove([9, 1, 9], 5), 2);
  assert.equal(firstAbove([9, 1, 2], 5), null);
});

test("accuracy baselines: a drop of exactly 3 points alarms, the benchmark only where it ran, the test only with evidence", () => {
  const run = makeRun({ id: "x", seed: 3, skills: { math: abrupt } });
  const alarm = alarmsOf(benchmark, run, benchmark.fixed as number)[0] as number;
  assert.equal(looks[alarm], 60);
  const bits = (lost: number): string => "0".repeat(lost) + "1".repeat(100 - lost);
  const hundred = { ...run, panel: { math: { ...run.panel["math"], right: looks.map((step) => bits(step === 0 ? 0 : step < 30 ? 2 : 3)) } } } as RawRun;
  assert.equal(looks[alarmsOf(rawDrop(100), hundred, rawDrop(100).fixed as number)[0] as number], 30);
  assert.equal(alarmsOf(testedDrop(100), hundred, -Math.log(0.1))[0], null);
  assert.equal(tunedDrop(50).score(hundred, "math")[6], 0.06, "three of the first fifty rows");
});

test("the exact test's evidence is corrected for looks and skills", () => {
  const one = makeRun({ id: "x", seed: 3, skills: { math: abrupt } });
  const two = makeRun({ id: "x", seed: 3, skills: { math: abrupt, tool: steady } });
  const last = (run: RawRun): number => testedDrop(128).score(run, "math").at(-1) as number;
  near(last(one) - last(two), Math.log(2), 1e-9);
});

test("distances: KL is not signed, NLL is, and what was not measured never alarms", () => {
  const run = makeRun({ id: "x", seed: 4, skills: { math: gradual } });
  assert.ok((meanNll(64).score(run, "math").at(-1) as number) > 0.1);
  assert.equal(fixedKl.fixed, 0.2);
  assert.deepEqual(meanKl.score(run, "math"), run.panel["math"]?.kl);
  const empty = { ...run, run: { ...run.run, val_loss: looks.map(() => null), loss: looks.map((_, look) => (look < 2 ? null : 3 - look)) } } as RawRun;
  const of = (id: string): ScoreCandidate => ofTraining.find((one) => one.id === id) as ScoreCandidate;
  assert.ok(of("val-loss").score(empty, "math").every((score) => score === -Infinity));
  assert.deepEqual(of("loss").score(empty, "math").slice(0, 5), [-Infinity, -Infinity, 0, 1, 2]);
});

test("alarms by chance: at about the rate asked for, for one skill, the same for the same run", () => {
  const runs = Array.from({ length: 1000 }, (_, i) => ({ id: `r${i}`, skills: ["a", "b"], looks }) as unknown as RawRun);
  const alarms = runs.map((run) => alarmsOf(chance, run, 0.2));
  const alarmed = alarms.filter((both) => both.some((look) => look !== null)).length;
  assert.ok(alarmed > 160 && alarmed < 240, String(alarmed));
  assert.ok(alarms.every((both) => both.filter((look) => look !== null).length <= 1));
  assert.deepEqual(alarms, runs.map((run) => alarmsOf(chance, run, 0.2)));
  const moved = runs.map((run) => atRandomLooks([3, null], run.id, looks.length));
  assert.ok(moved.every(([a, b]) => (a as number) >= 1 && (a as number) < looks.length && b === null));
  assert.equal(new Set(moved.map(([a]) => a)).size, looks.length - 1);
});

test("a run that is not whole is refused with a sentence", () => {
  const run = makeRun({ id: "x", seed: 1, skills: { math: steady } });
  assert.deepEqual(readRawRun(JSON.parse(JSON.stringify(run))), JSON.parse(JSON.stringify(run)));
  const faults: [(broken: RawRun) => void, RegExp][] = [
    [(broken) => (broken.skills = []), /watches no skill/],
    [(broken) => (broken.oracle["math"] as string[]).pop(), /oracle/],
    [(broken) => ((broken.panel["math"] as { margin: number[][] }).margin[3] as number[]).pop(), /panel\.margin/],
    [(broken) => ((broken.panel["math"] as { nll: (number | null)[][] }).nll[2] as (number | null)[])[0] = null, /not a number/],
    [(broken) => (broken.run.drift = []), /run\.drift/],
    [(broken) => ((broken as { v: number }).v = 2), /version 2/],
    [(broken) => (broken.looks = [0, 5, 5]), /do not rise/],
    [(broken) => ((broken.bench["math"] as (string | null)[])[0] = null), /benchmark/],
  ];
  for (const [breakIt, wanted] of faults) {
    const broken = JSON.parse(JSON.stringify(run)) as RawRun;
    breakIt(broken);
    assert.match(readRawRun(broken) as string, wanted);
  }
});
