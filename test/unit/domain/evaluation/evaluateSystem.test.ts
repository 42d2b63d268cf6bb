import assert from "node:assert/strict";
import { test } from "node:test";
import { evaluateSystem } from "../../../../src/domain/evaluation/evaluateSystem.ts";
import type { EvaluatedSystem } from "../../../../src/domain/evaluation/evaluatedSystem.ts";
import type { EvaluationRow } from "../../../../src/domain/evaluation/evaluationRow.ts";
import { rowSentence, tableNotes } from "../../../../src/domain/evaluation/evaluationText.ts";
import { evaluationCsv } from "../../../../src/domain/evaluation/evaluationCsv.ts";
import { holm } from "../../../../src/domain/statistics/corrections.ts";
import { mcnemarExact } from "../../../../src/domain/statistics/pairs.ts";
import { transferRows } from "../../../../src/domain/evaluation/transfer.ts";
import { seededRandom } from "../../../../src/domain/statistics/random.ts";
import { chain, first, made, stage, system } from "./madeUpSystems.ts";

const near = (found: number | null, wanted: number, tolerance = 1e-9): void => assert.ok(found !== null && Math.abs(found - wanted) <= tolerance, `${found} is not ${wanted}`);
const row = (rows: readonly EvaluationRow[], measure: string, skill: string | null = null, split?: string): EvaluationRow => {
  const found = rows.find((one) => one.measure === measure && one.skill === skill && (split === undefined || one.split === split));
  assert.ok(found, `no ${measure} of ${skill}`);
  return found;
};

test("the four questions and the transfer of a chain that forgets", () => {
  const { rows, seeds, correction } = evaluateSystem([chain()]);
  assert.deepEqual([seeds, correction], [[0], "holm"]);

  // Retention: math 60 → 10 of 64, search 58 → 50; the mean of the two ratios.
  const math = row(rows, "retention", "math");
  near(math.estimate, 10 / 60);
  assert.deepEqual([math.from, math.to, math.lost, math.gained], [{ label: "M1", accuracy: 60 / 64 }, { label: "M3", accuracy: 10 / 64 }, 50, 0]);
  near(math.p, mcnemarExact(50, 0));
  assert.ok(math.interval && math.interval.low > 0.08 && math.interval.high < 0.3, JSON.stringify(math.interval));
  near(row(rows, "retention", "search").estimate, 50 / 58);
  near(row(rows, "retention").estimate, (10 / 60 + 50 / 58) / 2);

  // The new skill is the last stage's: 4 → 62.
  const gain = row(rows, "gain", "tool");
  near(gain.estimate, 58 / 64);
  assert.equal(gain.from?.label, "M2");

  // OOD: floor(count / 8) of 32 rows; ID change in shares of 64.
  near(row(rows, "ood-shift", "math").estimate, 1 / 32 - 10 / 64);
  near(row(rows, "ood-accuracy").estimate, (1 / 32 + 6 / 32 + 7 / 32) / 3);

  // BWT over the two earlier stages, FWT over the two later ones, from M0.
  near(row(rows, "bwt").estimate, ((10 - 60) / 64 + (50 - 58) / 64) / 2);
  near(row(rows, "fwt").estimate, ((10 - 2) / 64 + (4 - 0) / 64) / 2);

  // Churn since the own stage.
  near(row(rows, "forgotten", "math", "id").estimate, 50 / 60);
  near(row(rows, "learned", "math", "id").estimate, 0);
  assert.ok((row(rows, "learned", "math", "id").interval?.high ?? 0) > 0.3, "four rows say little");
  assert.equal(rows.some(({ measure, skill }) => measure === "forgotten" && skill === "tool"), false, "nothing came after the last stage");

  assert.match(row(rows, "routing-accuracy").why ?? "", /no router/);

  // One correction over all tests of the table.
  const tested = rows.filter(({ p }) => p !== null);
  assert.ok(tested.length >= 8);
  assert.deepEqual(tested.map(({ adjusted }) => adjusted), holm(tested.map(({ p }) => p as number)).adjusted);
});

