import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { amocOf, bestPoint, type AmocCurve } from "../../../../src/domain/battery/amoc.ts";
import { bankFile, evaluate, truthOf, type BankFile } from "../../../../src/domain/battery/bank.ts";
import { baselines } from "../../../../src/domain/battery/baselines/baselines.ts";
import type { Candidate, LevelCandidate } from "../../../../src/domain/battery/candidate.ts";
import { allCandidates, candidateById, settings, variantsOf } from "../../../../src/domain/battery/candidates.ts";
import { reportCard } from "../../../../src/domain/battery/card.ts";
import { cardMarkdown } from "../../../../src/domain/battery/cardMarkdown.ts";
import { ranking } from "../../../../src/domain/battery/choose.ts";
import { costsOf } from "../../../../src/domain/battery/costs.ts";
import { detectorCandidate, type WatchSetting } from "../../../../src/domain/battery/detectorCandidates.ts";
import { limitCandidate } from "../../../../src/domain/battery/limitCandidate.ts";
import { accuracyFalls } from "../../../../src/domain/battery/panelMargins.ts";
import { flagDefaults } from "../../../../src/domain/flags/defaults.ts";
import { lossLimit } from "../../../../src/domain/flags/expectedAccuracy.ts";
import { figuresOf } from "../../../../src/domain/battery/figures.ts";
import type { RawRun } from "../../../../src/domain/battery/rawRun.ts";
import { parseReportCard } from "../../../../src/protocol/reportCard.ts";
import { gradual, makeBank, makeRun } from "./makeRuns.ts";

/** A setting that is really good at this world (it knows temperature from loss), one that asks for far more change, and all baselines. */
const good = "shift-all-t0-n64";
const dull = "nll-n0.5-n64";
const candidates: Candidate[] = [candidateById(good), candidateById(dull), ...baselines(64)];

function judged(runs: RawRun[], tuned?: BankFile): BankFile {
  const evaluated = candidates.map((one) => evaluate(one, runs, tuned?.candidates.find(({ id }) => id === one.id)?.knob));
  const curves: AmocCurve[] = [candidateById("drop-n64"), candidateById("random")].map((one) => amocOf(one, runs, truthOf));
  return bankFile(tuned === undefined ? "A" : "B", runs, candidates, evaluated, [], curves);
}

const runsA = makeBank("A", 10, 9);
const a = judged(runsA);
const b = judged(makeBank("B", 10, 9), a);
const card = reportCard(a, b, 41.5);

test("made-up runs are what they were made for: the truth finds every loss and no other", () => {
  assert.deepEqual(a.runs.map((run) => run.class), runsA.map((run) => (run.id.includes("-f") ? "forgetting" : "healthy")));
  const events = a.runs.flatMap((run) => run.truth).filter((one) => one.class === "event");
  assert.equal(events.length, 9);
  assert.equal(events.filter((one) => one.speed === "abrupt").length, 3);
});

test("the detector that is better wins, finds the losses, and keeps its rate on runs that chose nothing", () => {
  assert.equal(card.detector.id, good);
  const [first] = card.panels;
  assert.equal(first?.rows, 64);
  assert.ok((first?.recall.hits ?? 0) >= 8, JSON.stringify(first?.recall));
  assert.ok((first?.false_alarms.hits ?? 9) <= 2, JSON.stringify(first?.false_alarms));
  assert.equal(card.copies.hits, 0);
  assert.ok(figuresOf(b, good).truth.ahead.hits >= figuresOf(b, dull).truth.ahead.hits);
});

test("a margin over accuracy has to hold at equal false alarms, too", () => {
  const { matched, beats, ahead } = card.against_accuracy;
  assert.ok(matched !== null && matched.false_alarms.hits <= (card.panels[0]?.false_alarms.hits ?? 0), JSON.stringify(matched));
  assert.equal(beats, ahead.low > 0 && matched.ahead.low > 0);
  // Everything lost is found by accuracy at every look as well, at the same rate: then more alarms are no merit.
  const equal: BankFile = { ...b, runs: b.runs.map((run) => ({ ...run, alarms: run.alarms.map((alarms, place) => (b.candidates[place]?.id === "drop-3-n64" ? (run.alarms[b.candidates.findIndex(({ id }) => id === good)] as string) : alarms)) })) };
  const against = reportCard(a, equal, 41.5).against_accuracy;
  assert.deepEqual([against.matched?.ahead.difference, against.matched?.ahead.low, against.beats], [0, 0, false]);
  if (against.ahead.low > 0) assert.match(cardMarkdown(reportCard(a, equal, 41.5), a, equal), /at equal false alarms there is \*\*no clear margin\*\*/);
});

