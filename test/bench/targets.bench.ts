// Runs on other machines, over the real station at the end of a pipe: how late a line is seen, how fast and with how much memory a
// log is copied, what resuming moves, and what a window costs that has 200 finished and 20 live runs. About three minutes.
import { appendFileSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, openSync, closeSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync, writeSync } from "node:fs";
import { spawn } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RemoteFile } from "../../src/protocol/remote.ts";
import { FolderRunStore } from "../../src/storage/runs/folderRunStore.ts";
import { Mirror } from "../../src/targets/remote/mirror.ts";
import type { RemoteTarget } from "../../src/targets/remote/port.ts";
import { RemoteWatch } from "../../src/targets/remote/remoteWatch.ts";
import { localStation } from "../../src/targets/remote/station.ts";
import { StationRuns } from "../../src/targets/remote/stationRuns.ts";
import { silentLog } from "../../src/util/log.ts";
import type { BenchResult } from "./rowIndex.bench.ts";

const repo = join(import.meta.dirname, "../..");
const runner = join(repo, "runner");
const gigabyte = 1_000_000_000;

/** `python`: what runs the station and the agents. */
export async function bench(python: string): Promise<BenchResult[]> {
  const dir = mkdtempSync(join(tmpdir(), "seesaw-targets-"));
  try {
    return [...(await latency(join(dir, "late"), python)), ...(await copying(join(dir, "log"), python)), ...(await idle(join(dir, "idle"), python))];
  } finally {
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  }
}

const event = (seq: number, type: string, fields: object): string => `${JSON.stringify({ v: 1, seq, t: Date.now() / 1000, attempt: 1, type, ...fields })}\n`;
const started = event(1, "run.started", { stage: "math", recipe: "sft", device: "cpu", total_steps: 9999, resumed_from: null });
const metric = (seq: number): string => event(seq, "metric", { step: seq, values: { loss: 1 / seq } });
const median = (values: number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] ?? NaN;
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** A run folder here and, for a remote one, there. Its agent is no process: only what is followed matters. */
function makeRun(root: string, name: string, { kind, there, python, complete = false }: { kind: "local" | "ssh"; there: string; python: string; complete?: boolean }): string {
  const local = join(root, ".seesaw/runs", name);
  mkdirSync(local, { recursive: true });
  const spec = { schema: "1.0", id: name, stage: name.split("-")[0], index: 0, recipe: "sft", pipeline: {}, created: 1, start: {}, skills: [], probe: {}, flags: {}, target: { id: "box", kind, python } };
  writeFileSync(join(local, "run.json"), JSON.stringify(spec));
  if (kind === "local") return local;
  mkdirSync(join(there, "attempt-0001"), { recursive: true });
  writeFileSync(join(there, "attempt-0001/spec.json"), JSON.stringify({ v: 1, nonce: "0123456789", argv: ["sleep", "100000"], cwd: "", env: {}, epoch: 1, grace_s: 1, beat_s: 1, fate: false, run: ".." }));
  const remote: RemoteFile = {
    v: 1, target: "box", kind, address: "box", dir: there, runner, python, settings: { kind, id: "box", host: "box", python, dir: there },
    attempts: [{ attempt: 1, nonce: "0123456789", state: "submitted", job: { id: "1", nonce: "0123456789" }, asked: 1 }],
  };
  writeFileSync(join(local, "remote.json"), JSON.stringify(remote));
  if (complete) writeFileSync(join(local, "mirror.json"), JSON.stringify({ v: 1, files: {}, attempt: 1, complete, epoch: 1 }));
  return local;
}

/** A machine that is this one, through a pipe; only what a watching window uses. */
function pipeTarget(python: string): RemoteTarget {
  const runs = new StationRuns(localStation(runner, python), runner);
  return {
    id: "box", kind: "ssh", address: "box",
    word: () => Promise.resolve(null),
    follow: (run: RemoteFile, known: Parameters<StationRuns["follow"]>[1], onFrame: Parameters<StationRuns["follow"]>[2], signal: AbortSignal) => runs.follow(run, known, onFrame, signal),
    dispose: () => runs.dispose(),
  } as unknown as RemoteTarget;
}

