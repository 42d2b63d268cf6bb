import assert from "node:assert/strict";
import { test } from "node:test";
import { reasonFromExit, statusFromAttempt, type AttemptFacts } from "../../../../src/domain/run/attemptStatus.ts";
import { emptyRunState } from "../../../../src/domain/run/reduceRun.ts";
import type { RunState } from "../../../../src/domain/run/runState.ts";
import type { AttemptProbe } from "../../../../src/protocol/attempt.ts";

const running: RunState = { ...emptyRunState(), status: "running", attempt: 1, lastSeq: 5 };
const done: RunState = { ...running, status: "done", reason: { kind: "done" }, endedAt: 9 };

function probe(state: AttemptProbe["state"], exit: AttemptProbe["exit"] = null): AttemptProbe {
  return { state, now: 100, boot: "b", beat_age: 1, started: null, exit };
}

const status = (state: RunState, found: AttemptProbe | null, facts?: AttemptFacts): string => statusFromAttempt(state, found, facts).status;

test("the probe tells a running attempt from a lost one", () => {
  assert.equal(status(running, probe("running")), "running");
  assert.equal(status(running, probe("running"), { cancelRequested: true }), "stopping");
  assert.equal(status(running, probe("orphan")), "orphan");
  assert.equal(status(running, probe("lost:no-exit-file")), "lost");
  assert.match((statusFromAttempt(running, probe("lost:reboot-or-other-host")).reason as { message: string }).message, /restarted/);
  assert.equal(status({ ...running, status: "starting", attempt: 0 }, probe("running")), "starting");
});

test("a finished journal is not changed by any probe of its own attempt", () => {
  for (const state of ["absent", "running", "lost:no-exit-file", "orphan"] as const) assert.equal(statusFromAttempt(done, probe(state)), done);
});

test("a newer attempt than the journal's is starting", () => {
  const next = statusFromAttempt(done, probe("running"), { attempt: 2 });
  assert.deepEqual([next.status, next.attempt, next.reason, next.endedAt], ["starting", 2, null, null]);
});

test("never started: patience, then lost", () => {
  const fresh = emptyRunState();
  for (const state of ["absent", "claimed"] as const) {
    assert.equal(status(fresh, probe(state), { age: 5 }), "starting");
    assert.equal(status(fresh, probe(state), { age: 500 }), "lost");
  }
});

test("a journal with events whose attempt folder is gone is unknown, not lost", () => {
  assert.equal(status(running, probe("absent"), { age: 5000 }), "unknown");
});

test("processes that cannot be seen from here are never called lost", () => {
  assert.equal(status(running, null, { beatAge: 2, age: 900 }), "running");
  assert.equal(status(running, null, { beatAge: 900, age: 900 }), "unknown");
  assert.equal(status(running, null, { beatAge: null, age: 900 }), "unknown");
  assert.equal(status(emptyRunState(), null, { beatAge: null, age: 3 }), "starting");
});

test("the end that an exit.json tells; a signal is never flattened (case R01)", () => {
  const kinds = (exit: Record<string, unknown>): string => status(running, probe("exited", exit));
  assert.equal(kinds({ code: null, signal: "SIGKILL", reason: "exit", finished: { kind: "out-of-memory", message: "m" } }), "out-of-memory");
  assert.equal(kinds({ code: 0, signal: null, reason: "exit" }), "done");
  assert.equal(kinds({ code: null, signal: "SIGKILL", reason: "exit" }), "killed");
  assert.equal(kinds({ code: 143, signal: null, reason: "cancel" }), "cancelled");
  assert.equal(kinds({ code: 1, signal: null, reason: "exit", outcome: { code: "nan-loss", message: "m" } }), "failed");
  assert.equal(kinds({ code: null, signal: null, reason: "exit" }), "unknown");
  assert.deepEqual(reasonFromExit({ code: 3, signal: null, reason: "exit" }), { kind: "failed", code: "exception", message: "The training ended with exit code 3 and did not say why: see the end of out.log.", exit_code: 3 });
  assert.equal(statusFromAttempt(running, probe("exited", { code: 0, t: 77 })).endedAt, 77);
});

test("the given state is not changed", () => {
  const before = JSON.stringify(running);
  statusFromAttempt(running, probe("lost:no-exit-file"), { attempt: 2 });
  assert.equal(JSON.stringify(running), before);
});
