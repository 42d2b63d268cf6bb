import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import type { RunState } from "../../../../src/domain/run/runState.ts";
import type { SchedulerWord } from "../../../../src/protocol/remote.ts";
import { FolderRunStore } from "../../../../src/storage/runs/folderRunStore.ts";
import { Backoff, systemClock, type Clock } from "../../../../src/targets/remote/backoff.ts";
import { takeLease } from "../../../../src/targets/remote/lease.ts";
import { Supervisor, type Supervised, type SupervisorParts } from "../../../../src/targets/remote/supervisor.ts";
import { writePlan } from "../../../../src/targets/remote/remoteFolder.ts";
import { keepingLog, LoopRun, LoopTarget, until } from "./loop.ts";

const long = { timeout: 300_000 };

/** Real time, without its long waits; a test can let it jump. */
class QuickClock implements Clock {
  private ahead = 0;
  readonly waits: number[] = [];
  now = (): number => systemClock.now() + this.ahead / 1000;
  monotonic = (): number => systemClock.monotonic();
  random = (): number => 0.5;
  sleep = (ms: number, signal: AbortSignal): Promise<void> => {
    this.waits.push(ms);
    return systemClock.sleep(Math.min(ms, 40), signal);
  };
  /** The laptop sleeps: its clock goes on, nothing else does. */
  jump(seconds: number): void {
    this.ahead += seconds * 1000;
  }
}

interface Bench {
  run: LoopRun;
  target: LoopTarget;
  clock: QuickClock;
  log: ReturnType<typeof keepingLog>;
  /** Done after the supervisors have ended and before the folders are removed. */
  undo: (() => void)[];
  /** Starts a supervisor; `stop` ends it, `end` tells how it ended. */
  supervise(more?: Partial<SupervisorParts>): { supervisor: Supervisor; stop: () => Promise<Supervised>; end: Promise<Supervised> };
  state(): Promise<RunState>;
  /** Starts an attempt's agent there, as a job or ssh does. */
  launch(attempt?: number): Promise<void>;
}

function bench(context: TestContext, kind: "ssh" | "slurm" = "ssh"): Bench {
  const [run, target, clock, log, store] = [new LoopRun(kind), new LoopTarget(kind), new QuickClock(), keepingLog(), new FolderRunStore()];
  const stops: (() => Promise<unknown>)[] = [];
  const undo: (() => void)[] = [];
  context.after(async () => {
    target.mend();
    for (const stop of stops) await stop();
    for (const one of undo) one();
    target.dispose();
    store.dispose();
    run.dispose();
  });
  return {
    run, target, clock, log, undo,
    supervise(more = {}) {
      const stop = new AbortController();
      const supervisor = new Supervisor({ dir: run.local, target: () => Promise.resolve(target), log, clock, askMs: 60, ...more });
      const end = supervisor.run(stop.signal);
      const ended = (): Promise<Supervised> => {
        stop.abort();
        return end;
      };
      stops.push(ended);
      return { supervisor, stop: ended, end };
    },
    async state() {
      const { runs, unreadable } = await store.list(run.root);
      assert.deepEqual(unreadable, []);
      return (runs[0] as (typeof runs)[number]).state;
    },
    async launch(attempt = 1) {
      await target.submit({ ...run.plan(run.remote(), attempt) });
    },
  };
}

const reached = (status: string, so: () => Promise<RunState>) => (): Promise<boolean> => so().then((state) => state.status === status);

test("a run is followed to its end: everything is here, byte for byte, and the lease is given back", long, async (context) => {
  const { run, supervise, state, launch } = bench(context);
  run.asked({ plan: { steps: 40, seconds: 0.15 } });
  await launch();
  const { end } = supervise();
  await until("it is seen running", () => state().then(({ status, step }) => status === "running" && step > 3));
  assert.equal(await end, "complete");
  const last = await state();
  assert.deepEqual([last.status, last.reason?.kind, last.metrics.length, last.remote?.complete], ["done", "done", 40, true]);
  assert.deepEqual(run.different(), []);
  assert.ok(readFileSync(join(run.local, "out.log")).includes(Buffer.from([0xff, 0xfe])), "bytes that are no UTF-8 came as they are");
  assert.ok(!existsSync(join(run.local, ".lease")));
  assert.ok(existsSync(join(run.local, "attempt-0001/exit.json")) && !existsSync(join(run.local, "attempt-0001/heartbeat")));
});

