import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { FolderRunStore } from "../../../../src/storage/runs/folderRunStore.ts";
import { bootId, processStart } from "../../../../src/storage/runs/processIdentity.ts";
import type { RunRecord } from "../../../../src/storage/runs/runStore.ts";

const fixtures = new URL("../../../fixtures/protocol/", import.meta.url);
const runJson = readFileSync(new URL("run.json", fixtures), "utf8");

interface Bench {
  root: string;
  store: FolderRunStore;
  /** Makes a run folder with a journal from the fixtures. */
  make(id: string, journal: string | null, spec?: object): string;
  only(): Promise<RunRecord>;
}

function bench(context: TestContext, pollMs = 30): Bench {
  const root = mkdtempSync(join(tmpdir(), "seesaw-runs-"));
  const store = new FolderRunStore({ pollMs });
  context.after(() => {
    store.dispose();
    rmSync(root, { recursive: true, force: true });
  });
  return {
    root, store,
    make(id, journal, spec = {}) {
      const dir = join(root, ".seesaw", "runs", id);
      mkdirSync(dir, { recursive: true });
      writeFileSync(join(dir, "run.json"), JSON.stringify({ ...JSON.parse(runJson), id, ...spec }));
      if (journal !== null) cpSync(new URL(`journal/${journal}.jsonl`, fixtures), join(dir, "journal.jsonl"));
      return dir;
    },
    async only() {
      const { runs, unreadable } = await store.list(root);
      assert.deepEqual([runs.length, unreadable], [1, []]);
      return runs[0] as RunRecord;
    },
  };
}

const line = (seq: number, type: string, fields: object, attempt = 1): string => `${JSON.stringify({ v: 1, seq, t: seq, attempt, type, ...fields })}\n`;
const metric = (seq: number, step: number): string => line(seq, "metric", { step, values: { loss: 1 } });

test("no runs folder: no runs", async (context) => {
  const { store, root } = bench(context);
  assert.deepEqual(await store.list(root), { runs: [], unreadable: [] });
});

test("runs are listed newest first, whatever their names", async (context) => {
  const { make, store, root } = bench(context);
  make("b-20260101T000000-0000", "complete", { created: 3 });
  make("a-20260101T000000-0000", "resumed", { created: 4 });
  make("c-20260101T000000-0000", "complete", { created: 1 });
  mkdirSync(join(root, ".seesaw", "runs", ".lock-x"));
  const { runs } = await store.list(root);
  assert.deepEqual(runs.map((run) => [run.id[0], run.state.status, run.state.lastSeq]), [["a", "done", 37], ["b", "done", 16], ["c", "done", 16]]);
});

test("what is damaged or too new is named, and takes nothing else down", async (context) => {
  const { make, store, root } = bench(context);
  make("good-1", "complete");
  make("major-1", "newer-major");
  make("schema-1", "complete", { schema: "2.0" });
  make("minor-1", "complete", { schema: "1.7", novelty: true });
  writeFileSync(join(make("torn-1", null), "run.json"), runJson.slice(0, 200));
  writeFileSync(join(make("array-1", null), "run.json"), "[]");
  make("field-1", null, { start: null });
  const empty = join(root, ".seesaw", "runs", "empty-1");
  mkdirSync(empty);
  utimesSync(empty, 1000, 1000);
  mkdirSync(join(root, ".seesaw", "runs", "young-1"));
  mkdirSync(join(make("dir-1", null), "journal.jsonl"));
  const { runs, unreadable } = await store.list(root);
  assert.deepEqual(runs.map((run) => run.id).sort(), ["good-1", "minor-1"]);
  const sentences = Object.fromEntries(unreadable.map((run) => [run.id, run.message]));
  assert.deepEqual(Object.keys(sentences).sort(), ["array-1", "dir-1", "empty-1", "field-1", "major-1", "schema-1", "torn-1"]);
  assert.match(sentences["major-1"] as string, /journal has format 2; this Seesaw reads format 1\. Update Seesaw/);
  assert.match(sentences["schema-1"] as string, /run\.json has format 2\.0; this Seesaw reads format 1\.0\. Update Seesaw/);
  assert.match(sentences["torn-1"] as string, /no JSON \(half written or damaged\)/);
  assert.match(sentences["field-1"] as string, /no "start"/);
  assert.match(sentences["empty-1"] as string, /no run\.json/);
});

