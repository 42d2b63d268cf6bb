import { createHash, randomUUID } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RaySettings, RemoteFile } from "../../../src/protocol/remote.ts";
import type { Resources, RunSpec } from "../../../src/protocol/runSpec.ts";
import { Mirror } from "../../../src/targets/remote/mirror.ts";
import type { RemotePlan } from "../../../src/targets/remote/port.ts";
import { RayTarget } from "../../../src/targets/remote/ray/rayTarget.ts";
import { leave, repo, sleep } from "../shared/leftovers.ts";

/** The runner of this checkout. */
export const runnerDir = join(repo, "runner");

export interface RayLabOptions {
  token?: () => string | null;
  resources?: Resources;
  python?: string;
  dir?: string;
  /** More inputs of the run, made by the test. */
  inputs?: { name: string; bytes: Uint8Array }[];
  model?: { name: string; bytes: Uint8Array }[];
}

/** The adapter against a real head, with a run that is planned by hand: nothing of launcher and supervisor. */
export class RayLab {
  readonly target: RayTarget;
  readonly dir: string;
  readonly there: string;
  readonly settings: RaySettings;
  readonly said: string[] = [];
  private readonly options: RayLabOptions;
  private readonly undo: (() => Promise<void>)[];

  constructor(address: string, options: RayLabOptions = {}) {
    this.options = options;
    this.dir = mkdtempSync(join(tmpdir(), "sw-ray-"));
    this.there = options.dir ?? join(this.dir, "there");
    this.undo = [leave({ kind: "folder", path: this.dir }), leave({ kind: "runs", dir: this.there })];
    this.settings = { id: "box", kind: "ray", address, dir: this.there, python: options.python ?? "python3", resources: options.resources ?? {} };
    this.target = this.again();
  }

  /** The same target as another window has it. */
  again(): RayTarget {
    const keep = (message: string): void => void this.said.push(message);
    const deps = { runnerDir, log: { debug: keep, info: keep, warn: keep, error: keep }, token: () => Promise.resolve(this.options.token?.() ?? null) };
    return new RayTarget(this.settings, deps, {});
  }

  plan(words: { steps?: number; seconds?: number; save?: number; grace?: number; id?: string; attempt?: number; before?: RemoteFile } = {}): RemotePlan {
    const { steps = 6, seconds = 0.1, save = 3, grace = 8, attempt = 1, before } = words;
    const id = words.id ?? `math-${randomUUID().slice(0, 8)}`;
    const nonce = randomUUID();
    const files = [{ name: "training.py", bytes: readFileSync(join(import.meta.dirname, "training.py")) }, ...(this.options.inputs ?? [])];
    const inputs: RemotePlan["inputs"] = files.map(({ name, bytes }) => {
      const local = join(this.dir, name);
      writeFileSync(local, bytes);
      const sha256 = createHash("sha256").update(bytes).digest("hex");
      return { local, kind: "file", sha256, bytes: bytes.length, remote: `${this.there}/objects/${sha256}/${name}` };
    });
    if (this.options.model !== undefined) {
      const local = join(this.dir, "model");
      mkdirSync(local, { recursive: true });
      for (const { name, bytes } of this.options.model) writeFileSync(join(local, name), bytes);
      inputs.push({ local, kind: "model", sha256: "m".repeat(64), bytes: this.options.model.reduce((sum, { bytes }) => sum + bytes.length, 0), remote: `${this.there}/models/${"m".repeat(64)}` });
    }
    const dir = join(this.dir, "here", id);
    mkdirSync(dir, { recursive: true });
    const run = `${this.there}/runs/${id}`;
    const runner = `${this.there}/runner/abcdef123456`;
    const remote: RemoteFile = {
      v: 1, target: "box", kind: "ray", address: this.settings.address, dir: run, runner, python: this.settings.python, settings: this.settings,
      attempts: [...(before?.attempts ?? []), { attempt, nonce, state: "submitting", job: null, asked: null }],
    };
    const argv = [this.settings.python, inputs[0]?.remote ?? "", String(steps), String(seconds), String(save)];
    // What the adapter reads of run.json; the training of these tests reads none.
    const spec = { id, target: { id: "box", kind: "ray", python: this.settings.python, resources: this.settings.resources } } as unknown as RunSpec;
    return { id, dir, remote, spec, attempt, inputs, attemptSpec: { v: 1, nonce, argv, cwd: `${this.there}/work/${id}`, env: {}, epoch: attempt, grace_s: grace, beat_s: 0.5, fate: true, run: ".." } };
  }

  async start(plan: RemotePlan): Promise<RemotePlan> {
    await this.target.prepare(plan, () => {});
    const job = await this.target.submit(plan);
    return { ...plan, remote: { ...plan.remote, attempts: plan.remote.attempts.map((one) => (one.attempt === plan.attempt ? { ...one, state: "submitted", job } : one)) } };
  }

  /** Follows into the local folder until the run's end. */
  async follow(plan: RemotePlan, signal: AbortSignal = AbortSignal.timeout(400_000)): Promise<Mirror> {
    const mirror = await Mirror.open(plan.dir);
    try {
      await this.target.follow(plan.remote, mirror.known(), (frame) => mirror.apply(frame), signal);
    } finally {
      await mirror.close();
    }
    return mirror;
  }

  /** Bytes of a file of the run, on the target; empty if it is not there. */
  read(plan: RemotePlan, name: string): Buffer {
    const path = join(plan.remote.dir, name);
    return existsSync(path) ? readFileSync(path) : Buffer.alloc(0);
  }

  json(plan: RemotePlan, name: string): Record<string, unknown> {
    return JSON.parse(this.read(plan, name).toString("utf8")) as Record<string, unknown>;
  }

  steps(plan: RemotePlan): number {
    return this.read(plan, "journal.jsonl").toString("utf8").split("stage.progress").length - 1;
  }

  async untilStep(plan: RemotePlan, step: number, seconds = 240): Promise<void> {
    await until(`step ${step}`, () => this.steps(plan) >= step, seconds);
  }

  async close(): Promise<void> {
    this.target.dispose();
    for (const undo of this.undo.reverse()) await undo();
  }
}

export async function until(what: string, is: () => boolean | Promise<boolean>, seconds = 240): Promise<void> {
  const deadline = performance.now() + seconds * 1000;
  while (!(await is())) {
    if (performance.now() > deadline) throw new Error(`not within ${seconds} s: ${what}`);
    await sleep(100);
  }
}

/** All files below a folder with their bytes. */
export function contents(dir: string, skip: RegExp): Map<string, string> {
  const found = new Map<string, string>();
  for (const name of readdirSync(dir, { recursive: true }).map(String).sort()) {
    const path = join(dir, name);
    if (statSync(path).isFile() && !skip.test(name)) found.set(name, createHash("sha256").update(readFileSync(path)).digest("hex"));
  }
  return found;
}
