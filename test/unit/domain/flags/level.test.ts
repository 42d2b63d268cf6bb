import assert from "node:assert/strict";
import { test } from "node:test";
import { detectorIds, type DetectorId, type DetectorSetup, type LookScores, type SeriesStart } from "../../../../src/domain/flags/detector.ts";
import { detectors } from "../../../../src/domain/flags/detectors.ts";
import { GroupSequential } from "../../../../src/domain/flags/groupSequential.ts";
import { resample, resampleCounts } from "../../../../src/domain/flags/pairsBootstrap.ts";
import { SumOfEValues } from "../../../../src/domain/flags/sumOfEValues.ts";
import { seededRandom } from "../../../../src/domain/statistics/random.ts";

/**
 * What the detectors promise, by simulation with fixed seeds. Limits are quantiles of the binomial law at the level promised
 * (99.9 %), so a detector that keeps its level passes whatever the seed, and one at twice its level fails.
 */
const uniform = seededRandom(2026);
const normal = (): number => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
const exponential = (): number => -Math.log(1 - uniform());

const setup: DetectorSetup = { alpha: 0.1, series: 1, looks: 6, tolerance: 2, tolerance_nats: 0.2, scale: 1 };
const looks = 6;

function startOf(n: number, run: number, noise = 0): SeriesStart {
  const margins = Float64Array.from({ length: n }, () => 1.2 + 1.8 * normal());
  return { id: "math.id", skill: "math", split: "id", seed: run, margins, nll: margins.map((margin) => Math.log1p(Math.exp(-margin))), correct: [], noise: { nll_q99: noise, margin_sd: noise } };
}

/** Number of runs with an alarm; `now` gives the margin of a row at a look from its start. */
function alarms(id: DetectorId, runs: number, n: number, now: (start: number, progress: number, row: number) => number, options: { noise?: number; setup?: Partial<DetectorSetup> } = {}): number {
  let count = 0;
  for (let run = 0; run < runs; run += 1) {
    const start = startOf(n, run, options.noise);
    const series = detectors[id].open(start, { ...setup, ...options.setup });
    const found = Array.from({ length: looks }, (_, j) => {
      const progress = (j + 1) / looks;
      const margins = start.margins.map((margin, row) => now(margin, progress, row));
      const scores: LookScores = { step: 10 * (j + 1), progress, margins, nll: margins.map((margin) => Math.log1p(Math.exp(-margin))) };
      return series.look(scores).alarm;
    });
    if (found.includes(true)) count += 1;
  }
  return count;
}

test("the group-sequential test keeps its level at the edge of the tolerance, whichever way the rows are skewed", () => {
  const [n, runs, delta] = [40, 200, 0.02];
  for (const [name, draw] of [["normal", normal], ["few lose much", () => 1 - exponential()], ["few gain much", () => exponential() - 1]] as const) {
    let count = 0;
    for (let run = 0; run < runs; run += 1) {
      const counts = resampleCounts(run * 7919, n);
      const sequential = new GroupSequential(0.1);
      const walk = new Float64Array(n);
      let found = false;
      for (let look = 1; look <= 5 && !found; look += 1) {
        for (let row = 0; row < n; row += 1) walk[row] = (walk[row] as number) + 0.05 * draw();
        found = sequential.look(resample(counts, walk.map((value) => value - delta)), delta, look / 5);
      }
      if (found) count += 1;
    }
    // 200 runs at 0.1: 20 expected, 99.9 % within 8 … 34. A test that never alarms is as wrong as one that alarms too often.
    assert.ok(count >= 8 && count <= 34, `${name}: ${count} of ${runs}`);
  }
});