test("a journal is read on from where it was left, and a torn line only when it is whole", async (context) => {
  const { make, only } = bench(context);
  const journal = join(make("math-1", "torn"), "journal.jsonl");
  const first = await only();
  assert.deepEqual([first.state.lastSeq, first.state.badLines], [2, 0]);
  assert.equal((await only()).state.metrics, first.state.metrics, "not read twice");
  appendFileSync(journal, 'ues":{"loss":1.25}}\n');
  const second = await only();
  assert.deepEqual([second.state.lastSeq, second.state.loss, second.state.badLines], [3, 1.25, 0]);
  appendFileSync(journal, `\n${metric(4, 30).slice(0, 20)}`);
  assert.equal((await only()).state.lastSeq, 3);
  appendFileSync(journal, `\n${metric(4, 30)}${metric(5, 40)}`);
  const third = await only();
  assert.deepEqual([third.state.lastSeq, third.state.badLines, third.state.metrics.map((point) => point.step)], [5, 1, [10, 20, 30, 40]]);
});

test("a journal that was truncated, replaced or rewritten is read again from the start", async (context) => {
  const { make, only } = bench(context);
  const journal = join(make("math-1", null), "journal.jsonl");
  writeFileSync(journal, metric(1, 10) + metric(2, 20));
  assert.equal((await only()).state.lastSeq, 2);
  truncateSync(journal, metric(1, 10).length);
  assert.deepEqual((await only()).state.metrics.map((point) => point.step), [10]);
  writeFileSync(`${journal}.new`, metric(1, 70) + metric(2, 80) + metric(3, 90));
  renameSync(`${journal}.new`, journal);
  assert.deepEqual((await only()).state.metrics.map((point) => point.step), [70, 80, 90]);
  writeFileSync(journal, metric(1, 11) + metric(2, 12) + metric(3, 13) + metric(4, 14));
  assert.deepEqual((await only()).state.metrics.map((point) => point.step), [11, 12, 13, 14]);
  rmSync(journal);
  assert.equal((await only()).state.lastSeq, 0);
});

test("lines that come in pieces of any size, longer than a chunk and with every character", async (context) => {
  const { make, only } = bench(context);
  const journal = join(make("math-1", null), "journal.jsonl");
  const long = line(2, "warning", { code: "x", severity: "info", message: `${"ä😀".repeat(300_000)}\u2028end` });
  const bytes = Buffer.from(metric(1, 10) + long + metric(3, 30));
  writeFileSync(journal, "");
  for (let from = 0; from < bytes.length; from += 700_001) {
    appendFileSync(journal, bytes.subarray(from, from + 700_001));
    await only();
  }
  const { state } = await only();
  assert.deepEqual([state.lastSeq, state.badLines, state.warnings[0]?.message.endsWith("\u2028end"), state.warnings[0]?.message.length], [3, 0, true, 900_004]);
});

test("two lists at once do not read a line twice", async (context) => {
  const { make, store, root } = bench(context);
  make("math-1", "mended");
  const all = await Promise.all([store.list(root), store.list(root), store.list(root)]);
  for (const { runs } of all) assert.deepEqual([runs[0]?.state.lastSeq, runs[0]?.state.badLines], [3, 1]);
});

