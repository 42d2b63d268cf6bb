import assert from "node:assert/strict";
import { test } from "node:test";
import { flagCard, type FlagCardInput } from "../../../../src/domain/run/flagCard.ts";
import { withoutWatch } from "../../../../src/domain/run/flagEpisode.ts";
import { falseAlarmText, flagText } from "../../../../src/domain/run/flagText.ts";
import type { ChainRun } from "../../../../src/domain/run/chain.ts";
import { emptyRunState } from "../../../../src/domain/run/reduceRun.ts";
import type { FlagRecord, RunState } from "../../../../src/domain/run/runState.ts";
import type { CardLeads, ReportCard } from "../../../../src/protocol/reportCard.ts";

const flag: FlagRecord = {
  id: "math.id", skill: "math", split: "id", step: 20, state: "drifting", value: 7.04, lower: 3.2, high: 11.3, threshold: 2, noise: 0.01, level: 0.025, n: 64, seq: 1, t: 1, attempt: 1,
  detector: "soft", unit: "points", points: { estimate: 7.04, low: 3.2, high: 11.3 }, spent: 0.06, weak: false, margin: "all", smallest_drop: 9.4,
  moved: [{ row: 11, line: 12, tokens: [3, 6], change: -1.31 }, { row: 2, line: 3, tokens: [], change: -0.4 }],
};
const share = (hits: number, of: number): ReportCard["copies"] => ({ hits, of, share: hits / of, low: 0.02, high: 0.12 });
const leads: CardLeads = { events: 80, q1: 2, median: 12, q3: 30, median_low: 8, median_high: 15, ahead: share(60, 80) };
const card: ReportCard = {
  v: 1, detector: { id: "soft", family: "soft", parameters: {}, alpha: 0.1 }, bank: "B", tested: true, runs: { all: 120, healthy: 62, forgetting: 58, mixed: 0, left_out: 0, bases: ["m0", "m1"], steps: 120 }, nominal: 0.1,
  panels: [256, 64].map((rows) => ({ rows, false_alarms: share(rows === 64 ? 4 : 9, 62), precision: share(70, 80), recall: share(60, 80), lead: leads, lead_benchmark: leads })),
  by_kind: {}, copies: share(0, 10), prevalence: share(80, 200), by_speed: { abrupt: leads, gradual: leads }, against_accuracy: { ahead: { difference: 0.2, low: 0.1, high: 0.3 }, matched: null, beats: true }, random_ahead: share(5, 80),
  ships: "alarm", early: true, watch_hidden: false, cost: { rows: 64, run_share: 0.03, benchmark_share: 0.2, bytes_per_token: 70, looks: 12 },
};

function runOf(id: string, rise: number, change: Partial<RunState> = {}): ChainRun {
  const probes = [0, 20].map((step) => ({ step, skill: "math", split: "id" as const, trace: "", summary: { delta_nll: step === 0 ? 0 : rise } as never }));
  return { dir: "", id, stage: "search", spec: { recipe: "sft", flags: { alpha: 0.1, tolerance: 2 }, replay: null } as never, state: { ...emptyRunState(), status: "done", probes, ...change } };
}
const run = runOf("search-1", 3, { flags: [flag], flagHistory: [flag] });
const input: FlagCardInput = { flag, run, runs: [run], card, replay: { kind: "none" } };
const facts = (change: Partial<FlagCardInput> = {}): Record<string, string> => Object.fromEntries(flagCard({ ...input, ...change }).map(({ id, text }) => [id, text]));

test("a flag says what is lost, what the check could see, what it cost and where to look", () => {
  assert.equal(flagText(flag, "search"), "Correct answers are losing ground on math (in-domain) at step 20 of search: expected accuracy 7.0 points below the start of the stage (90 % band 3.2 to 11.3; tolerated 2.0 points; 64 prompts). The check was not run at this step.");
  assert.deepEqual(facts(), {
    loss: "7.0 points (90 % band 3.2 to 11.3)",
    visible: "on these 64 prompts it shows drops of 9.4 points or more in 4 of 5 cases, smaller ones less often",
    budget: "10 % per run, 6 % of it spent here so far",
    moved: "line 12 (−1.3 nats, at tokens 4, 7); line 3 (−0.4 nats)",
    replay: "no replay in this stage: no row of math was repeated",
    record: "in the battery, 4 of 62 runs without loss raised a flag (6.5 %, 95 % interval 2.0 % to 12.0 %).",
    lead: "before the loss reached 5 points in the battery: median +12 steps, quartiles +2 steps and +30 steps, over 80 skills with a loss of 5 points and 64 prompts",
    unusual: "no history yet: 0 of the 9 healthy runs of sft that are needed",
  });
});

