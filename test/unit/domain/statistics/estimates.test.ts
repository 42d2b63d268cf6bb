import assert from "node:assert/strict";
import { test } from "node:test";
import { bootstrap } from "../../../../src/domain/statistics/bootstrap.ts";
import { combine, pValue, ratio, withSeeds, type Estimate } from "../../../../src/domain/statistics/estimates.ts";
import { correlation, mcnemarExact, tangoInterval } from "../../../../src/domain/statistics/pairs.ts";
import { minimumDetectableDifference, smallestVisibleDrop } from "../../../../src/domain/statistics/power.ts";
import { normalQuantile, studentQuantile } from "../../../../src/domain/statistics/quantiles.ts";
import { seededRandom } from "../../../../src/domain/statistics/random.ts";
import { wilsonInterval } from "../../../../src/domain/statistics/shares.ts";

const near = (found: number, wanted: number, tolerance: number, what = ""): void => assert.ok(Math.abs(found - wanted) <= tolerance, `${what} ${found} is not ${wanted}`);
const normal = (value: number, error: number): Estimate => ({ value, interval: (level) => ({ low: value - normalQuantile(0.5 + level / 2) * error, high: value + normalQuantile(0.5 + level / 2) * error }) });
const change = (lost: number, gained: number, n: number): Estimate => ({ value: (gained - lost) / n, interval: (level) => tangoInterval({ lost, gained, n }, level) });

test("joined normal estimates have the error of their sum", () => {
  const sum = combine([{ weight: 0.5, estimate: normal(1, 0.3) }, { weight: -0.5, estimate: normal(3, 0.4) }]);
  near(sum.value, -1, 1e-12);
  near(sum.interval(0.95).high + 1, 1.959964 * 0.25, 1e-5);
});

test("the mean of three skills' changes: as the bootstrap where that works, and with a width where it has none", () => {
  const sets: [number, number, number][] = [[12, 5, 64], [3, 9, 100], [20, 2, 80]];
  const joined = combine(sets.map(([lost, gained, n]) => ({ weight: 1 / 3, estimate: change(lost, gained, n) })));
  const rows = sets.map(([lost, gained, n]) => Array.from({ length: n }, (_, index) => (index < lost ? -1 : index < lost + gained ? 1 : 0)));
  const found = bootstrap(sets.map(([, , n]) => n), (drawn) => {
    let [first, total] = [0, 0];
    for (const values of rows) {
      total += values.reduce<number>((sum, value, index) => sum + value * (drawn[first + index] as number), 0) / values.length / 3;
      first += values.length;
    }
    return total;
  }, { resamples: 6000 });
  const interval = joined.interval(0.95);
  near(interval.low, found.interval.low, 0.012);
  near(interval.high, found.interval.high, 0.012);
  const flat = combine([{ weight: 1, estimate: change(0, 0, 64) }]).interval(0.95);
  assert.ok(flat.low < -0.03 && flat.high > 0.03);
});

test("a ratio of paired shares: 1 where they agree, narrower the more the rows agree, bounded below at 0", () => {
  const of = (kept: number, lost: number, gained: number, n: number): Estimate => {
    const [before, after] = [kept + lost, kept + gained];
    const share = (k: number): Estimate => ({ value: k / n, interval: (level) => wilsonInterval(k, n, level) });
    return ratio(share(after), share(before), correlation({ kept, lost, gained, n }));
  };
  const same = of(50, 5, 5, 100).interval(0.95);
  assert.ok(same.low < 1 && same.high > 1, JSON.stringify(same));
  const apart = of(30, 25, 25, 100).interval(0.95);
  assert.ok(apart.high - apart.low > 2 * (same.high - same.low), "less agreement, wider");
  const gone = of(0, 60, 0, 64);
  assert.equal(gone.value, 0);
  assert.equal(gone.interval(0.95).low, 0);
  assert.ok(gone.interval(0.95).high > 0.02 && gone.interval(0.95).high < 0.1, JSON.stringify(gone.interval(0.95)));
  // Against the bootstrap of the same table.
  const rows = [...Array<[number, number]>(60).fill([1, 1]), ...Array<[number, number]>(30).fill([1, 0]), ...Array<[number, number]>(10).fill([0, 1]), ...Array<[number, number]>(60).fill([0, 0])];
  const found = bootstrap([160], (drawn) => rows.reduce((sum, [, b], i) => sum + b * (drawn[i] as number), 0) / rows.reduce((sum, [a], i) => sum + a * (drawn[i] as number), 0), { resamples: 6000 });
  const interval = of(60, 30, 10, 160).interval(0.95);
  near(interval.low, found.interval.low, 0.02);
  near(interval.high, found.interval.high, 0.03);
});

