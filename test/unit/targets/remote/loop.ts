import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import type { AttemptProbe } from "../../../../src/protocol/attempt.ts";
import type { JobRef, MirrorFile, RemoteAttempt, RemoteFile, SchedulerWord, StationFrame } from "../../../../src/protocol/remote.ts";
import type { Description, RemotePlan, RemoteTarget } from "../../../../src/targets/remote/port.ts";
import { ReachError } from "../../../../src/targets/remote/reachError.ts";
import { localStation } from "../../../../src/targets/remote/station.ts";
import { StationRuns } from "../../../../src/targets/remote/stationRuns.ts";
import type { Log } from "../../../../src/util/log.ts";

export const repo = join(import.meta.dirname, "../../../..");
const venv = join(repo, ".venv/bin/python");
export const python = process.env["SEESAW_PYTHON"] ?? (existsSync(venv) ? venv : "python3");
export const runner = join(repo, "runner");

/** A machine that is this one, reached by the real station through a pipe, whose link and whose scheduler a test can break. */
export class LoopTarget implements RemoteTarget {
  readonly id = "box";
  readonly kind: "ssh" | "slurm";
  readonly address = "gpu-box";
  /** Why nobody can be reached now. */
  down: ReachError | null = null;
  /** The scheduler's word; with a function it is asked anew each time. */
  says: SchedulerWord | (() => SchedulerWord) | null = null;
  /** The next submission is done, but its answer is lost. */
  loseAnswer = false;
  /** What was asked of it, in order. */
  readonly calls: string[] = [];
  private runs = new StationRuns(localStation(runner, python), runner);

  constructor(kind: "ssh" | "slurm" = "ssh") {
    this.kind = kind;
  }

  /** Cuts what is under way, and everything after it until `mend`. */
  cut(reason: ReachError["reach"] = "no-route", message = "No route to gpu-box."): void {
    this.down = new ReachError(reason, message);
    this.runs.dispose();
    this.runs = new StationRuns(localStation(runner, python), runner);
  }

  mend(): void {
    this.down = null;
  }

  private reach(what: string): void {
    this.calls.push(what);
    if (this.down !== null) throw this.down;
  }

  locate(): Promise<{ dir: string; python: string }> {
    throw new Error("not asked for");
  }

  check(): never {
    throw new Error("not asked for");
  }

  describe(): Promise<Description> {
    throw new Error("not asked for");
  }

  preflight(): Promise<null> {
    return Promise.resolve(null);
  }

  async prepare(): Promise<void> {
    this.reach("prepare");
    await Promise.resolve();
  }

  async submit({ remote, attempt, attemptSpec }: RemotePlan): Promise<JobRef> {
    this.reach("submit");
    await this.runs.agent(remote, attempt, "run", ["--detach"]);
    if (this.loseAnswer) {
      this.loseAnswer = false;
      throw new ReachError("no-route", "The answer was lost.");
    }
    return { id: String(attempt), nonce: attemptSpec.nonce };
  }

  async find(run: RemoteFile, attempt: number): Promise<JobRef | null> {
    this.reach("find");
    const { probe } = await this.runs.agent(run, attempt, "probe");
    return probe === null || probe.state === "absent" ? null : { id: String(attempt), nonce: run.attempts.find((one) => one.attempt === attempt)?.nonce ?? "" };
  }

  async word(): Promise<SchedulerWord | null> {
    this.reach("word");
    return Promise.resolve(typeof this.says === "function" ? this.says() : this.says);
  }

  async probe(run: RemoteFile, attempt: number): Promise<AttemptProbe> {
    this.reach("probe");
    return (await this.runs.agent(run, attempt, "probe")).probe as AttemptProbe;
  }

  async follow(run: RemoteFile, known: MirrorFile["files"], onFrame: (frame: StationFrame) => Promise<void> | void, signal: AbortSignal): Promise<void> {
    this.reach("follow");
    const { runs } = this;
    try {
      await runs.follow(run, known, onFrame, signal);
    } catch (error) {
      // A disposed station says "cancelled": on a real link it is a cut.
      if (this.down !== null) throw this.down;
      throw error;
    }
    if (this.down !== null) throw this.down;
  }

  async stop(run: RemoteFile, attempt: number): Promise<void> {
    this.reach("stop");
    await this.runs.agent(run, attempt, "cancel");
  }

  async reap(run: RemoteFile, attempt: number): Promise<AttemptProbe> {
    this.reach("reap");
    return (await this.runs.agent(run, attempt, "reap")).probe as AttemptProbe;
  }

  fetch(): Promise<void> {
    throw new Error("not asked for");
  }

  survey(): never {
    throw new Error("not asked for");
  }

  clear(): never {
    throw new Error("not asked for");
  }

  dispose(): void {
    this.runs.dispose();
  }
}

