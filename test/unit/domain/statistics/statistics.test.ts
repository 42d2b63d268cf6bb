import assert from "node:assert/strict";
import { test } from "node:test";
import { entropyOf, finiteMean, klDivergence, logSoftmax, tokenWeightedPerplexity, topKDivergence } from "../../../../src/domain/drift/divergence.ts";
import { incompleteBeta, normalCdf, normalQuantile, studentCdf, studentQuantile } from "../../../../src/domain/statistics/quantiles.ts";
import { holm } from "../../../../src/domain/statistics/corrections.ts";
import { meanEstimate, pairedDifference } from "../../../../src/domain/statistics/means.ts";
import { mcnemarExact, pairById, tooFewItems } from "../../../../src/domain/statistics/pairs.ts";
import { itemsNeeded, minimumDetectableDifference } from "../../../../src/domain/statistics/power.ts";
import { clopperPearson, wilsonInterval } from "../../../../src/domain/statistics/shares.ts";

const near = (found: number, wanted: number, tolerance = 5e-5, what = ""): void => assert.ok(Math.abs(found - wanted) <= tolerance, `${what} ${found} is not ${wanted}`);

test("quantiles agree with tables (R: qnorm, qt, pbeta)", () => {
  near(normalQuantile(0.975), 1.959963984540054, 1e-12);
  near(normalQuantile(0.8), 0.8416212335729143, 1e-12);
  near(normalQuantile(1e-6), -4.753424308822899, 1e-10);
  near(normalCdf(-8), 6.220960574271785e-16, 1e-27);
  near(studentQuantile(0.975, 9), 2.2621571627982, 1e-9);
  near(studentQuantile(0.975, 1), 12.7062047361747, 1e-7);
  near(studentQuantile(0.05, 30), -1.69726088659396, 1e-9);
  near(studentCdf(2, 5), 0.949030260585071, 1e-12);
  near(incompleteBeta(0.3, 2, 5), 0.579825, 1e-12);
  near(incompleteBeta(0.5, 200, 200), 0.5, 1e-9);
});

/** 200 items: both right 114, only a 4, only b 15 (case S01). */
const a = [...Array<number>(114).fill(1), ...Array<number>(4).fill(1), ...Array<number>(15).fill(0), ...Array<number>(67).fill(0)];
const b = [...Array<number>(114).fill(1), ...Array<number>(4).fill(0), ...Array<number>(15).fill(1), ...Array<number>(67).fill(0)];

test("S01: the same items are compared in pairs", () => {
  const difference = pairedDifference(a, b);
  near(difference.mean, 0.055, 1e-12);
  near(difference.standardError, 0.0215);
  near(mcnemarExact(4, 15), 0.01921);
  near(mcnemarExact(15, 4, "lost"), 0.009605);
  near(mcnemarExact(15, 4, "gained"), 1 - 0.00221252, 1e-5);
  assert.equal(mcnemarExact(0, 0), 1);
  assert.ok(difference.p > 0.01 && difference.p < 0.0115, String(difference.p));
  assert.ok(difference.interval.low > 0.01 && difference.interval.high < 0.1);
});

test("S01: items of one run only are counted and left out", () => {
  const { pairs, onlyA, onlyB } = pairById(new Map([["1", true], ["2", false], ["3", true]]), new Map([["2", true], ["3", true], ["4", true], ["5", false]]));
  assert.deepEqual([pairs.map((pair) => pair.id), onlyA, onlyB], [["2", "3"], 1, 2]);
});

test("S02: intervals for small n, and no verdict without evidence", () => {
  for (const [correct, n, low, high] of [[12, 15, 0.548, 0.93], [14, 15, 0.702, 0.988], [10, 10, 0.722, 1]] as const) {
    const interval = wilsonInterval(correct, n);
    near(interval.low, low, 5e-4);
    near(interval.high, high, 5e-4);
  }
  assert.equal(tooFewItems(15), "Too few items: one item is 6.7 points.");
  assert.equal(tooFewItems(64), null);
  assert.equal(itemsNeeded(12 / 15, 14 / 15), 99);
  near(clopperPearson(0, 60).high, 0.0596, 5e-4);
  near(clopperPearson(6, 60).low, 0.038, 5e-4);
  near(clopperPearson(6, 60).high, 0.205, 5e-4);
});

