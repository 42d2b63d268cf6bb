import assert from "node:assert/strict";
import { test } from "node:test";
import { emptyRunState, finish } from "../../../../src/domain/run/reduceRun.ts";
import { emptyMirror, isComplete, parseMirrorFile, parseRemoteFile } from "../../../../src/domain/run/remoteFiles.ts";
import { folderGone, stalePatience, statusFromRemote } from "../../../../src/domain/run/remoteStatus.ts";
import type { RunState, RunStatus } from "../../../../src/domain/run/runState.ts";
import type { AttemptProbe } from "../../../../src/protocol/attempt.ts";
import type { MirrorFile, RemoteAttempt, RemoteFile, RemoteKind, SchedulerWord } from "../../../../src/protocol/remote.ts";
import { AppError } from "../../../../src/util/errors.ts";

const now = 10_000;

function remote(kind: RemoteKind, ...attempts: Partial<RemoteAttempt>[]): RemoteFile {
  const all = (attempts.length === 0 ? [{}] : attempts).map((one, index) => ({ attempt: index + 1, nonce: "n0nce", state: "submitted" as const, job: { id: "7", nonce: "n0nce" }, asked: 9_000, ...one }));
  return { v: 1, target: "box", kind, address: "gpu-box", dir: "/r", runner: "/runner", python: "/python", settings: { kind: "ssh", id: "box", host: "gpu-box", python: "python3", dir: "/r" }, attempts: all };
}

function probe(state: AttemptProbe["state"], more: Partial<AttemptProbe> = {}): AttemptProbe {
  return { state, now: 5, boot: "b", beat_age: 1, started: null, exit: null, ...more };
}

const exited = (finished: Record<string, unknown>): AttemptProbe => probe("exited", { exit: { t: 4_000, finished } });

function mirror(change: Partial<MirrorFile> = {}): MirrorFile {
  return { ...emptyMirror(), attempt: change.probe === undefined || change.probe === null ? 0 : 1, heard: now - 1, ...change };
}

/** A journal that got as far as `seen`. */
const journals: Record<string, RunState> = {
  empty: emptyRunState(),
  running: { ...emptyRunState(), status: "running", attempt: 1, lastSeq: 9, step: 4, total: 8, etaSeconds: 60 },
};
for (const reason of [{ kind: "done" }, { kind: "cancelled" }, { kind: "lost", message: "gone" }, { kind: "unknown", message: "?" }, { kind: "killed", signal: "SIGTERM" }] as const) {
  const state = { ...(journals["running"] as RunState) };
  finish(state, reason, 4_000);
  journals[reason.kind] = state;
}

const probes: (AttemptProbe | null)[] = [
  null,
  probe("absent"),
  probe("claimed"),
  probe("running"),
  probe("running", { cancel: true }),
  probe("orphan"),
  exited({ kind: "done" }),
  exited({ kind: "failed", code: "exception", message: "boom" }),
  exited({ kind: "lost", message: "reaped" }),
  probe("lost:no-exit-file"),
  probe("lost:reboot-or-other-host"),
];
const ends: (SchedulerWord["end"] | undefined)[] = [undefined, "exited", "failed", "cancelled", "time-limit", "preempted", "node-failure", "out-of-memory", "unknown"];
const words: (SchedulerWord | null)[] = [
  null,
  { state: "queued", reason: "Priority" },
  { state: "running", reason: null },
  { state: "completing", reason: null },
  { state: "not-found", reason: null },
  ...ends.map((end): SchedulerWord => ({ state: "ended", reason: "WORD", ...(end === undefined ? {} : { end }) })),
];
const reaches: MirrorFile["unreachable"][] = [null, { since: 9_990, reason: "no-route", message: "No route to gpu-box." }];
const alive: ReadonlySet<RunStatus> = new Set(["queued", "unreachable", "starting", "running", "stopping", "orphan"]);