test("chance finds few losses, and the winner's alarms at random looks lose their lead", () => {
  const random = figuresOf(b, "random");
  assert.ok(random.recall.share < 0.5, JSON.stringify(random.recall));
  assert.ok((card.random_ahead.share ?? 1) < (card.panels[0]?.lead.ahead.share ?? 0), JSON.stringify([card.random_ahead, card.panels[0]?.lead.ahead]));
});

test("KL does not know the direction: held to the rate it is later than the signed detector, and a fixed 0.2 says nothing of either", () => {
  assert.ok(figuresOf(a, "kl").truth.ahead.hits < figuresOf(a, good).truth.ahead.hits);
});

test("knobs are from bank A and not tuned again on bank B", () => {
  assert.deepEqual(b.candidates.map(({ id, knob }) => [id, knob]), a.candidates.map(({ id, knob }) => [id, knob]));
  for (const { id, knob } of a.candidates) {
    if (knob !== null && candidateById(id).fixed === undefined) assert.ok(figuresOf(a, id).falseAlarms.share <= 0.1, id);
  }
});

test("with ten healthy runs the rules keep the detector from alarming, whatever it found", () => {
  assert.equal(card.ships, "descriptive", "0 of 11 still allows 28 %");
  assert.equal(card.early, (card.panels[0]?.lead.median as number) > 0);
});

test("figures of bank A alone are never a claim", () => {
  const alone = reportCard(a, null, null);
  assert.deepEqual([alone.tested, alone.bank, alone.ships, alone.early, alone.watch_hidden], [false, "A", "descriptive", false, true]);
  assert.match(cardMarkdown(alone, a, null), /Not tested yet/);
});

test("the same runs give the same card, and it survives being written", () => {
  const again = reportCard(JSON.parse(JSON.stringify(a)) as BankFile, JSON.parse(JSON.stringify(b)) as BankFile, 41.5);
  assert.deepEqual(again, card);
  assert.deepEqual(parseReportCard(JSON.stringify(card)), JSON.parse(JSON.stringify(card)));
  assert.equal(parseReportCard("{}"), null);
  assert.equal(parseReportCard("nothing"), null);
});