/** An attempt folder as the agent leaves it. */
async function attempt(dir: string, number: number, started: object | null, files: Record<string, object | string> = {}): Promise<string> {
  const folder = join(dir, `attempt-${String(number).padStart(4, "0")}`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "spec.json"), "{}");
  if (started !== null) {
    const me = { nonce: "n", host: hostname(), boot: await bootId(), t: 1, agent_pid: process.pid, agent_start: await processStart(process.pid), pid: process.pid, start: await processStart(process.pid), pgid: 1, job: {} };
    writeFileSync(join(folder, "claim"), "{}");
    writeFileSync(join(folder, "started.json"), JSON.stringify({ ...me, ...started }));
  }
  for (const [name, value] of Object.entries(files)) writeFileSync(join(folder, name), typeof value === "string" ? value : JSON.stringify(value));
  return folder;
}

const onLinux = { skip: process.platform === "linux" ? false : "processes can be seen without help on Linux only" };

test("a live agent is running, a dead one with a live training is an orphan, both dead are lost", onLinux, async (context) => {
  const { make, only } = bench(context);
  const dir = make("math-1", "torn");
  const gone = { agent_pid: 2 ** 22 - 1, agent_start: 1 };
  await attempt(dir, 1, {});
  assert.equal((await only()).state.status, "running");
  await attempt(dir, 1, gone);
  assert.equal((await only()).state.status, "orphan");
  await attempt(dir, 1, { ...gone, pid: 2 ** 22 - 2, start: 1 });
  const lost = await only();
  assert.deepEqual([lost.state.status, lost.state.reason?.kind], ["lost", "lost"]);
});

test("a reused pid is not the process", onLinux, async (context) => {
  const { make, only } = bench(context);
  const start = Number(await processStart(process.pid));
  await attempt(make("math-1", "torn"), 1, { agent_start: start + 1, start: start - 1 });
  assert.equal((await only()).state.status, "lost");
});

test("a zombie is gone", onLinux, async (context) => {
  // The shell becomes a program that does not reap what the shell had started.
  const shell = spawn("sh", ["-c", "sleep 0.1 & echo $!; exec sleep 30"], { stdio: ["ignore", "pipe", "ignore"] });
  context.after(() => shell.kill());
  const pid = Number(await new Promise<string>((resolve) => shell.stdout.once("data", (data: Buffer) => resolve(String(data)))));
  await wait(400);
  assert.match(readFileSync(`/proc/${pid}/stat`, "latin1"), /\) Z /);
  assert.equal(await processStart(pid), null);
  assert.notEqual(await processStart(shell.pid as number), null);
});

test("another boot is lost; another host or pid namespace is not judged", onLinux, async (context) => {
  const { make, only } = bench(context);
  const dir = make("math-1", "torn");
  await attempt(dir, 1, { boot: "00000000/pid:[1]" });
  assert.equal((await only()).state.status, "lost");
  await attempt(dir, 1, { host: "elsewhere", boot: "00000000/pid:[1]" }, { heartbeat: "1 1 1" });
  assert.equal((await only()).state.status, "running");
  const old = await attempt(dir, 1, { boot: `${(await bootId())?.split("/")[0]}/pid:[1]` }, { heartbeat: "1 1 1" });
  utimesSync(join(old, "heartbeat"), 1000, 1000);
  assert.equal((await only()).state.status, "unknown");
});

test("cancel, exit without a last event, and a new attempt after the end", onLinux, async (context) => {
  const { make, only } = bench(context);
  const dir = make("math-1", "torn");
  await attempt(dir, 1, {}, { cancel: "" });
  assert.equal((await only()).state.status, "stopping");
  await attempt(dir, 1, {}, { "exit.json": { code: null, signal: "SIGKILL", reason: "exit", t: 5, finished: { kind: "out-of-memory", message: "The kernel killed it." } } });
  assert.deepEqual((await only()).state.reason, { kind: "out-of-memory", message: "The kernel killed it." });
  await attempt(dir, 2, {});
  const again = await only();
  assert.deepEqual([again.state.status, again.state.attempt], ["starting", 2]);
});

