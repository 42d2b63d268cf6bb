import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { bootstrap, pairedBootstrap } from "../../../../src/domain/statistics/bootstrap.ts";
import { adjustColumn, benjaminiHochberg, holm } from "../../../../src/domain/statistics/corrections.ts";
import { meanEstimate, pairedDifference } from "../../../../src/domain/statistics/means.ts";
import { mcnemarExact, newcombeInterval, tangoInterval } from "../../../../src/domain/statistics/pairs.ts";
import { wilsonInterval } from "../../../../src/domain/statistics/shares.ts";

/** Values of scipy and numpy: test/fixtures/make_statistics.py. */
interface Reference {
  mcnemar: { lost: number; gained: number; two_sided: number; lost_p: number; gained_p: number; mid_two_sided: number; mid_lost_p: number }[];
  tango: { lost: number; gained: number; n: number; level: number; interval: [number, number] }[];
  wilson: { k: number; n: number; interval: [number, number] }[];
  paired: { a: number[]; b: number[]; p: number; interval: [number, number]; percentile: [number, number]; bca: [number, number]; bootstrap_error: number }[];
  clustered: { a: number[]; b: number[]; clusters: string[]; error: number; p: number; bootstrap: [number, number] }[];
  holm: { p: number[]; adjusted: number[] };
  benjamini_hochberg: { p: number[]; adjusted: number[] };
  skewed: { values: number[]; bca: [number, number] };
}
const reference = JSON.parse(readFileSync(new URL("../../../fixtures/statistics.json", import.meta.url), "utf8")) as Reference;

const near = (found: number, wanted: number, tolerance: number, what = ""): void => assert.ok(Math.abs(found - wanted) <= tolerance, `${what} ${found} is not ${wanted}`);
const nearInterval = ({ low, high }: { low: number; high: number }, [a, b]: [number, number], tolerance: number, what = ""): void => {
  near(low, a, tolerance, `${what} low`);
  near(high, b, tolerance, `${what} high`);
};

test("McNemar's exact test and its mid-p agree with scipy's binomial test", () => {
  for (const one of reference.mcnemar) {
    const what = `${one.lost}/${one.gained}`;
    near(mcnemarExact(one.lost, one.gained), one.two_sided, 1e-10, what);
    near(mcnemarExact(one.lost, one.gained, "lost"), one.lost_p, 1e-10, what);
    near(mcnemarExact(one.lost, one.gained, "gained"), one.gained_p, 1e-10, what);
    near(mcnemarExact(one.lost, one.gained, "two-sided", true), one.mid_two_sided, 1e-10, what);
    near(mcnemarExact(one.lost, one.gained, "lost", true), one.mid_lost_p, 1e-10, what);
  }
});

test("Tango's closed form agrees with a likelihood that scipy maximises, Wilson with scipy", () => {
  for (const one of reference.tango) nearInterval(tangoInterval(one, one.level), one.interval, 2e-6, `${one.lost}/${one.gained} of ${one.n}`);
  for (const { k, n, interval } of reference.wilson) nearInterval(wilsonInterval(k, n), interval, 1e-9, `${k}/${n}`);
});

test("the airway example of Fagerland, Lydersen & Laake 2014: −0.517 to −0.026, Newcombe −0.507 to −0.026", () => {
  nearInterval(tangoInterval({ lost: 7, gained: 1, n: 21 }), [-0.517, -0.026], 5e-4);
  nearInterval(newcombeInterval({ kept: 1, lost: 7, gained: 1, n: 21 }), [-0.507, -0.026], 5e-4);
});

test("where nothing or everything changed, the paired intervals still have a width", () => {
  const none = tangoInterval({ lost: 0, gained: 0, n: 64 });
  assert.ok(none.low < -0.03 && none.high > 0.03 && none.high < 0.1, JSON.stringify(none));
  const all = tangoInterval({ lost: 64, gained: 0, n: 64 });
  near(all.low, -1, 1e-9);
  assert.ok(all.high > -0.95 && all.high < -0.85, JSON.stringify(all));
  assert.ok(newcombeInterval({ kept: 0, lost: 64, gained: 0, n: 64 }).high > -0.95);
});

test("paired t and its clustered error agree with scipy and numpy", () => {
  for (const one of reference.paired) {
    const found = pairedDifference(one.a, one.b);
    near(found.p, one.p, 1e-9);
    nearInterval(found.interval, one.interval, 1e-9);
  }
  for (const { a, b, clusters, error, p } of reference.clustered) {
    const found = pairedDifference(a, b, { clusters });
    near(found.standardError, error, 1e-12);
    near(found.p, p, 1e-9);
  }
});

test("the bootstrap agrees with scipy's within its own noise, and is the same for the same seed", () => {
  for (const { a, b, percentile, bca, bootstrap_error: error } of reference.paired) {
    const options = { resamples: 8000, seed: 3 };
    const found = pairedBootstrap(a, b, options);
    // A quantile of 8,000 draws has a standard error of about 0.03 standard errors of the statistic.
    nearInterval(found.interval, percentile, 0.15 * error, "percentile");
    nearInterval(pairedBootstrap(a, b, { ...options, method: "bca" }).interval, bca, 0.2 * error, "bca");
    near(found.standardError, error, 0.05 * error);
    assert.deepEqual(pairedBootstrap(a, b, options), found);
    assert.notEqual(pairedBootstrap(a, b, { ...options, seed: 4 }).standardError, found.standardError);
  }
  for (const one of reference.clustered) {
    const found = pairedBootstrap(one.a, one.b, { clusters: one.clusters, resamples: 8000 });
    nearInterval(found.interval, one.bootstrap, 0.2 * one.error);
  }
});

test("BCa follows the skew of a statistic that is not a mean", () => {
  const { values, bca } = reference.skewed;
  const deviation = (drawn: Float64Array): number => {
    let [n, sum] = [0, 0];
    values.forEach((value, index) => {
      n += drawn[index] as number;
      sum += (drawn[index] as number) * value;
    });
    return Math.sqrt(values.reduce((total, value, index) => total + (drawn[index] as number) * (value - sum / n) ** 2, 0) / n);
  };
  const found = bootstrap([values.length], deviation, { method: "bca", resamples: 20_000 });
  nearInterval(found.interval, bca, 0.05);
  const plain = bootstrap([values.length], deviation, { resamples: 20_000 });
  assert.ok(found.interval.high > plain.interval.high + 0.05, "the corrected interval reaches further up");
});

test("Holm and Benjamini–Hochberg agree with numpy and scipy, and cells without a test do not count", () => {
  holm(reference.holm.p).adjusted.forEach((p, index) => near(p, reference.holm.adjusted[index] as number, 1e-12));
  benjaminiHochberg(reference.benjamini_hochberg.p).adjusted.forEach((p, index) => near(p, reference.benjamini_hochberg.adjusted[index] as number, 1e-12));
  assert.deepEqual(adjustColumn([0.01, null, 0.04], "holm"), [0.02, null, 0.04]);
  assert.deepEqual(adjustColumn([null, 0.01, 0.02, null], "benjamini-hochberg"), [null, 0.02, 0.02, null]);
});

test("a clustered mean of one group has no interval", () => {
  assert.ok(Number.isNaN(meanEstimate([1, 0, 1], { clusters: ["a", "a", "a"] }).standardError));
});
