import assert from "node:assert/strict";
import { test } from "node:test";
import { alarmText, alarmsIn } from "../../../../src/domain/battery/alarmText.ts";
import type { BankFile, BankRun } from "../../../../src/domain/battery/bank.ts";
import { decide, ranking } from "../../../../src/domain/battery/choose.ts";
import { clusteredShare, exactShare } from "../../../../src/domain/battery/clustered.ts";
import { figuresOf, pairedOf } from "../../../../src/domain/battery/figures.ts";
import { leadBeforeBenchmark, quantileOf } from "../../../../src/domain/battery/leads.ts";
import type { SkillTruth } from "../../../../src/domain/battery/truth.ts";

const looks = [0, 10, 20, 40, 80];
const clean: SkillTruth = { class: "clean", crossing: null, shown: null, transient: false, speed: null, loss: [] };
const grey: SkillTruth = { ...clean, class: "grey" };
const event = (crossing: number, shown: number, more: Partial<SkillTruth> = {}): SkillTruth => ({ ...clean, class: "event", crossing, shown, speed: "gradual", ...more });

/** A bank written by hand: of each run its class, the truth of its skills, and the alarms (index of the look, −1) by candidate and skill. */
function bankOf(runs: { kind?: BankRun["kind"]; class: BankRun["class"]; truth: SkillTruth[]; alarms: number[][] }[], ids = ["benchmark", "soft-x", "drop-n64"]): BankFile {
  return {
    v: 1, bank: "A", left_out: [], amoc: [],
    candidates: ids.map((id) => ({ id, label: id, family: id.startsWith("soft") ? "soft" : "baseline", needs: "scores", rows: 64, parameters: {}, kind: "level", knob: 0.1 })),
    runs: runs.map((run, index) => ({
      id: `r${index}`, kind: run.kind ?? "sft", intent: "healthy", base: "m0", start: "m0-all-1", seed: index, rate: 1e-4, class: run.class, looks, skills: run.truth.map((_, at) => `s${at}`), truth: run.truth, alarms: run.alarms.map((looks) => alarmText(looks.map((look) => (look < 0 ? null : look)))),
      seconds: { train: 10, panel: 1, panel_answers: 1, oracle: 1, bench: 1 }, tokens: { panel: 1, panel_scored: 1 }, panel_rows: 256,
    })),
  };
}

const bank = bankOf([
  { class: "healthy", kind: "continue", truth: [clean, clean], alarms: [[-1, -1], [-1, -1], [1, -1]] },
  { class: "healthy", kind: "copy", truth: [clean, clean], alarms: [[-1, -1], [-1, 2], [-1, -1]] },
  { class: "mixed", truth: [grey, clean], alarms: [[-1, -1], [1, -1], [-1, -1]] },
  // Crossing at 30: soft alarms at 20 (lead 10), accuracy at 40 (−10), the benchmark at 80.
  { class: "forgetting", truth: [event(30, 40), clean], alarms: [[4, -1], [2, -1], [3, -1]] },
  { class: "forgetting", truth: [event(15, 20, { speed: "abrupt" }), clean], alarms: [[3, -1], [2, 4], [2, -1]] },
  { class: "forgetting", truth: [event(50, 80, { transient: true }), clean], alarms: [[-1, -1], [1, -1], [-1, -1]] },
  { class: "forgetting", truth: [event(50, 80), clean], alarms: [[-1, -1], [-1, -1], [4, -1]] },
]);

test("alarms survive being written as text", () => {
  assert.equal(alarmText([null, 3, 11, 35]), ".3bz");
  assert.deepEqual(alarmsIn(".3bz"), [null, 3, 11, 35]);
});

test("false alarms are counted per healthy run, precision per skill, grey skills nowhere", () => {
  const figures = figuresOf(bank, "soft-x");
  assert.deepEqual([figures.falseAlarms.hits, figures.falseAlarms.of], [1, 2]);
  assert.deepEqual([figures.copies.hits, figures.copies.of], [1, 1]);
  assert.deepEqual(Object.keys(figures.byKind), ["continue", "copy"]);
  // Alarmed skills that count: three events, one clean in a copy, one clean in a forgetting run.
  assert.deepEqual([figures.precision.hits, figures.precision.of], [3, 5]);
  assert.deepEqual([figures.prevalence.hits, figures.prevalence.of], [4, 13]);
  assert.deepEqual([figures.grey.hits, figures.grey.of], [1, 1]);
});