test("whatever is heard: unreachable is never lost, done is never made up, an end has its reason, and nothing is changed in place", () => {
  let cases = 0;
  for (const kind of ["ssh", "slurm", "ray"] as const)
    for (const [name, journal] of Object.entries(journals))
      for (const one of probes)
        for (const word of words)
          for (const unreachable of reaches) {
            cases += 1;
            const before = structuredClone(journal);
            const state = statusFromRemote(journal, remote(kind), mirror({ probe: one, word, unreachable }), now);
            const what = `${kind} ${name} ${one?.state} ${word?.state}/${word?.end} ${unreachable === null ? "reached" : "cut"}`;
            assert.deepEqual(journal, before, what);
            // What the run's own machine wrote of its end stands.
            if (name === "done" || name === "cancelled") assert.deepEqual([state.status, state.reason?.kind], [name, name], what);
            if (state.status === "done") assert.ok(name === "done" || (one?.exit?.["finished"] as { kind?: string } | undefined)?.kind === "done", what);
            // An end and its reason belong together; without an end nothing is over.
            assert.equal(state.reason === null, alive.has(state.status), what);
            if (state.reason?.kind === "scheduler") assert.ok(word?.state === "ended" && state.reason.message === "WORD", what);
            // Silence is no word: only the target's own word, or its scheduler's, makes a run lost.
            if (state.status === "lost") {
              const told = name === "lost" || one?.state.startsWith("lost:") || (one?.exit?.["finished"] as { kind?: string } | undefined)?.kind === "lost" || word?.state === "not-found" || word?.end === "node-failure";
              assert.ok(told, what);
            }
            // Being cut off changes nothing but the status, and what it was stays beside it.
            const reached = statusFromRemote(journal, remote(kind), mirror({ probe: one, word, unreachable: null }), now);
            if (unreachable !== null && reached.reason === null) {
              assert.deepEqual([state.status, state.remote?.unreachable?.last, state.remote?.unreachable?.message], ["unreachable", reached.status, unreachable.message], what);
              assert.deepEqual([state.step, state.lastSeq, state.attempt], [reached.step, reached.lastSeq, reached.attempt], what);
            } else assert.deepEqual([state.status, state.reason], [reached.status, reached.reason], what);
            // A living agent is believed whatever an older word of the scheduler says.
            if (one?.state === "running" && unreachable === null && name === "running") assert.ok(["running", "stopping"].includes(state.status), what);
          }
  assert.equal(cases, 3 * 7 * 11 * 14 * 2);
});

test("before a job begins: sent, asked for, queued with the scheduler's reason", () => {
  const at = (kind: RemoteKind, attempt: Partial<RemoteAttempt>, heard: MirrorFile | null): [RunStatus, string | undefined] => {
    const state = statusFromRemote(emptyRunState(), remote(kind, attempt), heard, now);
    return [state.status, state.remote?.word?.reason ?? undefined];
  };
  assert.deepEqual(at("slurm", { state: "prepared", job: null }, null), ["starting", undefined]);
  assert.deepEqual(at("slurm", { state: "submitting", job: null }, null), ["starting", undefined]);
  assert.deepEqual(at("slurm", {}, null), ["queued", undefined]);
  assert.deepEqual(at("ssh", {}, null), ["starting", undefined]);
  assert.deepEqual(at("slurm", {}, mirror({ word: { state: "queued", reason: "Resources" } })), ["queued", "Resources"]);
  assert.deepEqual(at("slurm", {}, mirror({ word: { state: "running", reason: null } })), ["starting", undefined]);
  const refused = statusFromRemote(emptyRunState(), remote("slurm"), mirror({ word: { state: "ended", end: "failed", reason: "FAILED 3:0", said: "No Python on n7." } }), now);
  assert.deepEqual(refused.reason, { kind: "failed", code: "preflight", message: "No Python on n7." });
  assert.deepEqual(at("slurm", {}, mirror({ probe: probe("claimed"), word: { state: "running", reason: null } })), ["starting", undefined]);
  const gone = (attempt: Partial<RemoteAttempt>, reason: string | null): string => {
    const { reason: end } = statusFromRemote(emptyRunState(), remote("slurm", attempt), mirror({ word: { state: "not-found", reason } }), now);
    return end?.kind === "lost" ? end.message : String(end?.kind);
  };
  assert.match(gone({ state: "prepared", job: null }, null), /never submitted/);
  assert.match(gone({}, null), /scheduler knows nothing/);
  assert.match(gone({}, folderGone), /folder on gpu-box is gone/);
});