test("the report says every loss as well: misses, the verdict, all candidates, no empty number", () => {
  const text = cardMarkdown(card, a, b);
  assert.match(text, /ships as a \*\*description only\*\*/);
  for (const { label } of b.candidates.filter(({ family }) => family === "baseline")) assert.ok(text.includes(label), label);
  assert.doesNotMatch(text, /undefined|NaN|\[object/);
  assert.ok(text.includes("at random looks"));
  assert.equal(text, cardMarkdown(card, JSON.parse(JSON.stringify(a)) as BankFile, JSON.parse(JSON.stringify(b)) as BankFile));
});

test("delay falls and false alarms rise along a curve", () => {
  const curve = a.amoc.find(({ id }) => id === "drop-n64") as AmocCurve;
  assert.ok(curve.points.length >= 2);
  assert.equal(bestPoint(curve, 0)?.rate, 0);
  assert.equal(bestPoint({ id: "x", points: [{ rate: 0.3, ahead: 1, found: 1, delay: 0 }] }, 0.2), null);
  curve.points.forEach((point, index) => {
    const before = curve.points[index - 1];
    if (before !== undefined) assert.ok(point.rate >= before.rate && point.ahead >= before.ahead, JSON.stringify(curve.points));
  });
});

test("costs are ratios to the training, scaled to the panel's rows; runs that train nothing are left out", () => {
  const costs = costsOf(a, 64);
  // Made runs: 2 s of panel on 128 rows against 10 s of training.
  assert.ok(Math.abs(costs.run_share - 0.1) < 1e-9);
  assert.ok(Math.abs(costs.answers_share - 0.15) < 1e-9);
  assert.ok(Math.abs(costs.look_share - 1 / 12 / (10 / 1.2)) < 1e-9);
  assert.equal(costs.looks, 12);
});

test("what is remembered from other budgets is what a fresh look would find", () => {
  for (const id of [good, "strict-all-t0-n64"]) {
    const setting = settings.find((one) => detectorCandidate(one, 64).id === id) as WatchSetting;
    const used = detectorCandidate(setting, 64);
    for (const run of runsA.slice(8, 13)) {
      for (const alpha of [0.4, 0.05, 0.2]) assert.equal(used.first(run, "math", alpha), detectorCandidate(setting, 64).first(run, "math", alpha), `${id} ${run.id} ${alpha}`);
    }
  }
});

test("ablations look at what they say, and never become the default", () => {
  const setting = settings.find((one) => detectorCandidate(one, 64).id === good) as WatchSetting;
  const [sparse, right] = [detectorCandidate(setting, 64, { ablation: "every-second-look" }), detectorCandidate(setting, 64, { ablation: "right-at-start" })];
  const lost = runsA.filter(({ id }) => id.includes("-f"));
  assert.ok(lost.every((run) => (sparse.first(run, "math", 0.4) ?? 1) % 2 === 1));
  assert.ok(lost.some((run) => (candidateById(good) as LevelCandidate).first(run, "math", 0.4) !== sparse.first(run, "math", 0.4)));
  // A row that was wrong at the start is not looked at, whatever becomes of it.
  const run = lost[0] as RawRun;
  const panel = run.panel["math"] as RawRun["panel"][string];
  const wrong = new Set([...(panel.right[0] as string)].flatMap((bit, row) => (bit === "0" ? [row] : [])));
  assert.ok(wrong.size > 3);
  const worse = { ...run, panel: { ...run.panel, math: { ...panel, margin: panel.margin.map((list, look) => (look === 0 ? list : list.map((margin, row) => (wrong.has(row) ? -40 : margin)))) } } };
  assert.equal(right.first(worse, "math", 0.1), right.first(run, "math", 0.1));
  const bank = { ...a, candidates: a.candidates.map((one) => (one.id === good ? { ...one, parameters: { ...one.parameters, ablation: "right-at-start" } } : one)) };
  assert.deepEqual(ranking(bank).map(({ id }) => id), [dull]);
});

test("without a single loss the card is made all the same, and claims nothing", () => {
  const healthy = judged(runsA.filter(({ id }) => !id.includes("-f")));
  const text = cardMarkdown(reportCard(healthy, null, null), healthy, null);
  assert.doesNotMatch(text, /undefined|NaN/);
  assert.match(text, /no events/);
  assert.ok(!JSON.stringify(reportCard(healthy, null, 40)).includes('"difference":null'));
});

test("every candidate has an id of its own, and the grid's first is the default that ties keep", () => {
  const ids = allCandidates().flatMap((one) => [one.id, ...(one.family === "baseline" ? [] : variantsOf(one.id).map(({ id }) => id))]);
  assert.equal(new Set(ids).size, ids.length);
  assert.deepEqual(allCandidates().slice(0, 2).map(({ id }) => id), ["limit-all-s1-n64", "soft-all-s1-t2-n64"]);
  assert.equal(settings.length, 40);
});

test("what the product does by default is what bank A chose, to the hundredth of a point", () => {
  const committed = JSON.parse(readFileSync(new URL("../../../../media/battery/bank-A.json", import.meta.url), "utf8")) as BankFile;
  const winner = committed.candidates.find(({ id }) => id === ranking(committed)[0]?.id);
  assert.equal(winner?.family, flagDefaults.detector);
  assert.deepEqual([winner?.parameters["margin"], winner?.parameters["scale"]], [flagDefaults.margin, flagDefaults.scale]);
  assert.equal(winner?.knob, lossLimit(flagDefaults.alpha));
});

test("a score in hundredths is above a limit of whole hundredths exactly where the loss is", () => {
  const run = makeRun({ id: "limit", seed: 5, skills: { math: gradual } });
  const [, ...scores] = limitCandidate(64, true).score(run, "math");
  for (const [look, fall] of accuracyFalls(run, "math", 64, 1).entries()) {
    for (const limit of [0.5, 2, 4.36]) assert.equal((scores[look] as number) > limit, 100 * fall > limit, `${look} ${limit}`);
  }
  assert.ok(scores.some((score) => score > 4.36));
  assert.equal(limitCandidate(256, false).fixed, lossLimit(0.1), "other panels have the product's limit");
});

test("a skill that cannot be watched takes no share of the budget and never alarms", () => {
  const run = makeRun({ id: "low", seed: 5, skills: { math: gradual, weak: { ...gradual, middle: -4 } } });
  const alone = makeRun({ id: "low", seed: 5, skills: { math: gradual } });
  const candidate = candidateById(good);
  assert.ok(candidate.kind === "level");
  assert.equal(candidate.first(run, "weak", 0.1), null);
  assert.equal(candidate.first(run, "math", 0.1), candidate.first(alone, "math", 0.1));
});