test("recall and leads: misses are −∞ and stay in the distribution", () => {
  const figures = figuresOf(bank, "soft-x");
  assert.deepEqual([figures.recall.hits, figures.recall.of], [3, 4]);
  assert.deepEqual([figures.recallTransient.hits, figures.recallTransient.of], [1, 1]);
  // Leads 10, −5, 40, missed.
  assert.deepEqual([figures.truth.q1, figures.truth.median, figures.truth.q3], [-Infinity, -5, 10]);
  assert.deepEqual([figures.truth.ahead.hits, figures.truth.ahead.of], [2, 4]);
  // Before the benchmark: 60, 20, never seen, missed.
  assert.deepEqual([figures.benchmark.q1, figures.benchmark.median, figures.benchmark.q3], [-Infinity, 20, 60]);
  assert.equal(figures.benchmark.ahead.hits, 3);
  assert.deepEqual([figures.bySpeed.abrupt.events, figures.bySpeed.abrupt.median], [1, -5]);
});

test("a pair of candidates is compared on the same losses", () => {
  const { events, ahead, steps } = pairedOf(bank, "soft-x", "drop-n64");
  assert.equal(events, 4);
  // Before the crossing: soft 2 of 4, accuracy 0 of 4. Steps: 20, 0, ∞, −∞.
  assert.equal(ahead.difference, 0.5);
  assert.ok(ahead.low >= 0 && ahead.high <= 1);
  assert.equal(steps.difference, 0);
  const turned = pairedOf(bank, "drop-n64", "soft-x");
  assert.equal(turned.ahead.difference, -0.5);
});

test("leads and quantiles with infinities", () => {
  assert.equal(leadBeforeBenchmark(null, 40), -Infinity);
  assert.equal(leadBeforeBenchmark(20, null), Infinity);
  assert.equal(leadBeforeBenchmark(20, 60), 40);
  assert.equal(quantileOf([3, -Infinity, 1], 0.5), 1);
  assert.ok(Number.isNaN(quantileOf([], 0.5)));
});

test("shares of clustered skills are wider than of independent ones, and have a width where all agree", () => {
  const units = Array.from({ length: 60 }, (_, i) => ({ cluster: Math.floor(i / 6), hit: Math.floor(i / 6) < 5 }));
  const apart = units.map(({ hit }, i) => ({ cluster: i, hit }));
  const [together, alone] = [clusteredShare(units), clusteredShare(apart)];
  assert.equal(together.share, 0.5);
  assert.ok(together.high - together.low > 1.8 * (alone.high - alone.low));
  const all = clusteredShare(units.map((one) => ({ ...one, hit: true })));
  assert.deepEqual([all.hits, all.of, all.high], [60, 60, 1]);
  assert.equal(all.low, exactShare(10, 10).low, "ten runs, not sixty skills");
});

test("the rules fire on both sides", () => {
  const figures = (alarms: number, runs: number, right: number, wrong: number, median: number, copies = 0): Parameters<typeof decide>[0] => ({
    falseAlarms: exactShare(alarms, runs), precision: exactShare(right, right + wrong), truth: { median } as never, copies: exactShare(copies, 6),
  });
  assert.deepEqual(decide(figures(2, 60, 30, 5, 4), 0.1), { ships: "alarm", early: true, watchHidden: false });
  // 6 of 60: up to 20.5 %, more than twice 10 %.
  assert.equal(decide(figures(6, 60, 30, 5, 4), 0.1).ships, "descriptive");
  assert.equal(decide(figures(5, 60, 30, 5, 4), 0.1).ships, "alarm");
  assert.equal(decide(figures(0, 10, 30, 5, 4), 0.1).ships, "descriptive", "ten healthy runs prove nothing");
  assert.equal(decide(figures(2, 60, 30, 5, 4, 1), 0.1).ships, "descriptive", "an A/A copy alarmed");
  assert.equal(decide(figures(2, 60, 30, 5, 0), 0.1).early, false);
  assert.equal(decide(figures(2, 60, 30, 5, -Infinity), 0.1).early, false);
  assert.equal(decide(figures(2, 60, 30, 5, NaN), 0.1).early, false, "no losses, no lead");
  assert.equal(decide(figures(2, 60, 10, 11, 4), 0.1).watchHidden, true);
  assert.equal(decide(figures(2, 60, 0, 0, 4), 0.1).watchHidden, true, "no alarm was ever right");
});

test("the winner flags most losses before the crossing; one that breaks the rate cannot win", () => {
  const quiet = { class: "healthy" as const, truth: [clean] };
  const lost = (alarms: number[][]): Parameters<typeof bankOf>[0][number] => ({ class: "forgetting", truth: [event(30, 40)], alarms });
  const ids = ["benchmark", "soft-late", "soft-first", "soft-longer", "soft-loud"];
  const made = bankOf([
    ...Array.from({ length: 10 }, (_, i) => ({ ...quiet, alarms: [[-1], [-1], [-1], [-1], [i < 2 ? 1 : -1]] })),
    lost([[-1], [3], [2], [1], [1]]),
    lost([[-1], [3], [2], [1], [1]]),
    lost([[-1], [2], [-1], [-1], [1]]),
  ], ids);
  assert.deepEqual(ranking(made).map(({ id }) => id), ["soft-longer", "soft-first", "soft-late"]);
});