test("the sum of e-values keeps its level without any approximation", () => {
  let count = 0;
  for (let run = 0; run < 2000; run += 1) {
    const sum = new SumOfEValues(1, 0);
    const signs = Float64Array.from({ length: 16 }, () => (uniform() < 0.5 ? 1 : -1));
    let found = false;
    for (let look = 1; look <= 4; look += 1) {
      signs[look] = uniform() < 0.5 ? 1 : -1;
      found ||= sum.look(signs, look / 4) >= 10;
    }
    if (found) count += 1;
  }
  assert.ok(count > 0 && count <= 243, `${count} of 2000`);
});

test("a change of temperature alone is no boundary shift", () => {
  const softer = (start: number, progress: number): number => start * (1 - 0.4 * progress) + 0.15 * normal();
  // At a level of 0.1 and no tolerance 6 of 60 may alarm; 99.9 % of the time at most 14.
  const shift = alarms("shift", 60, 64, softer, { setup: { tolerance: 0 } });
  assert.ok(shift <= 14, `shift: ${shift} of 60`);
  // What a mean of margins would say: every start margin is 1.2 on average, so it falls by up to 0.48.
  const fell = startOf(64, 0).margins.reduce((sum, margin) => sum + (softer(margin, 1) - margin) / 64, 0);
  assert.ok(fell < -0.2, String(fell));
});

test("copies of the start never alarm, with or without a tolerance", () => {
  for (const tolerance of [0, 2]) {
    for (const id of detectorIds) {
      const setup = { tolerance, tolerance_nats: tolerance / 10 };
      assert.equal(alarms(id, 20, 48, (start) => start + 0.002 * normal(), { noise: 0.003, setup }), 0, `${id}, tolerance ${tolerance}`);
      assert.equal(alarms(id, 2, 48, (start) => start, { setup }), 0, `${id}, exact copies, tolerance ${tolerance}`);
    }
  }
});

test("improving skills never alarm", () => {
  for (const id of detectorIds) assert.equal(alarms(id, 20, 48, (start, progress) => start + 1.5 * progress + 0.2 * normal()), 0, id);
});

test("a real loss is seen in most runs", () => {
  // Start margins N(1.2, 1.8²) have a density of 0.18 at 0 and more above: 0.9 nats cost some 18 points at the end, 3 at the first look.
  const losing = (start: number, progress: number): number => start - 0.9 * progress + 0.3 * normal();
  for (const id of ["soft", "shift", "nll"] as const) {
    const seen = alarms(id, 20, 64, losing);
    assert.ok(seen >= 16, `${id}: ${seen} of 20`);
  }
  const strict = alarms("strict", 20, 128, losing, { setup: { tolerance: 0 } });
  assert.ok(strict >= 10, `strict: ${strict} of 20`);
});

test("a run that starts with exact copies is watched all the same", () => {
  // A learning rate that warms up from 0. By the plain rule every path would be stopped at the first look.
  for (const id of ["soft", "shift"] as const) {
    const seen = alarms(id, 10, 64, (start, progress) => (progress < 0.4 ? start : start - 1.5 + 0.2 * normal()));
    assert.equal(seen, 10, id);
  }
  // And rows that all fall beyond the clip have no spread either.
  assert.equal(alarms("shift", 3, 64, (start, progress) => (progress < 0.4 ? start : start - 9)), 3);
});

test("a later alarm is paid from what is left: the paths stopped stay within the level", () => {
  const start = startOf(64, 3);
  const series = detectors.soft.open(start, { ...setup, series: 4, looks: 12 });
  let [spent, found] = [0, 0];
  for (let look = 1; look <= 12; look += 1) {
    const fall = look === 3 || look === 9 ? 2 : 0;
    const margins = start.margins.map((margin) => margin - fall + 0.1 * normal());
    const verdict = series.look({ step: look, progress: look / 12, margins, nll: start.nll });
    assert.ok(verdict.spent >= spent && verdict.spent <= 1 / 4 + 1e-9, String(verdict.spent));
    spent = verdict.spent;
    if (verdict.alarm) found += 1;
  }
  assert.equal(found, 2);
  assert.ok(spent > 0.2);
});