test("a cut is not a loss: the run is unreachable with a sentence, goes on there, and nothing is missing afterwards", long, async (context) => {
  const { run, target, clock, supervise, state, launch } = bench(context);
  run.asked({ plan: { steps: 60, seconds: 0.1 } });
  await launch();
  const { end } = supervise();
  await until("it is seen running", async () => (await state()).step > 3);
  target.cut("no-route", "No route to gpu-box: the cable is out.");
  await until("it is unreachable", reached("unreachable", state));
  const cut = await state();
  assert.deepEqual([cut.remote?.unreachable?.last, cut.remote?.unreachable?.reason, cut.reason], ["running", "no-route", null]);
  assert.match(cut.remote?.unreachable?.message ?? "", /the cable is out/);
  const step = cut.step;
  await until("it was tried again and again", () => Promise.resolve(clock.waits.filter((ms) => ms > 5_000).length > 1));
  assert.equal((await state()).step, step);
  target.mend();
  assert.equal(await end, "complete");
  assert.deepEqual([(await state()).status, run.different()], ["done", []]);
  assert.equal(new Set(run.journalHere().trim().split("\n").map((line) => (JSON.parse(line) as { seq: number }).seq)).size, run.journalHere().trim().split("\n").length);
});

test("waits grow from 1 s to 30 s, by chance shorter; where one is refused they become minutes", () => {
  const most = new Backoff(() => 1);
  assert.deepEqual([1, 2, 3, 4, 5, 6, 7].map(() => most.next("no-route")), [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
  most.reset();
  assert.equal(most.next(null), 1000);
  assert.equal(new Backoff(() => 0).next(null), 500);
  const refused = new Backoff(() => 1);
  assert.equal(Array.from({ length: 12 }, () => refused.next("refused")).at(-1), 300_000);
});

test("a submission whose answer was lost is found by its nonce and never made twice", long, async (context) => {
  const { run, target, supervise, state } = bench(context);
  const remote = run.asked({ state: "submitting", plan: { steps: 3 } });
  target.loseAnswer = true;
  await assert.rejects(target.submit(run.plan(remote)), /answer was lost/);
  assert.equal(await supervise().end, "complete");
  assert.deepEqual(target.calls.filter((call) => call === "submit" || call === "find"), ["submit", "find"]);
  assert.deepEqual(run.remote().attempts.map(({ state: one, job }) => [one, job?.id]), [["submitted", "1"]]);
  assert.deepEqual([(await state()).status, run.different()], ["done", []]);
});

test("a submission that never arrived is made again, once, after the target said twice that there is none", long, async (context) => {
  const { run, target, supervise, state } = bench(context);
  const remote = run.asked({ state: "submitting", plan: { steps: 3 } });
  await writePlan(run.local, run.plan(remote));
  assert.equal(await supervise().end, "complete");
  assert.deepEqual(target.calls.filter((call) => ["submit", "find", "prepare"].includes(call)).join(" ").replace(/(find ){2,}/, "find find "), "find find prepare submit");
  assert.deepEqual([(await state()).status, run.different()], ["done", []]);
});

test("while a launcher is at work nothing is looked up, and a start that was interrupted before it was asked for says so", long, async (context) => {
  const { run, target, supervise, state } = bench(context);
  run.asked({ state: "prepared", job: null });
  const lock = join(run.root, ".seesaw/runs/.lock-math");
  const { lockStage } = await import("../../../../src/targets/stageLock.ts");
  const release = await lockStage(join(run.root, ".seesaw/runs"), "math", run.id);
  const { stop } = supervise();
  await new Promise((resolve) => setTimeout(resolve, 400));
  assert.deepEqual([(await state()).status, existsSync(lock)], ["starting", true]);
  await release();
  await until("it is told", reached("lost", state));
  const { reason } = await state();
  assert.match(reason?.kind === "lost" ? reason.message : "", /never submitted/);
  assert.deepEqual(target.calls, []);
  await stop();
});

test("of two windows one follows, and the other goes on when the first is closed", long, async (context) => {
  const { run, target, supervise, launch } = bench(context);
  run.asked({ plan: { steps: 40, seconds: 0.1 } });
  await launch();
  const first = supervise();
  await until("the first follows", () => Promise.resolve(run.journalHere().length > 0));
  const second = supervise();
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.equal(target.calls.filter((call) => call === "follow").length, 1);
  assert.equal(await first.stop(), "stopped");
  assert.equal(await second.end, "complete");
  assert.deepEqual([run.different(), run.mirror().epoch], [[], 2]);
});

test("a lease that went to another machine while this one slept is noticed, and the copy stays right", long, async (context) => {
  const { run, supervise, launch } = bench(context);
  run.asked({ plan: { steps: 40, seconds: 0.1 } });
  await launch();
  const { end } = supervise();
  await until("it follows", () => Promise.resolve(run.journalHere().length > 0));
  // What the other machine does when the lock's owner has been silent for long enough.
  rmSync(join(run.local, ".lease"));
  const other = await takeLease(run.local);
  assert.ok("release" in other);
  await new Promise((resolve) => setTimeout(resolve, 500));
  assert.equal(await other.holds(), true);
  await other.release();
  assert.equal(await end, "complete");
  assert.deepEqual(run.different(), []);
});

test("after an hour of sleep it connects again at once", long, async (context) => {
  const { run, target, clock, supervise, launch } = bench(context);
  run.asked({ plan: { steps: 60, seconds: 0.1 } });
  await launch();
  const { end } = supervise();
  await until("it follows", () => Promise.resolve(run.journalHere().length > 0));
  const before = target.calls.filter((call) => call === "follow").length;
  clock.jump(3600);
  await until("it follows anew", () => Promise.resolve(target.calls.filter((call) => call === "follow").length > before));
  assert.equal(await end, "complete");
  assert.deepEqual(run.different(), []);
});

test("a queued job keeps no connection; when its scheduler starts it it is followed; it is over when the scheduler has put it away", long, async (context) => {
  const { run, target, supervise, state, launch } = bench(context, "slurm");
  run.asked({ plan: { steps: 4 } });
  target.says = { state: "queued", reason: "Priority" };
  const { end } = supervise();
  await until("it is queued", async () => (await state()).remote?.word?.reason === "Priority");
  assert.equal((await state()).status, "queued");
  const asked = (what: string): number => target.calls.filter((call) => call === what).length;
  await until("it was asked often", () => Promise.resolve(asked("word") > 4));
  const follows = asked("follow");
  await until("it was asked more", () => Promise.resolve(asked("word") > 8));
  assert.ok(follows <= 1 && asked("follow") === follows, "one look at what is there already, and no more");
  target.says = { state: "running", reason: null };
  await launch();
  await until("the training is done", reached("done", state));
  await new Promise((resolve) => setTimeout(resolve, 400));
  assert.equal((await state()).remote?.complete, false, "its job could still be started again");
  target.says = { state: "ended", end: "exited", reason: "COMPLETED" };
  assert.equal(await end, "complete");
  assert.deepEqual([(await state()).status, (await state()).reason?.kind, run.different()], ["done", "done", []]);
});

test("agent and training are gone and the scheduler says why: the attempt is closed there, and the reason is the scheduler's", long, async (context) => {
  const { run, target, supervise, state, launch } = bench(context, "slurm");
  run.asked({ plan: { steps: 2000, seconds: 0.1 } });
  target.says = { state: "running", reason: null };
  await launch();
  const { end } = supervise();
  await until("it is seen running", async () => (await state()).step > 1);
  const { agent_pid: agent, pgid } = JSON.parse(readFileSync(join(run.attemptDir(1), "started.json"), "utf8")) as { agent_pid: number; pgid: number };
  process.kill(agent, "SIGKILL");
  process.kill(-pgid, "SIGKILL");
  await until("the agent is missed", () => Promise.resolve(run.mirror().probe?.state === "lost:no-exit-file"));
  assert.equal((await state()).status, "running", "the scheduler still has the job: its processes may be on another machine");
  target.says = { state: "ended", end: "time-limit", reason: "TIMEOUT" };
  assert.equal(await end, "complete");
  const last = await state();
  assert.deepEqual([last.status, last.reason], ["killed", { kind: "scheduler", end: "time-limit", message: "TIMEOUT" }]);
  assert.ok(target.calls.includes("reap"));
  assert.match(run.journalHere(), /"run\.finished".*"lost"/, "what reaping wrote there is here");
  assert.deepEqual(run.different(), []);
});

test("on a machine of one's own, agent and training kill -9: closed there and lost", long, async (context) => {
  const { run, supervise, state, launch } = bench(context);
  run.asked({ plan: { steps: 2000, seconds: 0.1 } });
  await launch();
  const { end } = supervise();
  await until("it is seen running", async () => (await state()).step > 1);
  const { agent_pid: agent, pgid } = JSON.parse(readFileSync(join(run.attemptDir(1), "started.json"), "utf8")) as { agent_pid: number; pgid: number };
  process.kill(agent, "SIGKILL");
  process.kill(-pgid, "SIGKILL");
  assert.equal(await end, "complete");
  assert.deepEqual([(await state()).status, run.different()], ["lost", []]);
});

test("a job that is put back into the queue: its next attempt is found, remembered and copied", long, async (context) => {
  const { run, target, supervise, state, launch } = bench(context, "slurm");
  run.asked({ plan: { steps: 2000, seconds: 0.1 } });
  let word: SchedulerWord = { state: "running", reason: null, restarts: 0 };
  target.says = () => word;
  await launch();
  const { end } = supervise();
  await until("it is seen running", async () => (await state()).step > 1);
  word = { state: "queued", reason: "BeginTime", restarts: 1 };
  const { agent_pid: agent } = JSON.parse(readFileSync(join(run.attemptDir(1), "started.json"), "utf8")) as { agent_pid: number };
  process.kill(agent, "SIGTERM"); // preempted
  await until("it waits again", reached("queued", state));
  const waiting = await state();
  assert.equal(waiting.remote?.word?.reason, "BeginTime", JSON.stringify([waiting.status, waiting.reason, waiting.lastSeq, run.mirror(), target.calls]));
  const remote = run.remote();
  run.asked({}, { plan: { steps: 3 } });
  writeFileSync(join(run.local, "remote.json"), JSON.stringify(remote)); // nobody here asked for attempt 2
  word = { state: "running", reason: null, restarts: 1 };
  await launch(2);
  await until("it is done", reached("done", state));
  word = { state: "ended", end: "exited", reason: "COMPLETED" };
  assert.equal(await end, "complete");
  assert.deepEqual([(await state()).attempt, run.remote().attempts.map(({ attempt, job }) => [attempt, job?.id]), run.different()], [2, [[1, "7"], [2, "7"]], []]);
});

test("a job that was cancelled before it began ends as its scheduler says", long, async (context) => {
  const { run, target, supervise, state } = bench(context, "slurm");
  run.asked({ plan: {} });
  target.says = { state: "ended", end: "cancelled", reason: "CANCELLED by 0" };
  assert.equal(await supervise().end, "complete");
  const { status, reason } = await state();
  assert.deepEqual([status, reason], ["cancelled", { kind: "scheduler", end: "cancelled", message: "CANCELLED by 0" }]);
});

test("a job that begins and ends between two looks is copied all the same", long, async (context) => {
  const { run, target, supervise, state, launch } = bench(context, "slurm");
  run.asked({ plan: { steps: 3 } });
  const follow = target.follow.bind(target);
  // The first look finds nothing; by the next word all is over.
  target.follow = async (_run, _known, onFrame, signal) => {
    target.follow = follow;
    await onFrame({ kind: "caught-up", bytes: 0 });
    await launch();
    await until("it has ended there", () => existsSync(join(run.attemptDir(1), "exit.json")));
    target.says = { state: "ended", end: "exited", reason: "COMPLETED" };
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  };
  assert.equal(await supervise().end, "complete");
  assert.deepEqual([(await state()).status, run.different()], ["done", []]);
});

test("a run folder that was removed there is lost with a sentence; what was copied stays", long, async (context) => {
  const { run, supervise, state, launch } = bench(context);
  run.asked({ plan: { steps: 30, seconds: 0.1 } });
  await launch();
  const { stop } = supervise();
  await until("it is seen running", async () => (await state()).step > 1);
  const { agent_pid: agent, pgid } = JSON.parse(readFileSync(join(run.attemptDir(1), "started.json"), "utf8")) as { agent_pid: number; pgid: number };
  process.kill(agent, "SIGKILL");
  process.kill(-pgid, "SIGKILL");
  rmSync(run.there, { recursive: true, maxRetries: 5 });
  await until("it is lost", reached("lost", state));
  const { reason, step } = await state();
  assert.ok(step > 1);
  assert.match(reason?.kind === "lost" ? reason.message : "", /folder on gpu-box is gone/);
  await stop();
});

test("a local folder that is removed while it is followed is not made again", long, async (context) => {
  const { run, supervise, launch } = bench(context);
  run.asked({ plan: { steps: 40, seconds: 0.1 } });
  await launch();
  const { end } = supervise();
  await until("it follows", () => Promise.resolve(run.journalHere().length > 0));
  rmSync(run.local, { recursive: true, maxRetries: 5 });
  assert.equal(await end, "gone");
  assert.ok(!existsSync(run.local));
});

test("a full disk here is told as a sentence, and the copy is whole when there is room again", long, async (context) => {
  const { run, supervise, launch, log, undo } = bench(context);
  if (process.getuid?.() !== 0) return context.skip("no small disk can be mounted here");
  const files = ["run.json"].map((name) => [name, readFileSync(join(run.local, name))] as const);
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=192k", "tmpfs", run.local], { stdio: "ignore" });
  } catch {
    return context.skip("no small disk can be mounted here");
  }
  undo.push(() => void execFileSync("umount", ["-l", run.local]));
  for (const [name, bytes] of files) writeFileSync(join(run.local, name), bytes);
  run.asked({ plan: { steps: 20 } });
  mkdirSync(join(run.there, "traces"), { recursive: true });
  writeFileSync(join(run.there, "traces/big.trace"), Buffer.alloc(100_000, 1));
  writeFileSync(join(run.local, "ballast"), Buffer.alloc(120_000));
  await launch();
  const troubles: (string | null)[] = [];
  const { end } = supervise({ onTrouble: (message) => void troubles.push(message) });
  await until("it is told", () => Promise.resolve(troubles.length > 0));
  assert.match(troubles[0] ?? "", /the disk is full\. Free some space/);
  rmSync(join(run.local, "ballast"));
  assert.equal(await end, "complete");
  assert.equal(troubles.at(-1), null);
  assert.deepEqual(run.different(), []);
  assert.equal(log.lines.filter((line) => /disk is full/.test(line)).length < 4, true, "said, not repeated");
});

test("to look once takes what is there now and stops; where nobody answers it says so", long, async (context) => {
  const { run, target, supervise, state, launch } = bench(context);
  run.asked({ plan: { steps: 300, seconds: 0.1 } });
  await launch();
  await until("something is there", () => Promise.resolve(existsSync(join(run.there, "journal.jsonl"))));
  assert.equal(await supervise({ once: true }).end, "once");
  assert.ok((await state()).step > 0);
  target.cut("refused", "gpu-box refuses your key.");
  assert.equal(await supervise({ once: true }).end, "once");
  assert.deepEqual([(await state()).status, (await state()).remote?.unreachable?.reason], ["unreachable", "refused"]);
  target.mend();
  await target.stop(run.remote(), 1);
  assert.equal(await supervise().end, "complete");
  assert.equal((await state()).status, "cancelled");
});