/** From the writing of a journal line until a view that watches the store has it: on another machine, and in a local run beside it. */
async function latency(dir: string, python: string): Promise<BenchResult[]> {
  const seen = async (kind: "local" | "ssh"): Promise<number[]> => {
    const [root, there] = [join(dir, kind), join(dir, `${kind}-there`)];
    const local = makeRun(root, "math-20260101T000000-0000", { kind, there, python });
    const journal = join(kind === "ssh" ? there : local, "journal.jsonl");
    writeFileSync(journal, started);
    const [store, target] = [new FolderRunStore(), pipeTarget(python)];
    const watch = new RemoteWatch({ target: () => Promise.resolve(target), log: silentLog });
    let last = 0;
    const look = async (): Promise<void> => void (last = (await store.list(root)).runs[0]?.state.lastSeq ?? 0);
    const unwatch = store.watch(root, () => void look());
    watch.watch(root);
    const delays: number[] = [];
    try {
      while (last < 1) await sleep(50).then(look);
      for (let seq = 2; seq < 42; seq += 1) {
        await sleep(150 + Math.random() * 400);
        const from = performance.now();
        appendFileSync(journal, metric(seq));
        while (last < seq && performance.now() - from < 30_000) await sleep(2);
        delays.push(performance.now() - from);
      }
      return delays;
    } finally {
      unwatch();
      store.dispose();
      await watch.dispose();
      target.dispose();
    }
  };
  const [far, near] = [await seen("ssh"), await seen("local")];
  const row = (name: string, value: number): BenchResult => ({ name, value: Math.round(value), unit: "ms" });
  return [
    { ...row("followed run: a line written until the view has it, median of 40", median(far)), target: "≤ 1000" },
    { ...row("the same, the slowest", Math.max(...far)) },
    { ...row("a local run beside it, median", median(near)) },
  ] as BenchResult[];
}

/** Highest resident memory of this process's only python child, in MB; 0 where /proc does not tell. */
function stationMemory(): number {
  const children = `/proc/self/task/${process.pid}/children`;
  const pids = existsSync(children) ? readFileSync(children, "utf8").trim().split(" ").filter(Boolean) : [];
  const of = (pid: string): number => {
    try {
      return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;
    } catch {
      return 0;
    }
  };
  return Math.max(0, ...pids.map(of));
}

/** A log of 1 GB: how fast it comes against a plain copy, how memory grows on both sides, and what resuming moves. Then a journal that grows by 10 MB/s. */
async function copying(dir: string, python: string): Promise<BenchResult[]> {
  const [there, local] = [join(dir, "there"), join(dir, "local")];
  for (const folder of [join(there, "attempt-0001"), local]) mkdirSync(folder, { recursive: true });
  const block = Buffer.alloc(1_000_000);
  for (let index = 0; index < block.length; index += 1) block[index] = (index * 7) & 0xff;
  const file = openSync(join(there, "out.log"), "w");
  for (let written = 0; written < gigabyte; written += block.length) writeSync(file, block);
  closeSync(file);
  const began = performance.now();
  copyFileSync(join(there, "out.log"), join(dir, "plain"));
  const plain = performance.now() - began;
  rmSync(join(dir, "plain"));

  const runs = new StationRuns(localStation(runner, python), runner);
  const follow = async (until: (size: number) => boolean, onBytes: (count: number) => void = () => {}): Promise<number> => {
    const mirror = await Mirror.open(local);
    const stop = new AbortController();
    let moved = 0;
    await runs.follow({ dir: there, runner }, mirror.known(), async (frame) => {
      await mirror.apply(frame);
      if (frame.kind !== "piece") return;
      const count = Buffer.byteLength(frame.data, "base64");
      moved += count;
      onBytes(count);
      if (until(mirror.file.files[frame.file]?.size ?? 0)) stop.abort();
    }, stop.signal);
    await mirror.close();
    return moved;
  };

  // The first half warms both sides up (a collector takes its time); what they need from then on must not depend on how much has come.
  let [total, base, most, station] = [0, 0, 0, [0, 0]];
  let pieces = 0;
  const from = performance.now();
  await follow((size) => size >= gigabyte, (count) => {
    total += count;
    const here = process.memoryUsage().rss;
    const late = total > gigabyte / 2;
    if (late) most = Math.max(most, here);
    else base = Math.max(base, here);
    pieces += 1;
    if (pieces % 64 === 0) station[late ? 1 : 0] = stationMemory();
  });
  const copied = performance.now() - from;

  // The link was cut, the process died 2 MB behind what it had written down, and the log grew by 3 MB meanwhile.
  truncateSync(join(local, "out.log"), gigabyte - 2_000_000);
  for (let more = 0; more < 3; more += 1) appendFileSync(join(there, "out.log"), block);
  const moved = await follow((size) => size >= gigabyte + 3_000_000);
  const same = statSync(join(local, "out.log")).size === statSync(join(there, "out.log")).size;

  // 10 MB/s of events for ten seconds.
  const journal = join(there, "journal.jsonl");
  const lines = Buffer.from(metric(1).repeat(Math.ceil(250_000 / metric(1).length)));
  writeFileSync(journal, "");
  let [due, written, behind] = [performance.now(), 0, 0];
  const end = due + 10_000;
  const writing = setInterval(() => {
    for (; due < Math.min(performance.now(), end); due += 25) {
      appendFileSync(journal, lines);
      written += lines.length;
    }
  }, 25);
  const rss = process.memoryUsage().rss;
  let peak = rss;
  await follow((size) => {
    peak = Math.max(peak, process.memoryUsage().rss);
    behind = Math.max(behind, written - size);
    return performance.now() >= end && size >= written;
  });
  clearInterval(writing);
  const took = (performance.now() - (end - 10_000)) / 1000;
  runs.dispose();
  return [
    { name: "a log of 1 GB copied", value: Math.round(gigabyte / 1e6 / (copied / 1000)), unit: "MB/s", ratio: Number((plain / copied).toFixed(2)), target: "≥ 10" },
    { name: "the memory of its second half beyond that of the first, here", value: Math.round(Math.max(0, most - base) / 1e6), unit: "MB", target: "flat" },
    { name: "the memory of its second half beyond that of the first, there", value: Math.round((station[1] ?? 0) - (station[0] ?? 0)), unit: "MB", target: "flat" },
    { name: "resuming it moves, of what was missing", value: Number((moved / 5_000_000).toFixed(3)), unit: same ? "×" : "× (DIFFERS)", target: "1" },
    { name: "a journal of 10 MB/s followed", value: Number((written / 1e6 / took).toFixed(1)), unit: "MB/s", target: "≥ 10 but for the end" },
    { name: "the most it was behind", value: Number((behind / 1e6).toFixed(1)), unit: "MB" },
    { name: "the memory of that beyond its beginning", value: Math.round((peak - rss) / 1e6), unit: "MB", target: "flat" },
  ] as BenchResult[];
}

