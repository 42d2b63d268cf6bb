import assert from "node:assert/strict";
import { test } from "node:test";
import { conformalP } from "../../../../src/domain/flags/conformal.ts";
import { detectorIds } from "../../../../src/domain/flags/detector.ts";
import { detectors } from "../../../../src/domain/flags/detectors.ts";
import { densityAtZero } from "../../../../src/domain/flags/kernelDensity.ts";
import { decisionOf, decisionTokens, rowMargin, tokenMargins, type DecisionSetting } from "../../../../src/domain/flags/margins.ts";
import { whyNotMeasurable, type Measurability } from "../../../../src/domain/flags/measurable.ts";
import { drawnRow, fnv1a, resampleCounts } from "../../../../src/domain/flags/pairsBootstrap.ts";
import { resumeAfter, takeLook, takeTest, watchSeries, type RunWatch } from "../../../../src/domain/flags/states.ts";
import type { CheckSpec } from "../../../../src/protocol/checks.ts";
import type { FlagState, PairedTest } from "../../../../src/protocol/journal.ts";
import { readFixture, readSeries } from "./flagFixtures.ts";

const close = (actual: number, expected: number, what: string): void => {
  assert.ok(Math.abs(actual - expected) <= 1e-9 * Math.max(1, Math.abs(expected)), `${what}: ${actual} instead of ${expected}`);
};

test("every detector gives the verdicts of the reference on every series", () => {
  const series = readSeries();
  assert.ok(series.length >= 12);
  const seen = { alarms: 0, recovered: 0, calm: 0 };
  for (const { name, start, at, expected, ...setup } of series) {
    for (const id of detectorIds) {
      const open = detectors[id].open(start, setup);
      const wanted = expected[id];
      let watch = watchSeries([start.id]);
      const [states, checks]: [string[], number[]] = [[], []];
      at.forEach((scores, look) => {
        const verdict = open.look(scores);
        const where = `${name}, ${id}, look ${look}`;
        for (const field of ["estimate", "low", "high", "spent"] as const) close(verdict[field], wanted[field][look] as number, `${where}, ${field}`);
        close(verdict.threshold, wanted.threshold, `${where}, threshold`);
        assert.equal(verdict.alarm, wanted.alarm[look], `${where}, alarm`);
        assert.equal(verdict.clear, wanted.clear[look], `${where}, clear`);
        const next = takeLook(watch, start.id, scores.step, verdict);
        watch = next.watch;
        states.push(watch.get(start.id)?.state ?? "");
        if (next.asks) checks.push(look);
      });
      assert.deepEqual(states, wanted.states, `${name}, ${id}`);
      assert.deepEqual(checks, wanted.checks, `${name}, ${id}`);
      if (states.includes("drifting")) seen.alarms += 1;
      if (states.at(-1) === "recovered") seen.recovered += 1;
      if (states.every((state) => state === "calm")) seen.calm += 1;
    }
  }
  assert.ok(seen.alarms > 10 && seen.recovered >= 4 && seen.calm > 10, JSON.stringify(seen));
});

test("draws, hashes, densities and conformal p-values are those of numpy", () => {
  const pieces = readFixture<{
    fnv1a: { text: string; hash: number }[];
    draws: { seed: number; n: number; rows: number[] }[];
    last_draws: { seed: number; n: number; from: number; rows: number[] };
    density: { margins: number[]; density: number }[];
    conformal: { healthy: number[]; score: number; p: number | null }[];
  }>("pieces");
  for (const { text, hash } of pieces.fnv1a) assert.equal(fnv1a(text), hash);
  for (const { seed, n, rows } of pieces.draws) assert.deepEqual(rows.map((_, q) => drawnRow(seed, q, n)), rows);
  const { seed, n, from, rows } = pieces.last_draws;
  assert.deepEqual(rows.map((_, q) => drawnRow(seed, from + q, n)), rows);
  for (const { margins, density } of pieces.density) close(densityAtZero(Float64Array.from(margins)), density, "density");
  for (const { healthy, score, p } of pieces.conformal) assert.equal(conformalP(score, healthy), p);
});

