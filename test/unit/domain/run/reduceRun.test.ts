import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { parseJournalLine } from "../../../../src/domain/run/journalLine.ts";
import { emptyRunState, reduceEvent, reduceEvents, runSeconds } from "../../../../src/domain/run/reduceRun.ts";
import type { RunState } from "../../../../src/domain/run/runState.ts";
import type { JournalEvent, UnknownEvent } from "../../../../src/protocol/journal.ts";
import { decodeNumber } from "../../../../src/protocol/numbers.ts";
import { AppError } from "../../../../src/util/errors.ts";

const fixtures = new URL("../../../fixtures/protocol/journal/", import.meta.url);
const names = readdirSync(fixtures).filter((name) => name.endsWith(".jsonl")).map((name) => name.replace(".jsonl", ""));

/** Whole lines only, as the store reads them. */
function linesOf(name: string): string[] {
  return readFileSync(new URL(`${name}.jsonl`, fixtures), "utf8").split("\n").slice(0, -1);
}

function reduceFixture(name: string): RunState {
  const events: (JournalEvent | UnknownEvent)[] = [];
  let bad = 0;
  for (const text of linesOf(name)) {
    const line = parseJournalLine(text);
    if (line.kind === "bad") bad += 1;
    else events.push(line.event);
  }
  return { ...reduceEvents(emptyRunState(), events), badLines: bad };
}

/** The wire's "NaN" and "Infinity" in an expectation stand for the numbers. */
function decoded(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(decoded);
  if (typeof value === "object" && value !== null) return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, decoded(item)]));
  return typeof value === "string" ? decodeNumber(value) ?? value : value;
}

/** What an expectation may ask of a state besides its fields. */
const views: Record<string, (state: RunState) => unknown> = {
  metric_steps: (state) => state.metrics.map((point) => point.step),
  loss_at: (state) => Object.fromEntries(state.metrics.map((point) => [point.step, point.values["loss"]])),
  replaced_steps: (state) => state.replacedMetrics.map((point) => point.step).sort((a, b) => b - a),
  checkpoint_steps: (state) => state.checkpoints.map((checkpoint) => checkpoint.step),
  final_checkpoint: (state) => state.checkpoints.find((checkpoint) => checkpoint.final)?.path ?? null,
  probe_steps: (state) => state.probes.map((point) => point.step),
  eval_correct: (state) => state.evals.map((point) => point.correct),
  flag_states: (state) => state.flags.map((flag) => flag.state),
  flag_history: (state) => state.flagHistory.map((flag) => flag.state),
  warning_codes: (state) => state.warnings.map((warning) => warning.code),
  warning_messages: (state) => state.warnings.map((warning) => warning.message),
};

test("there are fixtures", () => assert.ok(names.length >= 10, names.join()));

for (const name of names) {
  test(`journal fixture: ${name}`, () => {
    const expected = decoded(JSON.parse(readFileSync(new URL(`${name}.expected.json`, fixtures), "utf8"))) as Record<string, unknown>;
    if (expected["error"] !== undefined) {
      assert.throws(() => reduceFixture(name), (error) => AppError.is(error) && error.reason === expected["error"]);
      return;
    }
    const state = reduceFixture(name);
    for (const [key, value] of Object.entries(expected)) {
      if (key === "torn") continue;
      const found = views[key] === undefined ? state[key as keyof RunState] : views[key](state);
      if (key === "loss_at") for (const [step, loss] of Object.entries(value as object)) assert.equal((found as Record<string, number>)[step], loss, `loss at ${step}`);
      else assert.deepEqual(found, value, key);
    }
  });
}

test("one event at a time gives the same as all at once", () => {
  for (const name of ["complete", "resumed", "out-of-order", "fenced", "non-finite"]) {
    const all = reduceFixture(name);
    let state = emptyRunState();
    for (const text of linesOf(name)) {
      const line = parseJournalLine(text);
      assert.notEqual(line.kind, "bad");
      if (line.kind !== "bad") state = reduceEvent(state, line.event);
    }
    assert.deepEqual(state, all);
  }
});

test("the given state is never changed", () => {
  let state = emptyRunState();
  for (const text of linesOf("resumed")) {
    const line = parseJournalLine(text);
    if (line.kind === "bad") continue;
    const before = JSON.stringify(state);
    const next = reduceEvent(state, line.event);
    assert.equal(JSON.stringify(state), before);
    state = next;
  }
});