test("where every row agrees the intervals still have a width, and nothing says 'unchanged'", () => {
  const all = (count: number): EvaluatedSystem => system("flat", 0, [
    stage("M0", null, [made("math", "id", 64, first(0)), made("search", "id", 64, first(0))]),
    stage("M1", "math", [made("math", "id", 64, first(64)), made("search", "id", 64, first(0))]),
    stage("M2", "search", [made("math", "id", 64, first(count)), made("search", "id", 64, first(64))]),
  ]);
  const same = row(evaluateSystem([all(64)]).rows, "retention", "math");
  near(same.estimate, 1);
  assert.ok(same.interval && same.interval.low < 0.96 && same.interval.high > 1.01, JSON.stringify(same.interval));
  assert.equal(same.p, 1);
  const text = rowSentence(same);
  assert.match(text, /no change is shown/);
  assert.match(text, /no proof of none: a drop below \d+\.\d points/);
  assert.doesNotMatch(text, /unchanged|no forgetting/i);

  const gone = row(evaluateSystem([all(0)]).rows, "retention", "math");
  near(gone.estimate, 0);
  assert.ok(gone.interval && gone.interval.low === 0 && gone.interval.high > 0.02 && gone.interval.high < 0.1, JSON.stringify(gone.interval));
  assert.match(rowSentence(gone), /a loss \(p < 0\.001 after correction\)/);
  near(row(evaluateSystem([all(0)]).rows, "bwt").estimate, -1);
});

test("a skill that was not there has nothing to retain, and few prompts give no verdict", () => {
  const stages = [stage("M0", null, [made("math", "id", 20, first(1)), made("tool", "id", 20, first(0))]), stage("M1", "tool", [made("math", "id", 20, first(0)), made("tool", "id", 20, first(18))])];
  const { rows } = evaluateSystem([system("small", 0, stages)]);
  assert.match(row(rows, "retention", "math").why ?? "", /math was not known at M0 \(5 %\): there was nothing to retain/);
  assert.match(rowSentence(row(rows, "gain", "tool")), /Too few items: one item is 5\.0 points\. No verdict\./);
});

test("rows are paired by key, whatever their order; rows of one side only are counted and left out", () => {
  const whole = chain();
  const [m0, m1, m2, m3] = whole.stages as [typeof whole.stages[0], typeof whole.stages[0], typeof whole.stages[0], typeof whole.stages[0]];
  const shuffled = { ...m3, results: m3.results.map((set) => ({ ...set, rows: [...set.rows].reverse() })) };
  const mixed = evaluateSystem([system("chain", 0, [m0, m1, m2, shuffled])]).rows;
  near(row(mixed, "retention", "math").p, mcnemarExact(50, 0));
  const cut = { ...m3, results: m3.results.map((set) => ({ ...set, rows: set.rows.slice(0, 32) })) };
  const part = evaluateSystem([system("chain", 0, [m0, m1, m2, cut])]).rows;
  assert.deepEqual([row(part, "retention", "math").n, row(part, "retention", "math").leftOut], [32, 32]);
  assert.ok(tableNotes(part, [0], "holm").some((note) => note.includes("32 prompts")));
});

test("unlike settings are refused with the field that differs, and only where they matter", () => {
  const whole = chain();
  const changed = whole.stages.map((one) => (one.label === "M1" ? { ...one, results: one.results.map((set) => (set.skill === "math" && set.split === "id" ? { ...set, settings: { ...set.settings, max_tokens: 64, filter: "strict" } } : set)) } : one));
  const { rows } = evaluateSystem([system("chain", 0, changed)]);
  const why = row(rows, "retention", "math").why ?? "";
  assert.match(why, /^math ID is not comparable: longest answer in tokens 64 against 28, answer filter strict against not said\./);
  assert.equal(row(rows, "retention", "math").estimate, null);
  assert.match(row(rows, "bwt").why ?? "", /not comparable/);
  near(row(rows, "retention", "search").estimate, 50 / 58);
});