test("a run that was never started is starting for a while, then lost", async (context) => {
  const { make, only } = bench(context);
  make("math-1", null, { created: Date.now() / 1000 });
  assert.equal((await only()).state.status, "starting");
  make("math-1", null, { created: Date.now() / 1000 - 3600 });
  assert.equal((await only()).state.status, "lost");
});

test("watch: new runs, new events and a death are seen; nothing after the stop", async (context) => {
  const { make, store, root } = bench(context);
  let calls = 0;
  const stop = store.watch(root, () => (calls += 1));
  const changed = async (what: string): Promise<void> => {
    const before = calls;
    for (let round = 0; round < 150 && calls === before; round += 1) await wait(20);
    assert.ok(calls > before, what);
  };
  await wait(120);
  assert.equal(calls, 0, "nothing has changed");
  const dir = make("math-1", "torn");
  await changed("a new run");
  await wait(200);
  appendFileSync(join(dir, "journal.jsonl"), 'ues":{"loss":1.25}}\n');
  await changed("a new event");
  await wait(200);
  if (process.platform === "linux") {
    const child = spawn("sleep", ["60"]);
    const start = await processStart(child.pid as number);
    await attempt(dir, 1, { agent_pid: child.pid, agent_start: start, pid: child.pid, start });
    await wait(300);
    child.kill("SIGKILL");
    await changed("a death makes no file event");
  }
  const before = calls;
  stop();
  make("math-2", "complete");
  await wait(200);
  assert.equal(calls, before);
});

test("a run that is over is looked at less often, yet whoever asks sees at once that it was resumed", async (context) => {
  const { root, make, only, store } = bench(context);
  const dir = make("math-1", "complete");
  let calls = 0;
  store.watch(root, () => (calls += 1));
  await wait(200);
  assert.equal((await only()).state.status, "done");
  const before = calls;
  appendFileSync(join(dir, "journal.jsonl"), line(99, "run.started", { stage: "math", recipe: "sft", device: "cpu", total_steps: 9, resumed_from: null }, 2));
  assert.deepEqual([(await only()).state.attempt, (await only()).state.reason], [2, null]);
  for (let round = 0; round < 150 && calls === before; round += 1) await wait(20);
  assert.ok(calls > before, "and who watches sees it a little later");
});

test("a run on another machine is what its machine and its scheduler said last, never what this machine's processes say", async (context) => {
  const { root, make, only, store } = bench(context);
  const dir = make("math-1", "torn", { target: { id: "box", kind: "slurm", python: "python3" } });
  const remote = { v: 1, target: "box", kind: "slurm", address: "login1", dir: "/there", runner: "/runner", python: "python3", settings: {}, attempts: [{ attempt: 1, nonce: "n0nce", state: "submitted", job: { id: "7", nonce: "n0nce" }, asked: 1 }] };
  writeFileSync(join(dir, "remote.json"), JSON.stringify(remote));
  // Its processes are not here, whatever numbers they have.
  await attempt(dir, 1, { pid: 1, agent_pid: 1, agent_start: 1, start: 1 });
  const heard = (change: object): void => {
    const mirror = { v: 1, files: {}, probe: null, attempt: 1, heard: Date.now() / 1000, word: null, unreachable: null, complete: false, epoch: 1, ...change };
    writeFileSync(join(dir, ".mirror.tmp"), JSON.stringify(mirror));
    renameSync(join(dir, ".mirror.tmp"), join(dir, "mirror.json"));
  };
  const probe = { state: "running", now: 1, boot: "b", beat_age: 1, started: null, exit: null };
  const now = async (): Promise<unknown[]> => {
    const { status, remote: where } = (await only()).state;
    return [status, where?.word?.reason ?? null, where?.complete];
  };
  heard({ word: { state: "queued", reason: "Priority" } });
  assert.deepEqual(await now(), ["queued", "Priority", false]);
  let calls = 0;
  store.watch(root, () => (calls += 1));
  await wait(150);
  heard({ word: { state: "queued", reason: "Resources" } });
  for (let round = 0; round < 150 && calls === 0; round += 1) await wait(20);
  assert.ok(calls > 0, "another reason to wait is news");
  heard({ probe });
  assert.deepEqual(await now(), ["running", null, false]);
  heard({ probe, unreachable: { since: 5, reason: "no-route", message: "No route." } });
  assert.deepEqual(await now(), ["unreachable", null, false]);
  heard({ probe: { ...probe, state: "exited", exit: { finished: { kind: "done" }, t: 7 } }, complete: true });
  assert.deepEqual(await now(), ["done", null, true]);
  assert.deepEqual(await now(), ["done", null, true]);
  heard({ attempt: 2, probe });
  assert.deepEqual(await now(), ["starting", null, false]);
  writeFileSync(join(dir, "mirror.json"), "torn");
  assert.equal((await only()).state.status, "running", "what was heard is gone; the journal's copy says that it had begun");
  writeFileSync(join(dir, "remote.json"), "torn");
  assert.match((await store.list(root)).unreadable[0]?.message ?? "", /remote\.json is damaged/);
});