test("after a resume the replaced part stays, pale: steps 200 and 210 occur twice (case R12)", () => {
  const state = reduceFixture("resumed");
  const steps = [...state.metrics, ...state.replacedMetrics].map((point) => point.step);
  assert.equal(steps.length, 28);
  assert.deepEqual(steps.filter((step, index) => steps.indexOf(step) !== index).sort(), [200, 210]);
});

test("a resume from scratch makes everything before it void", () => {
  const state = reduceFixture("complete");
  const again = { v: 1, seq: 17, t: 2000, attempt: 2, type: "run.started", stage: "search", recipe: "sft", device: "cuda", dtype: "bfloat16", parameters: 1, trainable: 1, total_steps: 40, start_label: "M1", rows: 1, replay_rows: 0, resumed_from: null, packages: {}, processes: 1 } as const;
  const next = reduceEvent(state, again as unknown as JournalEvent);
  assert.deepEqual([next.status, next.metrics.length, next.replacedMetrics.length, next.checkpoints.length, next.flags.length, next.reason], ["running", 0, 3, 0, 0, null]);
  assert.deepEqual(next.resumes, []);
});

test("a run took what its attempts took, without the time between them", () => {
  const head = (seq: number, t: number, attempt: number) => ({ v: 1, seq, t, attempt });
  const started = (seq: number, t: number, attempt: number, from: number | null) => ({ ...head(seq, t, attempt), type: "run.started", stage: "s", recipe: "sft", device: "cpu", total_steps: 40, resumed_from: from }) as unknown as JournalEvent;
  const metric = (seq: number, t: number, attempt: number) => ({ ...head(seq, t, attempt), type: "metric", step: 20, values: { loss: 1 } }) as unknown as JournalEvent;
  const finished = (seq: number, t: number, attempt: number) => ({ ...head(seq, t, attempt), type: "run.finished", reason: { kind: "done" } }) as unknown as JournalEvent;
  const loading = { ...head(3, 5000, 2), type: "stage.progress", phase: "load", step: 0, total: 0 } as unknown as JournalEvent;
  const took = (now: number, ...events: JournalEvent[]): (number | null)[] => {
    const state = reduceEvents(emptyRunState(), events);
    return [runSeconds(state, now), state.step, state.total];
  };
  assert.deepEqual(took(100), [null, 0, 0]);
  assert.deepEqual(took(1010, started(1, 1000, 1, null)), [10, 0, 40]);
  // Killed without a last word: until its last sign of life. Resumed an hour later: the gap is no work.
  const killed = [started(1, 1000, 1, null), metric(2, 1030, 1)];
  assert.deepEqual(took(9999, ...killed, loading), [30, 20, 40], "loading does not know the steps, and takes nothing away");
  assert.deepEqual(took(5107, ...killed, loading, started(4, 5100, 2, 20)), [37, 20, 40]);
  assert.deepEqual(took(9999, ...killed, loading, started(4, 5100, 2, 20), finished(5, 5120, 2)), [50, 20, 40]);
  assert.deepEqual(took(0, started(1, 1000, 1, null), finished(2, 900, 1)), [0, 0, 40], "a clock that was set back");
});

test("damaged lines are no events, and say why", () => {
  for (const text of ["", "{", "[]", "null", "3", "{}", '{"v":0,"seq":1,"t":1,"attempt":1,"type":"metric"}', '{"v":1,"seq":1,"t":1,"attempt":1,"type":"metric","step":1}', '{"v":1,"seq":0,"t":1,"attempt":1,"type":"metric","step":1,"values":{}}', '{"v":1,"seq":1.5,"t":1,"attempt":1,"type":"x"}']) {
    assert.equal(parseJournalLine(text).kind, "bad", text);
  }
  assert.equal(parseJournalLine('{"v":1,"seq":1,"t":1,"attempt":1,"type":"x"}').kind, "unknown");
});

test("100 000 events are reduced in a second", () => {
  const events = Array.from({ length: 100_000 }, (_, index) => ({ v: 1, seq: index + 1, t: index, attempt: 1, type: index % 2 ? "metric" : "ledger.drawn", step: index, buffer: "main", rows: 1, distinct: 1, values: { loss: 1 } }) as unknown as JournalEvent);
  const started = performance.now();
  const state = reduceEvents(emptyRunState(), events);
  assert.equal(state.metrics.length, 50_000);
  assert.ok(performance.now() - started < 1000, `${performance.now() - started} ms`);
});