/** A run of the stage `math` on that machine: its folder there, and the local one. */
export class LoopRun {
  readonly dir = mkdtempSync(join(tmpdir(), "seesaw-loop-"));
  readonly id = "math-20260101T000000-0a0b";
  readonly root = join(this.dir, "work");
  readonly local = join(this.root, ".seesaw/runs", this.id);
  readonly there = join(this.dir, "target/runs", this.id);
  readonly kind: "ssh" | "slurm";

  constructor(kind: "ssh" | "slurm" = "ssh") {
    this.kind = kind;
    for (const folder of [this.local, this.there]) mkdirSync(folder, { recursive: true });
    writeFileSync(join(this.local, "run.json"), JSON.stringify({ ...runJson, id: this.id, target: { id: "box", kind, python } }));
    writeFileSync(join(this.there, "run.json"), '{"paths": "of the target"}');
  }

  /** Writes remote.json with these attempts, 1, 2 …; the folders of attempts with a plan are made there, as `prepare` does. */
  asked(...attempts: (Partial<RemoteAttempt> & { plan?: AttemptPlan })[]): RemoteFile {
    const remote: RemoteFile = {
      v: 1, target: "box", kind: this.kind, address: "gpu-box", dir: this.there, runner, python,
      settings: { kind: "ssh", id: "box", host: "gpu-box", python, dir: join(this.dir, "target") },
      attempts: attempts.map(({ plan: _plan, ...one }, index) => ({ attempt: index + 1, nonce: `nonce-000${index + 1}`, state: "submitted", job: one.state === "submitting" ? null : { id: "7", nonce: "n" }, asked: 1, ...one })),
    };
    attempts.forEach(({ plan }, index) => plan && this.prepare(index + 1, plan));
    writeFileSync(join(this.local, "remote.json"), JSON.stringify(remote));
    return remote;
  }

  attemptDir(attempt: number): string {
    return join(this.there, `attempt-000${attempt}`);
  }

  private prepare(attempt: number, { steps = 5, seconds = 0.02, code = 0 }: AttemptPlan): void {
    const argv = [python, join(import.meta.dirname, "train.py"), join(this.there, "journal.jsonl"), String(steps), String(seconds), String(code)];
    const spec = { v: 1, nonce: `nonce-000${attempt}`, argv, cwd: "", env: {}, epoch: attempt, grace_s: 2, beat_s: 0.2, fate: false, run: ".." };
    mkdirSync(this.attemptDir(attempt), { recursive: true });
    writeFileSync(join(this.attemptDir(attempt), "spec.json"), JSON.stringify(spec));
  }

  plan(remote: RemoteFile, attempt = 1): RemotePlan {
    return { id: this.id, dir: this.local, remote, spec: { ...runJson, id: this.id } as unknown as RemotePlan["spec"], attempt, attemptSpec: { nonce: `nonce-000${attempt}` } as RemotePlan["attemptSpec"], inputs: [] };
  }

  remote(): RemoteFile {
    return JSON.parse(readFileSync(join(this.local, "remote.json"), "utf8")) as RemoteFile;
  }

  mirror(): MirrorFile {
    return JSON.parse(readFileSync(join(this.local, "mirror.json"), "utf8")) as MirrorFile;
  }

  /** Files whose bytes differ between here and there; what is never copied left out. */
  different(): string[] {
    const mine = new Set(["run.json", "remote.json", "remote-plan.json", "mirror.json"]);
    const never = /(^|\/)(\.[^/]*|heartbeat|[^/]*\.tmp|[^/]*\.part)$/;
    const files = (folder: string): string[] =>
      readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((entry) => (entry.isFile() ? [relative(folder, join(entry.parentPath, entry.name))] : []));
    const wanted = (file: string): boolean => !mine.has(file) && !never.test(file);
    const all = new Set([...files(this.there), ...files(this.local)].filter(wanted));
    return [...all].filter((file) => digest(join(this.there, file)) !== digest(join(this.local, file))).sort();
  }

  journalHere(): string {
    const path = join(this.local, "journal.jsonl");
    return existsSync(path) ? readFileSync(path, "utf8") : "";
  }

  dispose(): void {
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 5 });
  }
}

export interface AttemptPlan {
  steps?: number;
  seconds?: number;
  code?: number;
}

function digest(path: string): string {
  return existsSync(path) && statSync(path).isFile() ? createHash("sha256").update(readFileSync(path)).digest("hex") : "not there";
}

const runJson = { schema: "1.0", stage: "math", index: 0, recipe: "sft", pipeline: {}, created: 1, start: {}, skills: [], probe: {}, flags: {} };

/** Waits until something is so. */
export async function until(what: string, so: () => boolean | Promise<boolean>, seconds = 60): Promise<void> {
  const deadline = Date.now() + seconds * 1000;
  while (!(await so())) {
    if (Date.now() > deadline) throw new Error(`Not so after ${seconds} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A log that keeps what it is told. */
export function keepingLog(): Log & { lines: string[] } {
  const lines: string[] = [];
  const keep = (level: string) => (message: string) => void lines.push(`${level}: ${message}`);
  return { lines, debug: keep("debug"), info: keep("info"), warn: keep("warn"), error: keep("error") };
}