test("the p-value is the level at which the interval reaches 0, for every kind of interval", () => {
  near(pValue(normal(1.959964, 1)), 0.05, 1e-6);
  assert.equal(pValue(normal(0, 1)), 1);
  for (const [lost, gained, n] of [[15, 4, 200], [2, 30, 64]] as const) {
    // Tango's interval is the inverse of the score test z² = (b − c)² / (b + c).
    const z = Math.abs(gained - lost) / Math.sqrt(gained + lost);
    const p = pValue(change(lost, gained, n));
    near(normalQuantile(1 - p / 2), z, 1e-4);
    const at = change(lost, gained, n).interval(1 - p);
    near(Math.min(Math.abs(at.low), Math.abs(at.high)), 0, 1e-6);
  }
});

test("seeds widen an interval by their own spread, and one seed by nothing", () => {
  const rows = normal(0.5, 0.05);
  assert.equal(withSeeds(rows, [0.5]), rows);
  const [within, between] = [0.05 ** 2, 0.1 ** 2 / 3];
  const t = studentQuantile(0.975, (within + between) ** 2 / (between ** 2 / 2));
  near(withSeeds(rows, [0.4, 0.5, 0.6]).interval(0.95).high - 0.5, t * Math.sqrt(within + between), 1e-5);
  near(withSeeds(rows, [0.5, 0.5, 0.5]).interval(0.95).high, rows.interval(0.95).high, 1e-12);
  // Where seeds are all there is, the interval is that of their t; where they hardly differ, that of the rows.
  near(withSeeds(normal(0.5, 1e-6), [0.4, 0.5, 0.6]).interval(0.95).high - 0.5, studentQuantile(0.975, 2) * Math.sqrt(between), 1e-5);
  near(withSeeds(rows, [0.499, 0.5, 0.501]).interval(0.95).high - 0.5, 1.959964 * 0.05, 1e-4);
});

/** Share of simulated benchmarks in which McNemar's one-sided test at 5 % sees a drop of this size. */
function power(n: number, discordance: number, drop: number): number {
  const random = seededRandom(11);
  const losing = (discordance + drop) / 2;
  let seen = 0;
  const rounds = 1500;
  for (let round = 0; round < rounds; round += 1) {
    let [lost, gained] = [0, 0];
    for (let row = 0; row < n; row += 1) {
      const draw = random();
      if (draw < losing) lost += 1;
      else if (draw < discordance) gained += 1;
    }
    if (mcnemarExact(lost, gained, "lost") <= 0.05) seen += 1;
  }
  return seen / rounds;
}

test("a benchmark sees the drop that is said to be the smallest it can see, four times in five", () => {
  for (const [n, background] of [[200, 0.2], [500, 0.1], [64, 0.3], [64, 0]] as const) {
    const drop = smallestVisibleDrop(n, background) as number;
    const found = power(n, background + drop, drop);
    assert.ok(found > 0.68 && found < 0.92, `power ${found} at ${drop}`);
    assert.ok(power(n, background + drop / 3, drop / 3) < 0.35, "and a third of it mostly not");
  }
  // Where the drop hardly adds to what changes anyway, it is that of the table in earlywarning §2.
  near(smallestVisibleDrop(20_000, 0.2) as number, minimumDetectableDifference(20_000, 0.2), 2e-4);
  // Five losses without a gain are the least that a one-sided test at 5 % accepts, however little power is asked for.
  near(smallestVisibleDrop(64, 0, { power: 0.5 }) as number, 5 / 64, 1e-12);
  assert.ok(mcnemarExact(5, 0, "lost") <= 0.05 && mcnemarExact(4, 0, "lost") > 0.05);
  assert.equal(smallestVisibleDrop(4, 0.2), null);
  assert.equal(smallestVisibleDrop(0, 0.1), null);
  assert.ok((smallestVisibleDrop(64, 0.1, { tests: 8 }) as number) > (smallestVisibleDrop(64, 0.1) as number));
});

test("the random numbers are uniform enough, differ by seed and never reach 1", () => {
  const random = seededRandom(1);
  const draws = Array.from({ length: 20_000 }, random);
  near(draws.reduce((sum, x) => sum + x, 0) / draws.length, 0.5, 0.01);
  near(draws.filter((x) => x < 0.1).length / draws.length, 0.1, 0.01);
  assert.ok(draws.every((x) => x >= 0 && x < 1));
  assert.notEqual(seededRandom(2)(), seededRandom(3)());
});