/** Processor time of a process in seconds, from /proc. */
function spent(pid: number): number {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) / 100;
  } catch {
    return 0;
  }
}

/** A window that shows 200 finished and 20 live runs in which nothing happens: its share of a core. The machines are this one, so theirs is told beside it. */
export async function idle(dir: string, python: string): Promise<BenchResult[]> {
  const root = join(dir, "work");
  const finished = started + metric(2) + event(3, "run.finished", { reason: { kind: "done" } });
  for (let index = 0; index < 200; index += 1) writeFileSync(join(makeRun(root, `done-20260101T000000-${String(index).padStart(4, "0")}`, { kind: "ssh", there: join(dir, "there", `d${index}`), python, complete: true }), "journal.jsonl"), finished);
  const agents = Array.from({ length: 20 }, (_, index) => {
    const there = join(dir, "there", `l${index}`);
    makeRun(root, `live-20260102T000000-${String(index).padStart(4, "0")}`, { kind: "ssh", there, python });
    writeFileSync(join(there, "journal.jsonl"), started + metric(2));
    return spawn(python, [join(runner, "seesaw_runner/agent.py"), "run", join(there, "attempt-0001")], { stdio: "ignore" });
  });
  const [store, target] = [new FolderRunStore(), pipeTarget(python)];
  const watch = new RemoteWatch({ target: () => Promise.resolve(target), log: silentLog });
  const unwatch = store.watch(root, () => void store.list(root));
  watch.watch(root);
  try {
    for (let live = 0, tries = 0; live < 20 && tries < 240; tries += 1) {
      await sleep(500);
      live = (await store.list(root)).runs.filter(({ state }) => state.status === "running" && state.lastSeq === 2).length;
      if (tries === 239) throw new Error(`only ${live} of 20 live runs are seen running`);
    }
    await sleep(5_000);
    const stations = readFileSync(`/proc/self/task/${process.pid}/children`, "utf8").trim().split(" ").map(Number).filter((pid) => !agents.some((agent) => agent.pid === pid));
    const [before, there, from] = [process.cpuUsage(), stations.map(spent), performance.now()];
    await sleep(40_000);
    const { user, system } = process.cpuUsage(before);
    const seconds = (performance.now() - from) / 1000;
    const far = stations.map((pid, index) => spent(pid) - (there[index] ?? 0)).reduce((sum, one) => sum + one, 0);
    return [
      { name: "200 finished and 20 live runs, idle: the window's share of a core", value: Number(((user + system) / 1e4 / seconds).toFixed(2)), unit: "%", target: "≤ 2" },
      { name: "a live run, idle: its station's share of a core, there", value: Number(((far * 100) / seconds / 20).toFixed(2)), unit: "%" },
    ] as BenchResult[];
  } finally {
    unwatch();
    store.dispose();
    await watch.dispose();
    target.dispose();
    for (const agent of agents) agent.kill("SIGTERM");
    await Promise.all(agents.map((agent) => (agent.exitCode === null && agent.signalCode === null ? new Promise((resolve) => agent.once("close", resolve)) : null)));
  }
}