test("200 runs are listed in 200 ms, and again in less", async (context) => {
  const { make, root } = bench(context);
  const store = new FolderRunStore({ now: () => Date.now() / 1000 + 60 });
  for (let index = 0; index < 200; index += 1) make(`math-${index}`, "resumed");
  let started = performance.now();
  assert.equal((await store.list(root)).runs.length, 200);
  const first = performance.now() - started;
  started = performance.now();
  await store.list(root);
  const second = performance.now() - started;
  context.diagnostic(`first ${first.toFixed(0)} ms, again ${second.toFixed(0)} ms`);
  assert.ok(first < 1000 && second < 500, `${first} ms, ${second} ms`);
});

test("a check on further prompts is seen however long the run has been over, and a damaged one takes nothing else away", async (context) => {
  const { make, store, root, only } = bench(context);
  const dir = make("search-20260101T000000-0000", "complete");
  assert.equal((await only()).checked, undefined);
  let changes = 0;
  const stop = store.watch(root, () => changes++);
  context.after(stop);
  await wait(200);
  const folder = join(dir, "checked");
  mkdirSync(folder);
  writeFileSync(join(folder, ".math.json.1.tmp"), "{");
  const put = (name: string, text: string): void => {
    writeFileSync(join(folder, ".new"), text);
    renameSync(join(folder, ".new"), join(folder, name));
  };
  const whole = readFileSync(new URL("checked/math.json", fixtures), "utf8");
  put("math.json", whole);
  const seen = async (what: string, as: () => boolean): Promise<void> => {
    for (let turn = 0; turn < 200 && !as(); turn++) await wait(20);
    assert.ok(as(), what);
  };
  await seen("the watch saw the first check", () => changes > 0);
  assert.deepEqual([...((await only()).checked ?? [])].map(([skill, check]) => [skill, "problem" in check ? check.problem : check.found.n]), [["math", 64]]);
  const before = changes;
  put("math.json", whole.replace('"n": 64', '"n": 65'));
  put("tool.json", "{");
  mkdirSync(join(folder, "format.json"));
  await seen("the watch saw the next check", () => changes > before);
  const { state, checked } = await only();
  assert.equal(state.status, "done");
  const problems = [...(checked ?? [])].map(([skill, check]) => [skill, "problem" in check ? check.problem : check.found.n]);
  assert.deepEqual([problems[1], problems[2]?.[0], problems[2]?.[1]], [["math", 65], "tool", "checked/tool.json of run search-20260101T000000-0000 is damaged, so what was checked is not known. Confirm the flag once more, which replaces it."]);
  assert.match(String(problems[0]?.[1]), /^checked\/format\.json of run .* cannot be read: /);
});