test("rows that share a group count as one piece of evidence", () => {
  const build = (group?: (row: number) => string): EvaluatedSystem => {
    const passes = (row: number): boolean => Math.floor(row / 8) % 2 === 0;
    const more = group === undefined ? {} : { group };
    return system("grouped", 0, [stage("M0", "math", [made("math", "id", 64, () => true, more), made("new", "id", 64, first(10), more)]), stage("M1", "new", [made("math", "id", 64, passes, more), made("new", "id", 64, first(60), more)])]);
  };
  const alone = row(evaluateSystem([build()]).rows, "bwt");
  const grouped = row(evaluateSystem([build((index) => `passage ${Math.floor(index / 8)}`)]).rows, "bwt");
  near(grouped.estimate, -0.5);
  assert.deepEqual([alone.groups, grouped.groups, grouped.n], [null, 8, 64]);
  const width = ({ interval }: EvaluationRow): number => (interval?.high ?? 0) - (interval?.low ?? 0);
  assert.ok(width(grouped) > 2 * width(alone), `${width(grouped)} against ${width(alone)}`);
  assert.ok((grouped.p ?? 0) > (alone.p ?? 1));
  assert.match(rowSentence(grouped), /Too few items/);
});

test("several seeds: the mean, an interval over seeds and rows, and no seed twice", () => {
  const shifts = [-6, 0, 6];
  const seeds = shifts.map((shift, seed) => chain(seed, (skill, at) => (skill === "math" && at === 3 ? shift : 0)));
  const three = row(evaluateSystem(seeds).rows, "retention", "math");
  near(three.estimate, 10 / 60);
  assert.equal(three.seeds, 3);
  const one = row(evaluateSystem([chain()]).rows, "retention", "math");
  const width = ({ interval }: EvaluationRow): number => (interval?.high ?? 0) - (interval?.low ?? 0);
  assert.ok(width(three) > 1.5 * width(one), `${width(three)} against ${width(one)}`);
  assert.match(three.method, /over the seeds/);
  assert.throws(() => evaluateSystem([chain(0), chain(0)]), /two runs of chain with seed 0/);
  assert.throws(() => evaluateSystem([chain(0), { ...chain(1), stages: chain(1).stages.slice(1) }]), /other stages/);
});

test("of 150 made-up experiments with 3 seeds and 64 rows, about 95 in 100 intervals hold the truth", () => {
  const random = seededRandom(5);
  const gaussian = (): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));
  let [held, kept] = [0, 0];
  // Truth: the mean over many rows and seeds.
  const truth = ((): number => {
    let sum = 0;
    for (let draw = 0; draw < 200_000; draw += 1) sum += sigmoid(gaussian() + 0.4 * gaussian() - 0.5) - 0.9;
    return sum / 200_000;
  })();
  for (let round = 0; round < 150; round += 1) {
    const rows = Array.from({ length: 64 }, gaussian);
    const systems = [0, 1, 2].map((seed) => {
      const effect = 0.4 * gaussian();
      const before = rows.map(() => random() < 0.9);
      const after = rows.map((easy) => random() < sigmoid(easy + effect - 0.5));
      const of = (passed: boolean[]) => [made("math", "id", 64, (index) => passed[index] as boolean), made("new", "id", 64, first(30))];
      return system("x", seed, [stage("M0", "math", of(before)), stage("M1", "new", of(after))]);
    });
    const found = row(transferRows(systems), "bwt");
    if (found.interval && found.interval.low <= truth && truth <= found.interval.high) held += 1;
    if (found.interval && found.interval.low <= -1 && found.interval.high >= 1) kept += 1;
  }
  assert.ok(held >= 137 && held < 150, `${held} of 150`);
  assert.equal(kept, 0, "and none says nothing");
});

test("the table as CSV has one line a row, with fractions", () => {
  const { rows, name } = evaluateSystem([chain()]);
  const lines = evaluationCsv([{ system: name, rows }]).trimEnd().split("\r\n");
  assert.equal(lines.length, rows.length + 1);
  assert.match(lines[0] ?? "", /^system,question,measure,skill,split,unit,estimate,low,high,p,p_adjusted/);
  assert.ok(lines.some((line) => line.startsWith("chain,retention,retention,math,id,ratio,0.1666")), lines[1]);
});

test("a set that was not checked is named, and the rest of the table stands", () => {
  const whole = chain();
  const stages = whole.stages.map((one) => (one.label === "M1" ? { ...one, results: one.results.filter(({ skill }) => skill !== "math") } : one));
  const { rows } = evaluateSystem([system("chain", 0, stages)]);
  assert.equal(row(rows, "retention", "math").why, "math ID was not checked at M1.");
  near(row(rows, "gain", "tool").estimate, 58 / 64);
});
