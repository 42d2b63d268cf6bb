import assert from "node:assert/strict";
import { test } from "node:test";
import { clockText, queuedText, remoteLines, unreachableText, waitText } from "../../../../src/domain/run/remoteText.ts";
import { emptyRunState } from "../../../../src/domain/run/reduceRun.ts";
import type { RemoteState, RunState } from "../../../../src/domain/run/runState.ts";

const now = new Date(2026, 10, 30, 16, 0, 0).getTime() / 1000;
const remote: RemoteState = { target: "cluster", kind: "slurm", address: "login1 (Slurm)", job: "20417", word: null, unreachable: null, heard: now - 60, complete: false };
const lines = (change: Partial<RunState>, where: Partial<RemoteState> = {}): string[] => remoteLines({ ...emptyRunState(), ...change, remote: { ...remote, ...where } }, now, (status) => `<${status}>`);

test("why a job waits is said in plain words, with the scheduler's own beside them", () => {
  assert.equal(waitText({ reason: "Priority" }), "others come first (Priority)");
  assert.equal(waitText({ reason: "QOSMaxGRESPerUser" }), "a limit of your account is reached (QOSMaxGRESPerUser)");
  assert.equal(waitText({ reason: "launch failed requeued held" }), "its start failed on a machine, so Slurm holds it until `scontrol release` there lets it go (launch failed requeued held)");
  assert.equal(waitText({ reason: "JobHeldAdmin" }), "the administrators hold it back (JobHeldAdmin)");
  assert.equal(waitText({ reason: "SomethingNew" }), "SomethingNew");
  for (const word of [null, { reason: null }, { reason: "" }, { reason: "None" }]) assert.equal(waitText(word), null);
  assert.equal(queuedText({ target: "cluster", word: { state: "queued", reason: "Resources" } }), "queued on cluster: nothing is free yet (Resources)");
  assert.equal(queuedText({ target: "ray", word: null }), "queued on ray");
});

test("a time is the clock's, with the day where it is not today's", () => {
  assert.equal(clockText(now - 118 * 60, now), "14:02");
  assert.equal(clockText(now - 86_400, now), "2026-11-29 16:00");
  assert.equal(unreachableText({ target: "box", unreachable: { since: now - 118 * 60, reason: "no-route", message: "x", last: "running" } }, now), "box unreachable since 14:02");
});

test("where a run is, and what was heard of it", () => {
  assert.deepEqual(lines({ status: "queued", attempt: 0 }, { word: { state: "queued", reason: "Priority", restarts: 1 } }), [
    "Target cluster: login1 (Slurm), job 20417, attempt 1",
    "It waits in the queue: others come first (Priority).",
    "The scheduler has started it again 1 time.",
    "Last heard of at 15:59.",
  ]);
  assert.deepEqual(lines({ status: "unreachable", attempt: 2 }, { job: null, unreachable: { since: now - 3600, reason: "no-route", message: "login1 does not answer.", last: "running" } }), [
    "Target cluster: login1 (Slurm), attempt 2",
    "Unreachable since 15:00: login1 does not answer.",
    "The run may well go on there; before, it was: <running>.",
    "Last heard of at 15:59.",
  ]);
  assert.ok(lines({ status: "running", attempt: 1 }, { word: { state: "running", reason: null, nodes: "n[1-2]" } }).includes("On n[1-2]."));
  assert.match(lines({ status: "done", attempt: 1, reason: { kind: "done" } }).at(-1) ?? "", /still being copied/);
  assert.doesNotMatch(lines({ status: "done", attempt: 1, reason: { kind: "done" } }, { complete: true }).join("\n"), /copied/);
  assert.deepEqual(remoteLines({ ...emptyRunState(), remote: null }, now, String), []);
});
