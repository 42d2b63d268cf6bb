import { appendFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import type { Diagnostic, Pipeline } from "../../../src/domain/pipeline/pipelineModel.ts";
import type { MirrorFile, RemoteFile } from "../../../src/protocol/remote.ts";
import { createServices, type Services } from "../../../src/services.ts";
import type { RunRecord } from "../../../src/storage/runs/runStore.ts";
import type { StartedRun } from "../../../src/targets/launcher.ts";
import type { Clock } from "../../../src/targets/remote/backoff.ts";
import { loadPipeline, requirePipeline } from "../../../src/targets/pipelineFile.ts";
import type { Log } from "../../../src/util/log.ts";
import { leave, repo, sleep } from "./leftovers.ts";
import { FollowProcess } from "./followProcess.ts";
import { openWindow, type Window } from "./window.ts";

/** What the stand-in for a training does (`light/command.py`); what is left out has the value named here. */
export interface FakeTraining {
  /** Steps in all (20), seconds of each (0.1), steps between two checkpoints (5). */
  steps?: number;
  dt?: number;
  save?: number;
  /** It goes on until `lab.finish` tells it to end (false): so a fault comes in its middle however slow the machine is. */
  open?: boolean;
  /** Bytes of out.log a step (60), and whether they are no UTF-8 (false). */
  log?: number;
  bytes?: boolean;
  /** Megabytes that it takes once `lab.hold` tells it to (0). */
  hold?: number;
  /** Seconds that its clock is off (0). */
  clock?: number;
  /** It does not stop when it is asked (false). */
  ignore_stop?: boolean;
  /** Its exit code (0). */
  code?: number;
}

export interface LabOptions {
  /** The recipe `command` as it ships, with torch, running `train.py` of the workspace: seconds slower. Default: the stand-in. */
  real?: boolean;
  /** Words of the stage beyond `run`, for files that have to be copied: `["{python}", "train.py", "blob.bin"]`. */
  run?: string[];
  /** Further fields of the stage (`resources`, `env` …). */
  stage?: Record<string, unknown>;
  log?: Log;
}

/** The Python of this checkout: what the tests give as a target's `python`. */
export const python = process.env["SEESAW_PYTHON"] ?? join(repo, ".venv/bin/python");

/**
 * A workspace whose only stage `math` runs on a target named `box`, and everything a fault test needs to start it, follow it,
 * look at both sides and judge. The target is on this machine, so its files can be read and broken directly.
 */
export class Lab {
  /** The workspace. */
  readonly root: string;
  /** The folder of the target, `targets.box.dir`. */
  readonly target: string;
  /** What this process (a window or the command line) works with. */
  readonly services: Services;
  /** Everything that was logged. */
  readonly said: string[] = [];
  readonly dir: string;
  readonly install: string;
  readonly log: Log;
  /** The target as seesaw.yaml has it. */
  readonly box: Record<string, unknown>;
  private readonly options: LabOptions;
  private readonly windows: { close(): Promise<void> }[] = [];
  private readonly undo: (() => Promise<void>)[] = [];

  private constructor(box: Record<string, unknown>, options: LabOptions) {
    this.options = options;
    this.dir = mkdtempSync(join(tmpdir(), "sw-lab-"));
    this.undo.push(leave({ kind: "folder", path: this.dir }));
    this.root = join(this.dir, "work");
    this.install = options.real === true ? repo : lightInstall();
    this.box = { python, dir: join(this.dir, "target"), ...box };
    this.target = String(this.box["dir"]);
    this.undo.push(leave({ kind: "runs", dir: this.target }));
    for (const folder of [join(this.root, ".git"), join(this.root, "data")]) mkdirSync(folder, { recursive: true });
    cpSync(join(repo, "media/sample/models/m0"), join(this.root, "m0"), { recursive: true });
    const probes = readFileSync(join(repo, "media/sample/data/math.probe.jsonl"), "utf8").split("\n").slice(0, 4);
    writeFileSync(join(this.root, "data/math.probe.jsonl"), `${probes.join("\n")}\n`);
    cpSync(join(import.meta.dirname, "../light/train.py"), join(this.root, "train.py"));
    const keep = (level: string) => (message: string) => void this.said.push(`${level}: ${message}`);
    this.log = options.log ?? { debug: keep("debug"), info: keep("info"), warn: keep("warn"), error: keep("error") };
    this.services = createServices({ log: this.log, extensionDir: this.install, storageDir: join(this.dir, "storage") });
  }

  /**
   * `box`: the target as seesaw.yaml has it, `{ kind: "ssh", host: "far" }`; `dir` (a fresh folder) and `python` (this checkout's)
   * are filled in where they lack.
   */
  static open(box: Record<string, unknown>, options: LabOptions = {}): Lab {
    return new Lab(box, options);
  }

  /** Writes seesaw.yaml for such a training and reads it back. */
  async pipeline(training: FakeTraining = {}): Promise<{ pipeline: Pipeline; diagnostics: Diagnostic[] }> {
    const { steps = 20, dt = 0.1, save = 5 } = training;
    const run = this.options.run ?? ["{python}", "train.py", "{start}", "{output}", String(steps), String(dt), String(save)];
    const { env, ...stage } = this.options.stage ?? {};
    const file = {
      seesaw: 1,
      base: "m0",
      skills: { math: { probes: "data/math.probe.jsonl", check: { kind: "number-after", marker: "so" } } },
      probe: { every: 1000, max_new_tokens: 2, top_k: 2, kl: [] },
      stages: [{ id: "math", recipe: "command", on: "box", options: { run }, ...stage, env: { FAKE_TRAINING: JSON.stringify(training), ...(env as object | undefined) } }],
      targets: { box: this.box },
    };
    writeFileSync(join(this.root, "seesaw.yaml"), stringify(file));
    const loaded = await loadPipeline(join(this.root, "seesaw.yaml"));
    return { pipeline: requirePipeline(loaded), diagnostics: loaded.diagnostics };
  }

  /** Starts the stage as a window or the command line does, and resolves once the target has it. */
  async start(training: FakeTraining = {}): Promise<StartedRun> {
    const { pipeline, diagnostics } = await this.pipeline(training);
    return this.services.launcher.startStage(pipeline, diagnostics, "math", { trusted: true });
  }

  /** Tells a training that is `open` to make its next step its last. */
  finish(id: string): void {
    writeFileSync(join(this.there(id).dir, "output", "finish"), "");
  }

  hold(id: string): void {
    writeFileSync(join(this.there(id).dir, "output", "hold"), "");
  }

  /** Goes on with a run that ended before it was done. */
  async resume(id: string): Promise<StartedRun> {
    return this.services.launcher.resumeRun(this.root, id, { trusted: true });
  }

  async stop(id: string): Promise<void> {
    await this.services.launcher.stopRun(this.root, id, { trusted: true });
  }

  /** `clock`: of this window alone. A window of this process that has the workspace open: it follows every run that is not over. Closed at the end at the latest. */
  window(clock?: Clock): Promise<Window> {
    const window = openWindow(this.root, this.install, this.log, clock);
    this.windows.push(window);
    return Promise.resolve(window);
  }

  /** The same as a process of its own (an extension host), that can be killed, stopped and continued. Resolves once it follows. */
  async host(): Promise<FollowProcess> {
    const host = await FollowProcess.start(this.root, this.install);
    this.windows.push(host);
    return host;
  }

  /** The run as every surface sees it now. */
  async run(id: string): Promise<RunRecord> {
    const { runs, unreadable } = await this.services.runs.list(this.root);
    const found = runs.find((run) => run.id === id);
    if (found === undefined) throw new Error(`Run ${id} is not in ${this.root}: ${JSON.stringify(unreadable)}; ${runs.map((run) => run.id).join(", ")}`);
    return found;
  }

  /** Ids of all runs of the workspace, newest first. */
  async runs(): Promise<string[]> {
    return (await this.services.runs.list(this.root)).runs.map(({ id }) => id);
  }

  /** Waits until the surfaces' view of the run satisfies `wanted`; after `seconds` an error that says what it was instead. */
  async until(id: string, what: string, wanted: (run: RunRecord) => boolean, seconds = 300): Promise<RunRecord> {
    let last: RunRecord | null = null;
    const deadline = Date.now() + seconds * 1000;
    for (;;) {
      last = await this.run(id);
      if (wanted(last)) return last;
      if (Date.now() > deadline) break;
      await sleep(60);
    }
    const { status, reason, step, remote } = last.state;
    throw new Error(`${id} is not ${what} after ${seconds} s: ${JSON.stringify({ status, reason, step, remote })}\nmirror.json: ${this.read(id, "mirror.json")}\nremote.json: ${this.read(id, "remote.json")}\n${this.said.slice(-12).join("\n")}`);
  }

  /** Waits until the training on the target has done so many steps, as its own journal says. Needs nobody who follows. */
  async untilStep(id: string, step: number, seconds = 300): Promise<void> {
    await until(`${id} at step ${step} on the target`, () => this.there(id).journal.includes(`"type":"metric","step":${step},`), seconds, () => this.there(id).log.slice(-2000));
  }

  /** Local run folder. */
  local(id: string): string {
    return join(this.root, ".seesaw", "runs", id);
  }

  remoteFile(id: string): RemoteFile {
    return JSON.parse(readFileSync(join(this.local(id), "remote.json"), "utf8")) as RemoteFile;
  }

  mirrorFile(id: string): MirrorFile {
    return JSON.parse(readFileSync(join(this.local(id), "mirror.json"), "utf8")) as MirrorFile;
  }

  /** A file of the local run folder as text; empty when it is not there. */
  read(id: string, file: string): string {
    const path = join(this.local(id), file);
    return existsSync(path) ? readFileSync(path, "utf8") : "";
  }

  /** The target's side of a run, read from its own folder. */
  there(id: string): RemoteSide {
    return new RemoteSide(join(this.target, "runs", id));
  }

  /** Something else to undo when the lab is closed. */
  later(undo: () => Promise<void>): void {
    this.undo.push(undo);
  }

  async close(): Promise<void> {
    for (const window of this.windows.splice(0)) await window.close();
    this.services.dispose();
    for (const undo of this.undo.reverse()) await undo();
  }
}

let install: string | null = null;

/** This checkout as it is installed, with the stand-in in the place of the recipe. One for all labs of a process, which takes it away with the next sweep. */
function lightInstall(): string {
  if (install !== null) return install;
  const folder = mkdtempSync(join(tmpdir(), "sw-install-"));
  leave({ kind: "folder", path: folder });
  const skip = /__pycache__|\.ruff_cache|\.pytest_cache|runner\/(battery|sample)/;
  cpSync(join(repo, "runner"), join(folder, "runner"), { recursive: true, filter: (path) => !skip.test(path) });
  cpSync(join(import.meta.dirname, "../light/command.py"), join(folder, "runner/seesaw_runner/recipes/command.py"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  return (install = folder);
}

/** One start of the training, as it wrote it down itself. */
export interface TrainingStart {
  attempt: number;
  pid: number;
  start: number;
  /** Other trainings of the same run that lived at that moment. */
  others: number[];
}

/** A run folder on the target. */
export class RemoteSide {
  readonly dir: string;

  constructor(dir: string) {
    this.dir = dir;
  }

  /** Numbers of its attempts, ascending. */
  attempts(): number[] {
    const names = existsSync(this.dir) ? readdirSync(this.dir) : [];
    return names.flatMap((name) => /^attempt-(\d{4})$/.exec(name)?.[1] ?? []).map(Number).sort((a, b) => a - b);
  }

  attempt(number: number): string {
    return join(this.dir, `attempt-${String(number).padStart(4, "0")}`);
  }

  /** Attempts that an agent has claimed. */
  claims(): number {
    return this.attempts().filter((number) => existsSync(join(this.attempt(number), "claim"))).length;
  }

  /** Every start of the stand-in training; empty with the real recipe. */
  starts(): TrainingStart[] {
    return text(join(this.dir, "output", "starts.jsonl")).split("\n").filter(Boolean).map((line) => JSON.parse(line) as TrainingStart);
  }

  /** started.json of an attempt: who its agent and its training are. */
  started(attempt = 1): { agent_pid: number; agent_start: number; pid: number; start: number; boot: string } {
    return JSON.parse(readFileSync(join(this.attempt(attempt), "started.json"), "utf8")) as { agent_pid: number; agent_start: number; pid: number; start: number; boot: string };
  }

  exit(attempt = 1): Record<string, unknown> | null {
    const value = text(join(this.attempt(attempt), "exit.json"));
    return value === "" ? null : (JSON.parse(value) as Record<string, unknown>);
  }

  get journal(): string {
    return text(join(this.dir, "journal.jsonl"));
  }

  get log(): string {
    return text(join(this.dir, "out.log"));
  }
}

function text(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** Waits until something is so; after `seconds` an error with what is known. */
export async function until(what: string, so: () => boolean | Promise<boolean>, seconds = 300, known: () => string = () => "", every = 20): Promise<void> {
  const deadline = Date.now() + seconds * 1000;
  while (!(await so())) {
    if (Date.now() > deadline) throw new Error(`Not so after ${seconds} s: ${what}. ${known()}`);
    await sleep(every);
  }
}

/** Appends bytes to a file of the target until its disk is full. */
export function fillDisk(path: string): void {
  const block = Buffer.alloc(64 << 10, 1);
  for (const piece of [block, block.subarray(0, 512)]) {
    try {
      for (;;) appendFileSync(path, piece);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    }
  }
}