test("a journal that is ahead of what was heard of the agent is believed", () => {
  const running = journals["running"] as RunState;
  for (const kind of ["ssh", "slurm", "ray"] as const) {
    for (const heard of [null, mirror(), mirror({ probe: probe("claimed") }), mirror({ word: { state: "running", reason: null } })]) {
      assert.equal(statusFromRemote(running, remote(kind), heard, now).status, "running", `${kind} ${JSON.stringify(heard)}`);
    }
  }
});

test("an end is told by exit.json, else by the scheduler, else it is lost", () => {
  const running = journals["running"] as RunState;
  const end = (one: AttemptProbe, word: SchedulerWord | null, kind: RemoteKind = "slurm"): unknown[] => {
    const { status, reason } = statusFromRemote(running, remote(kind), mirror({ probe: one, word }), now);
    return [status, reason?.kind ?? null, reason?.kind === "scheduler" ? reason.end : null];
  };
  const ended = (how: NonNullable<SchedulerWord["end"]>): SchedulerWord => ({ state: "ended", end: how, reason: "WORD" });
  assert.deepEqual(end(exited({ kind: "failed", code: "nan-loss", message: "m" }), ended("failed")), ["failed", "failed", null]);
  assert.deepEqual(end(probe("lost:no-exit-file"), ended("time-limit")), ["killed", "scheduler", "time-limit"]);
  assert.deepEqual(end(probe("lost:reboot-or-other-host"), ended("node-failure")), ["lost", "scheduler", "node-failure"]);
  assert.deepEqual(end(probe("lost:no-exit-file"), ended("cancelled")), ["cancelled", "scheduler", "cancelled"]);
  assert.deepEqual(end(probe("lost:no-exit-file"), ended("preempted")), ["killed", "scheduler", "preempted"]);
  assert.deepEqual(end(probe("lost:no-exit-file"), ended("out-of-memory")), ["out-of-memory", "scheduler", "out-of-memory"]);
  assert.deepEqual(end(probe("lost:no-exit-file"), ended("failed")), ["failed", "scheduler", "failed"]);
  // The scheduler says that the job ended well, but nobody kept how the training did: not "done".
  assert.deepEqual(end(probe("lost:no-exit-file"), ended("exited")), ["unknown", "scheduler", "exited"]);
  // Reaped: the agent's stand-in wrote "lost", the scheduler knows better.
  assert.deepEqual(end(exited({ kind: "lost", message: "m" }), ended("time-limit")), ["killed", "scheduler", "time-limit"]);
  assert.deepEqual(end(exited({ kind: "lost", message: "m" }), ended("unknown")), ["lost", "lost", null]);
  // Seen from the login node the processes of a job are always gone: only the scheduler can tell.
  assert.deepEqual(end(probe("lost:reboot-or-other-host"), null), ["running", null, null]);
  assert.deepEqual(end(probe("lost:reboot-or-other-host"), { state: "running", reason: null }), ["running", null, null]);
  assert.deepEqual(end(probe("lost:reboot-or-other-host"), { state: "not-found", reason: null }), ["lost", "lost", null]);
  assert.deepEqual(end(probe("lost:reboot-or-other-host"), null, "ssh"), ["lost", "lost", null]);
  assert.deepEqual(end(probe("lost:no-exit-file"), { state: "queued", reason: "BeginTime" }), ["queued", null, null]);
});

