import { changeClip, fitBoundary, marginChanges, pseudoValues, shiftNoise } from "./boundaryShift.ts";
import { clustersOf } from "./clusters.ts";
import type { Detector, DetectorId, DetectorSetup, FlagUnit, LookScores, OpenSeries, SeriesStart, Verdict } from "./detector.ts";
import { accuracyChanges, accuracyNoise, lossLimit } from "./expectedAccuracy.ts";
import { GroupSequential } from "./groupSequential.ts";
import { densityAtZero } from "./kernelDensity.ts";
import { cleanMargin } from "./margins.ts";
import { lossBand, resample, resampleCounts, seriesSeed } from "./pairsBootstrap.ts";
import { meanBounds, nllChanges } from "./sequenceNll.ts";
import { SumOfEValues } from "./sumOfEValues.ts";

/** The detectors by id, behind one interface. Each watches one series at the level alpha / series. */
export const detectors: Readonly<Record<DetectorId, Detector>> = {
  limit: { id: "limit", open: (start, setup) => openAccuracy(start, setup, limitTest(setup)) },
  nll: { id: "nll", open: openNll },
  shift: { id: "shift", open: (start, setup) => openShift(start, setup, sequentialTest) },
  soft: { id: "soft", open: (start, setup) => openAccuracy(start, setup, toleranceTest(setup)) },
  strict: { id: "strict", open: (start, setup) => openShift(start, setup, bettingTest) },
};

/** Mean rise of the sequence NLL against noise + tolerance, Bonferroni over the looks (decision 0005). */
function openNll(start: SeriesStart, setup: DetectorSetup): OpenSeries {
  const clusters = clustersOf(start.nll.length, start.groups);
  const threshold = start.noise.nll_q99 + setup.tolerance_nats;
  let j = 0;
  return {
    tolerance: setup.tolerance_nats,
    noise: start.noise.nll_q99,
    unit: "nats",
    look({ nll }) {
      j += 1;
      const share = setup.looks === null ? 1 / (j * (j + 1)) : 1 / setup.looks;
      const { mean, low, high } = meanBounds(nllChanges(start.nll, nll, clusters), (setup.alpha / setup.series) * share);
      const spent = (setup.looks === null ? 1 - 1 / (j + 1) : Math.min(1, j / setup.looks)) / setup.series;
      return { estimate: mean, low, high, unit: "nats", threshold, alarm: low > threshold, clear: high < threshold, spent };
    },
  };
}

/** What decides whether a look at the expected accuracy alarms, and what it is held against. */
interface AccuracyTest {
  /** Points. */
  threshold: number;
  alarm(resampled: ReturnType<typeof resample>, progress: number): boolean;
  /** Share of the run's budget, after a look with this progress. */
  spent(progress: number): number;
}

/** Expected accuracy in points. */
function openAccuracy(start: SeriesStart, setup: DetectorSetup, { threshold, alarm, spent }: AccuracyTest): OpenSeries {
  const margins = start.margins.map(cleanMargin);
  const clusters = clustersOf(margins.length, start.groups);
  const counts = resampleCounts(seriesSeed(start.id, start.seed), clusters.n);
  const noise = 100 * accuracyNoise(clusters.n, start.noise.margin_sd, setup.scale);
  return {
    tolerance: threshold,
    noise,
    unit: "points",
    look({ margins: now, progress }) {
      const resampled = resample(counts, accuracyChanges(margins, now, setup.scale, clusters));
      const alarmed = alarm(resampled, progress);
      const { estimate, low, high } = lossBand(resampled);
      return verdict({ estimate: 100 * estimate, low: 100 * low, high: 100 * high }, "points", threshold, noise, alarmed, spent(progress));
    },
  };
}

/** Group-sequential pairs-bootstrap-t against the tolerance. */
function toleranceTest({ alpha, series, tolerance }: DetectorSetup): AccuracyTest {
  const test = new GroupSequential(alpha / series);
  return { threshold: tolerance, alarm: (resampled, progress) => test.look(resampled, tolerance / 100, progress), spent: () => test.spent / alpha };
}

/** A limit that healthy runs of the battery keep to: no test, so it needs the resamples for the band alone. */
function limitTest({ alpha, series, tolerance }: DetectorSetup): AccuracyTest {
  const threshold = Math.max(lossLimit(alpha), tolerance);
  return { threshold, alarm: ({ mean }) => -100 * mean > threshold, spent: (progress) => progress / series };
}

/** What decides whether a look at the boundary shift alarms. Gets the pseudo-values' bootstrap and the clipped changes. */
interface ShiftTest {
  alarm(resampled: ReturnType<typeof resample>, changes: Float64Array, progress: number): boolean;
  /** Share of the run's budget, after a look with this progress. */
  spent(progress: number): number;
}

type ShiftTestMaker = (setup: DetectorSetup, delta: number, weights: Float64Array) => ShiftTest;

/** Boundary shift in nats. The tolerance in points becomes nats by the density of start margins at the decision. */
function openShift(start: SeriesStart, setup: DetectorSetup, testOf: ShiftTestMaker): OpenSeries {
  const margins = start.margins.map(cleanMargin);
  const clusters = clustersOf(margins.length, start.groups);
  const counts = resampleCounts(seriesSeed(start.id, start.seed), clusters.n);
  const fit = fitBoundary(margins, clusters);
  const delta = setup.tolerance > 0 ? setup.tolerance / 100 / densityAtZero(margins) : 0;
  const noise = shiftNoise(fit, start.noise.margin_sd);
  const test = testOf(setup, delta, fit.intercept.map((weight) => weight * clusters.n));
  return {
    tolerance: delta,
    noise,
    unit: "nats",
    look(scores: LookScores) {
      const changes = marginChanges(fit, scores.margins);
      const resampled = resample(counts, pseudoValues(fit, changes));
      const alarm = test.alarm(resampled, changes, scores.progress);
      return verdict(lossBand(resampled), "nats", delta, noise, alarm, test.spent(scores.progress));
    },
  };
}

function sequentialTest(setup: DetectorSetup, delta: number): ShiftTest {
  const test = new GroupSequential(setup.alpha / setup.series);
  return { alarm: (resampled, _changes, progress) => test.look(resampled, delta, progress), spent: () => test.spent / setup.alpha };
}

/** Its sum never falls, so after a recovery it alone would fire at once: a look alarms only if it shows the loss itself. */
function bettingTest(setup: DetectorSetup, delta: number, weights: Float64Array): ShiftTest {
  const sum = new SumOfEValues(changeClip * weights.reduce((most, weight) => Math.max(most, Math.abs(weight)), 0), delta);
  return {
    alarm: (resampled, changes, progress) => sum.look(changes.map((change, i) => change * (weights[i] as number)), progress) >= setup.series / setup.alpha && -resampled.mean > delta,
    spent: (progress) => progress / setup.series,
  };
}

/** An alarm that rescoring alone could explain is none. */
function verdict(band: { estimate: number; low: number; high: number }, unit: FlagUnit, threshold: number, noise: number, alarm: boolean, spent: number): Verdict {
  return { ...band, unit, threshold, alarm: alarm && band.estimate > noise, clear: band.high < threshold, spent };
}