test("nothing is said that the report card does not bear out", () => {
  assert.match(facts({ card: null })["record"] ?? "", /^this installation has no report card/);
  assert.equal(facts({ card: null })["lead"], undefined);
  const descriptive = facts({ card: { ...card, ships: "descriptive" } });
  assert.match(descriptive["record"] ?? "", /^descriptive only: the battery does not support it as an alarm, 4 of 62/);
  assert.equal(descriptive["lead"], undefined);
  assert.match(facts({ card: { ...card, early: false } })["lead"] ?? "", /^none to speak of; against/);
  assert.match(facts({ card: { ...card, tested: false, bank: "A" } })["record"] ?? "", /These are the runs it was chosen on/);
  assert.match(facts({ card: { ...card, detector: { ...card.detector, family: "shift" } } })["record"] ?? "", /about the detector shift, not about soft/);
  const { detector: _detector, unit: _unit, points: _points, spent: _spent, smallest_drop: _drop, moved: _moved, ...older } = flag;
  assert.deepEqual(Object.keys(facts({ flag: older })), ["replay", "record", "unusual"], "a flag of an older runner tells less");
  assert.match(flagText(older, "search"), /7\.04 nats less likely on average/);
});

test("the promise stands beside what the battery measured", () => {
  assert.equal(falseAlarmText(0.1), "The limits are set so that at most 1 in 10 runs without loss would show any flag.");
  assert.match(falseAlarmText(0.1, card), /any flag\. Measured in the battery for the detector soft: 9 of 62 \(95 % interval 2\.0 % to 12\.0 %\)\.$/);
});

test("what replay did for the rows that moved", () => {
  const rows = [{ source: "/d/math.train.jsonl", line: 7, similarity: 0.812 }];
  assert.equal(facts({ replay: { kind: "rows", buffer: "main", ratio: 0.1, rows, drawn: 0 } })["replay"], "10 % of each batch from main; nearest to what moved, and should have protected it: math.train.jsonl line 7 (similarity 0.81). None of them was drawn by then.");
  assert.match(facts({ replay: { kind: "rows", buffer: "main", ratio: 0.1, rows, drawn: 3 } })["replay"] ?? "", /They were drawn 3 times by then\.$/);
  assert.equal(facts({ replay: { kind: "rows", buffer: "main", ratio: 0.1, rows: [], drawn: 0 } })["replay"], "10 % of each batch from main, which has no row like those that moved");
});

test("unusual is told from nine healthy runs of the same recipe on", () => {
  const healthy = Array.from({ length: 9 }, (_, index) => runOf(`h-${index}`, index / 2));
  assert.equal(facts({ runs: [run, ...healthy.slice(1)] })["unusual"], "no history yet: 8 of the 9 healthy runs of sft that are needed");
  assert.equal(facts({ runs: [run, ...healthy] })["unusual"], "3 of 9 healthy runs of sft drifted as far (p = 0.40)");
  const flagged = runOf("f", 9, { flagHistory: [flag] });
  assert.equal(facts({ runs: [run, flagged, ...healthy] })["unusual"], "3 of 9 healthy runs of sft drifted as far (p = 0.40)", "a run with a flag is not healthy");
});

test("where the report card hides the watch, only a confirmed loss and its recovery are shown", () => {
  const at = (step: number, state: FlagRecord["state"]): FlagRecord => ({ ...flag, step, state });
  const state = { ...run.state, flagHistory: [at(10, "drifting"), at(20, "recovered"), at(30, "drifting"), at(30, "confirmed"), at(50, "recovered")] };
  for (const hiding of [{ ...card, watch_hidden: true }, { ...card, ships: "descriptive" as const }]) {
    assert.deepEqual(withoutWatch({ state }, hiding).state.flagHistory.map((one) => [one.step, one.state]), [[30, "confirmed"], [50, "recovered"]]);
    assert.deepEqual(withoutWatch({ state: { ...state, flagHistory: [at(10, "drifting")] } }, hiding).state.flags, []);
  }
  for (const showing of [null, card, { ...card, watch_hidden: true, detector: { ...card.detector, family: "shift" } }]) assert.deepEqual(withoutWatch({ state }, showing).state, state);
});