test("a job that is put back into the queue is queued, then starting, then the next attempt", () => {
  const killed = journals["killed"] as RunState;
  const status = (word: SchedulerWord | null, more: Partial<MirrorFile> = {}): [RunStatus, number] => {
    const state = statusFromRemote(killed, remote("slurm"), mirror({ probe: exited({ kind: "killed", signal: "SIGTERM" }), word, ...more }), now);
    return [state.status, state.attempt];
  };
  assert.deepEqual(status(null), ["killed", 1]);
  assert.deepEqual(status({ state: "queued", reason: "BeginTime", restarts: 1 }), ["queued", 1]);
  assert.deepEqual(status({ state: "running", reason: null, restarts: 1 }), ["starting", 1]);
  assert.deepEqual(status({ state: "running", reason: null, restarts: 0 }), ["killed", 1]);
  assert.deepEqual(status({ state: "completing", reason: null }), ["killed", 1]);
  // The attempt that the target began by itself: nobody asked for it here.
  assert.deepEqual(status(null, { attempt: 2, probe: probe("claimed") }), ["starting", 2]);
  assert.deepEqual(status(null, { attempt: 2, probe: probe("running") }), ["starting", 2]);
});

test("a resumed run is judged by its new attempt, never by what was heard of the old one", () => {
  const lost = journals["lost"] as RunState;
  const two = remote("ssh", {}, { state: "prepared", job: null });
  const heard = mirror({ probe: exited({ kind: "lost", message: "m" }), complete: true });
  const state = statusFromRemote(lost, two, heard, now);
  assert.deepEqual([state.status, state.attempt, state.reason, state.remote?.complete], ["starting", 2, null, false]);
  assert.equal(isComplete(remote("ssh"), heard), true);
  assert.equal(isComplete(two, heard), false);
});

test("what nobody has asked for a while is not shown as the present, but an end stays one", () => {
  const running = journals["running"] as RunState;
  const at = (heard: number | null, journal = running): RunState => statusFromRemote(journal, remote("ssh"), mirror({ probe: probe("running"), heard }), now);
  assert.equal(at(now - stalePatience).status, "running");
  const stale = at(now - stalePatience - 1);
  assert.deepEqual([stale.status, stale.remote?.unreachable?.last, stale.remote?.unreachable?.since, stale.etaSeconds], ["unreachable", "running", now - stalePatience - 1, null]);
  assert.match(stale.remote?.unreachable?.message ?? "", /Nobody has asked gpu-box since/);
  assert.equal(at(null).status, "running");
  assert.equal(at(0, journals["done"]).status, "done");
});

test("remote.json must be right, mirror.json is only what is known of the copy", () => {
  const good = remote("ray");
  assert.deepEqual(parseRemoteFile(JSON.stringify(good)), good);
  for (const bad of ["", "{", "[]", JSON.stringify({ ...good, kind: "local" }), JSON.stringify({ ...good, attempts: [{}] }), JSON.stringify({ ...good, dir: 1 })]) {
    assert.throws(() => parseRemoteFile(bad), (error) => AppError.is(error, "run-unreadable"), bad);
  }
  assert.throws(() => parseRemoteFile(JSON.stringify({ ...good, v: 2 })), (error) => AppError.is(error, "newer-schema"));
  for (const bad of ["", "{", "null", "[]", "{}", '{"v":2,"files":{}}', '{"v":1}']) assert.equal(parseMirrorFile(bad), null, bad);
  const torn = parseMirrorFile('{"v":1,"files":{"a":{"size":3,"mark":"g:"},"b":{"size":-1,"mark":"g:"},"c":{"size":2},"d":null},"heard":5}');
  assert.deepEqual([torn?.files, torn?.heard, torn?.complete, torn?.epoch], [{ a: { size: 3, mark: "g:" } }, 5, false, 0]);
});