test("every resample has n rows, drawn evenly", () => {
  const n = 40;
  const counts = resampleCounts(9, n);
  const totals = new Float64Array(n);
  for (let b = 0; b < counts.length / n; b += 1) {
    const drawn = counts.subarray(b * n, (b + 1) * n);
    assert.equal(drawn.reduce((sum, count) => sum + count, 0), n);
    drawn.forEach((count, row) => (totals[row] = (totals[row] as number) + count));
  }
  // Each row is drawn 4000 times on average, with standard deviation 62.
  for (const total of totals) assert.ok(Math.abs(total - 4000) < 300, String(total));
});

test("margins and decision tokens of hand-made rows", () => {
  const { rows } = readFixture<{
    rows: {
      check: CheckSpec["kind"]; setting: DecisionSetting | null; segments: string[]; logprob: number[]; ids: number[];
      topk_ids: number[]; topk_logprob: number[]; decision: number[]; all: number | null; margin_decision: number | null;
    }[];
  }>("margins");
  for (const row of rows) {
    const tokens = decisionTokens(decisionOf(row.check, row.setting), row.segments);
    assert.deepEqual(tokens, row.decision, `${row.check} ${String(row.setting)}`);
    const margins = tokenMargins({ ids: Uint32Array.from(row.ids), logprob: Float32Array.from(row.logprob), topkIds: Uint32Array.from(row.topk_ids), topkLogprob: Float32Array.from(row.topk_logprob) });
    if (margins === null) {
      assert.equal(row.all, null);
      continue;
    }
    // float32, as in a trace: -0.1 is not exactly -0.1.
    assert.ok(Math.abs(rowMargin(margins) - (row.all as number)) < 1e-6, `${rowMargin(margins)} instead of ${row.all}`);
    assert.ok(Math.abs(rowMargin(margins, tokens) - (row.margin_decision as number)) < 1e-6);
  }
});

test("the table of states, with tests, Holm and resumes", () => {
  const { cases } = readFixture<{
    cases: {
      name: string;
      series: string[];
      steps: ({ resumed: number } | { step: number; series: string; alarm: boolean; clear: boolean; before?: string; now?: string })[];
      asks: [number, string][];
      events: { step: number; id: string; state: FlagState; test?: PairedTest }[];
    }[];
  }>("states");
  const results = (text: string | undefined): boolean[] => [...(text ?? "")].map((right) => right === "1");
  for (const { name, series, steps, asks, events } of cases) {
    let watch: RunWatch = watchSeries(series);
    const [asked, raised]: [[number, string][], typeof events] = [[], []];
    for (const step of steps) {
      if ("resumed" in step) {
        watch = resumeAfter(watch, step.resumed);
        continue;
      }
      const look = takeLook(watch, step.series, step.step, step);
      watch = look.watch;
      if (look.raised !== null && look.raised !== "calm") raised.push({ step: step.step, id: step.series, state: look.raised });
      if (!look.asks) continue;
      asked.push([step.step, step.series]);
      const tested = takeTest(watch, step.series, step.step, results(step.before), results(step.now));
      watch = tested.watch;
      raised.push({ step: step.step, id: step.series, state: tested.raised, test: tested.test });
    }
    assert.deepEqual(asked, asks, name);
    assert.deepEqual(raised.map(({ test: _, ...event }) => event), events.map(({ test: _, ...event }) => event), name);
    raised.forEach((event, i) => {
      const wanted = events[i]?.test;
      assert.equal(event.test === undefined, wanted === undefined, name);
      for (const [field, value] of Object.entries(wanted ?? {})) close(Number(event.test?.[field as keyof PairedTest]), Number(value), `${name}: ${field}`);
    });
  }
});

test("why a series cannot be watched", () => {
  const { cases } = readFixture<{ cases: (Measurability & { reason: string | null })[] }>("reasons");
  for (const { reason, ...series } of cases) assert.equal(whyNotMeasurable(series), reason);
});