test("S03: Holm keeps two of twelve", () => {
  const p = [0.001, 0.004, 0.012, 0.03, 0.04, 0.045, 0.2, 0.31, 0.5, 0.62, 0.8, 0.95];
  const { adjusted, rejected } = holm(p);
  assert.deepEqual(rejected.flatMap((one, index) => (one ? [index] : [])), [0, 1]);
  near(adjusted[0] as number, 0.012);
  near(adjusted[2] as number, 0.12);
  assert.equal(adjusted[11], 1);
  assert.deepEqual(holm([0.04, 0.01]).adjusted, [0.04, 0.02]);
});

test("S04: questions that share a passage count as one cluster", () => {
  // 10 passages of 8 questions, and how many of each are right.
  const counts = [6, 8, 7, 6, 7, 0, 4, 1, 1, 1];
  const values = counts.flatMap((right) => Array.from({ length: 8 }, (_, index) => (index < right ? 1 : 0)));
  const clusters = counts.flatMap((_, index) => Array<string>(8).fill(`passage ${index}`));
  assert.equal(meanEstimate(values).mean, 0.5125);
  near(meanEstimate(values).standardError, 0.0562);
  const clustered = meanEstimate(values, { clusters, smallSample: false });
  assert.equal(clustered.clusters, 10);
  near(clustered.standardError, 0.1152);
  near(meanEstimate(values, { clusters }).standardError / clustered.standardError, Math.sqrt(10 / 9), 1e-12);
  assert.equal(meanEstimate(values, { clusters }).df, 9);
});

test("the smallest detectable difference, against the table of earlywarning §2", () => {
  near(100 * minimumDetectableDifference(100, 0.1), 7.9, 0.05);
  near(100 * minimumDetectableDifference(200, 0.05), 3.9, 0.05);
  near(100 * minimumDetectableDifference(50, 0.2, { level: 0.0125 }), 19.5, 0.5);
});

test("L05: −∞ is defined everywhere", () => {
  const rowA = logSoftmax([2, 1, -Infinity, 0]);
  const rowB = logSoftmax([1, -Infinity, 0.5, 0]);
  near(entropyOf(rowA), 0.832396, 1e-6);
  near(entropyOf(logSoftmax([2, 1, null, 0])), 0.832396, 1e-6);
  near(entropyOf(logSoftmax([2, 1, -9999, 0])), 0.832396, 1e-6);
  assert.equal(klDivergence(rowA, logSoftmax([2, 1, -Infinity, 0])).kl, 0);
  assert.deepEqual(klDivergence(rowA, rowB), { kl: Infinity, infiniteAt: [1] });
  assert.deepEqual(finiteMean([1, 3, Infinity]), { mean: 2, infinite: 1 });
  assert.deepEqual(finiteMean([Infinity]), { mean: null, infinite: 1 });
});

test("L06: top-k lists give a lower bound of the KL and an interval of the total variation", () => {
  const p = [0.5, 0.22, 0.12, 0.08, 0.05, 0.03];
  const q = [0.62, 0.24, 0.04, 0.04, 0.03, 0.03];
  const full = klDivergence(p.map(Math.log), q.map(Math.log)).kl;
  near(full, 0.086128, 1e-6);
  const found = topKDivergence({ ids: [0, 1], logprobs: p.slice(0, 2).map(Math.log) }, { ids: [1, 0], logprobs: [q[1] as number, q[0] as number].map(Math.log) });
  near(found.klAtLeast, 0.067383, 1e-6);
  near(found.coveredP, 0.72, 1e-12);
  near(found.coveredQ, 0.86, 1e-12);
  const exact = p.reduce((sum, value, index) => sum + Math.abs(value - (q[index] as number)), 0) / 2;
  assert.ok(found.totalVariation.low <= exact + 1e-12 && exact <= found.totalVariation.high, JSON.stringify(found.totalVariation));
  near(found.totalVariation.low, 0.14, 1e-9);
  near(found.totalVariation.high, 0.28, 1e-9);
  const disjoint = topKDivergence({ ids: [0], logprobs: [Math.log(0.9)] }, { ids: [1], logprobs: [Math.log(0.8)] });
  assert.deepEqual([disjoint.klAtLeast, disjoint.totalVariation.low, disjoint.totalVariation.high], [0, 0, 1]);
});

test("L10: perplexity weighs tokens, not documents", () => {
  near(tokenWeightedPerplexity([{ nll: 101.4507, tokens: 100 }, { nll: 40.9172, tokens: 10 }]), 3.648272, 1e-6);
  near(tokenWeightedPerplexity([{ nll: 60, tokens: 60 }, { nll: 41.4507, tokens: 40 }, { nll: 40.9172, tokens: 10 }]), 3.648272, 1e-6);
});
