import { randomBytes } from "node:crypto";
import { mkdir, rename, rm } from "node:fs/promises";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { buildChain } from "../domain/run/chain.ts";
import type { Diagnostic, Pipeline, Target } from "../domain/pipeline/pipelineModel.ts";
import type { SeedList } from "../domain/pipeline/seedList.ts";
import { startsTogether } from "../domain/targets/targetList.ts";
import type { AttemptProbe, AttemptSpec } from "../protocol/attempt.ts";
import type { PredictedCost, RunSpec } from "../protocol/runSpec.ts";
import { attemptName, runsFolder, type RunRecord, type RunStore } from "../storage/runs/runStore.ts";
import { AppError, messageOf } from "../util/errors.ts";
import { t } from "../util/l10n.ts";
import type { Log } from "../util/log.ts";
import { version } from "../util/version.ts";
import { freezeRun, planStage, stageOf, type StagePlan } from "./freezeRun.ts";
import type { FileHasher } from "./hashFiles.ts";
import { LocalTarget, diskError, writeJson } from "./local.ts";
import { preflight } from "./preflight.ts";
import { findPython, pythonPlaces, requirePython, type PythonChoice, type PythonRequest } from "./python.ts";
import type { Description, Progress } from "./remote/port.ts";
import { readRemote, weightsAway } from "./remote/remoteFolder.ts";
import type { RemoteLauncher, RemoteStart } from "./remote/remoteLauncher.ts";
import type { RemoteTargets } from "./remote/targets.ts";
import { newRunId, newRunIds } from "./runId.ts";
import { attemptEnv, recipeArgv } from "./runnerEnv.ts";
import { mustBeValid } from "./pipelineFile.ts";
import { lockStage } from "./stageLock.ts";
import { alreadyRunning, isActive, standing } from "./standing.ts";
import { attemptNumbers, dropUnborn } from "./unborn.ts";

/** Where to look for Python beyond what the pipeline itself says. */
export type PythonHints = Pick<PythonRequest, "explicit" | "fromHost" | "top">;

export interface StartOptions {
  /** The person trusted the workspace: only then a program is started. */
  trusted: boolean;
  python?: PythonHints;
  signal?: AbortSignal;
  /** The run's seed, where it is not the file's: such a run stands beside the chain. */
  seed?: number;
  /** Told what is copied from or to another machine, in bytes; `total` 0: something that has no bytes. */
  onCopy?: Progress;
}

export interface StartedRun {
  id: string;
  dir: string;
  attempt: number;
  argv: string[];
  python: PythonChoice;
  probe: AttemptProbe;
  /** Sentences for the person, e.g. that the stage before has changed since. */
  notes: string[];
}

/** What starting a stage now would do. Nothing is started to find out. */
export interface StageOutlook {
  plan: StagePlan;
  /** The finished run with the same fingerprint, if the stage is up to date. */
  upToDate: RunRecord | null;
  active: RunRecord | null;
}

/** Starts, resumes and stops runs. What it decides is in the run folder; it keeps no state of its own. */
export class Launcher {
  private readonly runnerDir: string;
  private readonly runs: RunStore;
  private readonly hasher: FileHasher;
  private readonly log: Log;
  private readonly predict: ((pipeline: Pipeline, stageId: string) => Promise<PredictedCost>) | null;
  private readonly targets: RemoteTargets | null;
  private remotely: Promise<RemoteLauncher> | null = null;

  /** `predict`: what a stage is expected to cost, for run.json. `targets`: other machines; without them there is only this one. */
  constructor(deps: { runnerDir: string; runs: RunStore; hasher: FileHasher; log: Log; targets?: RemoteTargets; predict?: (pipeline: Pipeline, stageId: string) => Promise<PredictedCost> }) {
    this.runnerDir = deps.runnerDir;
    this.runs = deps.runs;
    this.hasher = deps.hasher;
    this.log = deps.log;
    this.predict = deps.predict ?? null;
    this.targets = deps.targets ?? null;
  }

  /** Reads and hashes the stage's inputs and says whether it is up to date or running, with this seed. */
  async outlook(pipeline: Pipeline, stageId: string, seed = pipeline.seed): Promise<StageOutlook> {
    const { runs } = await this.runs.list(pipeline.root);
    const chain = buildChain(pipeline, runs);
    const plan = await planStage(pipeline, stageId, chain, this.hasher, seed);
    return { plan, ...standing(pipeline, plan, chain, runs) };
  }

  /**
   * The Python a stage would use. Starts the candidates, so the workspace must be trusted. Of a stage on another machine it is
   * the one that seesaw.yaml names: nothing is asked there.
   */
  async python(pipeline: Pipeline, stageId: string, options: StartOptions): Promise<PythonChoice> {
    this.mustTrust(options, pipeline.root);
    const target = this.target(pipeline, stageId);
    if (target.kind !== "local") return { command: target.python, how: t("target `{0}` in seesaw.yaml", target.id), version: null, packages: {}, problems: [], dependsOn: ["target"] };
    return findPython(this.pythonRequest(pipeline.root, target, options));
  }

  /** A Python of this machine, for what works on run folders here: the stage's, unless that runs on another machine or is gone. */
  async localPython(pipeline: Pipeline, stageId: string, options: StartOptions): Promise<PythonChoice> {
    this.mustTrust(options, pipeline.root);
    const on = pipeline.stages.find(({ id }) => id === stageId)?.on;
    const target = pipeline.targets.find(({ id, kind }) => id === on && kind === "local") ?? null;
    return findPython(this.pythonRequest(pipeline.root, target, options));
  }

  /**
   * Exactly what starting a stage would do, without doing any of it: commands, files, the job script. Works before anything
   * of ours is on the target. A stage that cannot be started yet is AppError("not-finished"), as in `startStage`. `seeds`: those
   * of a target that starts several at once; else it is told of the first.
   */
  async describeStage(pipeline: Pipeline, diagnostics: readonly Diagnostic[], stageId: string, options: StartOptions, { seeds, limit }: SeedList = { seeds: [options.seed ?? pipeline.seed], limit: null }): Promise<Description> {
    this.mustTrust(options, pipeline.root);
    mustBeValid(diagnostics);
    const { plan } = await this.outlook(pipeline, stageId, seeds[0]);
    const target = this.target(pipeline, stageId);
    const notes = plan.startNote === null ? [] : [plan.startNote];
    if (target.kind !== "local") {
      const created = Date.now() / 1000;
      const chosen = this.startsTogether(pipeline, stageId) ? seeds : seeds.slice(0, 1);
      const starts = newRunIds(stageId, chosen.length).map((id, place) => this.startOf(pipeline, { ...plan, seed: chosen[place] ?? plan.seed }, target, id, options, { predicted: null, created }));
      const description = await (await this.remote()).describe(starts, limit);
      return { ...description, notes: [...notes, ...description.notes] };
    }
    const python = requirePython(await findPython(this.pythonRequest(pipeline.root, target, options)));
    const folder = join(runsFolder(pipeline.root), `${stageId}-<time>`);
    return {
      commands: [
        { what: t("checks packages, data and disk space"), argv: [python.command, "-m", "seesaw_runner.preflight", join(folder, "run.json"), "--json"] },
        { what: t("starts the training, which outlives this window"), argv: recipeArgv(python.command, plan.stage.recipe, folder, plan.stage.launch) },
      ],
      files: [],
      script: null,
      notes,
    };
  }

  /**
   * Starts one stage and resolves when its agent has answered. Of several windows that start the same stage exactly one
   * wins; the others get AppError("already-running") naming the run.
   */
  async startStage(pipeline: Pipeline, diagnostics: readonly Diagnostic[], stageId: string, options: StartOptions): Promise<StartedRun> {
    this.mustTrust(options, pipeline.root);
    mustBeValid(diagnostics);
    const stage = stageOf(pipeline, stageId);
    const runsDir = runsFolder(pipeline.root);
    const id = newRunId(stageId);
    const release = await lockStage(runsDir, stageId, id).catch((error: unknown) => {
      throw AppError.is(error) ? error : diskError(runsDir, error);
    });
    try {
      await dropUnborn(this.runs, pipeline.root, stageId, this.log);
      const { plan, active } = await this.outlook(pipeline, stageId, options.seed);
      if (active) throw alreadyRunning(active);
      const target = this.target(pipeline, stageId);
      const created = await this.now(pipeline.root);
      const predicted = await this.expected(pipeline, stageId);
      if (target.kind !== "local") {
        const [started] = await (await this.remote()).start([this.startOf(pipeline, plan, target, id, options, { predicted, created })], options);
        return noted(started as StartedRun, plan);
      }
      const python = requirePython(await findPython(this.pythonRequest(pipeline.root, target, options)));
      const brought = await this.bringHere(pipeline.root, [plan.start.checkpoint, ...Object.values(plan.models).map(({ checkpoint }) => checkpoint)], options);
      const env = attemptEnv(this.runnerDir, stage.env, stage.launch.processes);
      const spec = freezeRun(pipeline, plan, {
        id,
        trusted: options.trusted,
        target: { id: target.id, kind: target.kind, python: python.command },
        env: stage.env,
        created,
        versions: { ...python.packages, python: python.version ?? "", seesaw: version },
        predicted,
      });
      const dir = join(runsDir, id);
      // Everything up to the launch happens aside: a run folder that can be seen has passed the preflight.
      const aside = join(runsDir, `.new-${id}`);
      const argv = recipeArgv(python.command, stage.recipe, dir, stage.launch);
      try {
        await mkdir(aside, { recursive: true });
        await writeJson(join(aside, "run.json"), spec);
        const notes = await preflight(python.command, this.runnerDir, join(aside, "run.json"), env, options.signal);
        await rename(aside, dir);
        const probe = await this.launch(dir, 1, spec, argv, env);
        this.log.info(`Started ${id}: ${argv.join(" ")}`);
        return { id, dir, attempt: 1, argv, python, probe, notes: [...(plan.startNote === null ? [] : [plan.startNote]), ...brought, ...notes] };
      } catch (error) {
        await rm(aside, { recursive: true, force: true });
        throw AppError.is(error) ? error : diskError(aside, error);
      }
    } finally {
      await release();
    }
  }

  /** Whether the stage's target starts runs of several seeds at once, as one job array. */
  startsTogether(pipeline: Pipeline, stageId: string): boolean {
    return startsTogether(this.target(pipeline, stageId));
  }

  /** Starts a stage with several seeds by one job array, where the target `startsTogether`; of one seed, a job like any other. */
  async startSeeds(pipeline: Pipeline, diagnostics: readonly Diagnostic[], stageId: string, { seeds, limit }: SeedList, options: StartOptions): Promise<StartedRun[]> {
    this.mustTrust(options, pipeline.root);
    mustBeValid(diagnostics);
    const target = this.target(pipeline, stageId);
    if (target.kind === "local") throw new AppError("internal", t("There is only this machine here."));
    const runsDir = runsFolder(pipeline.root);
    const release = await lockStage(runsDir, stageId, newRunId(stageId)).catch((error: unknown) => {
      throw AppError.is(error) ? error : diskError(runsDir, error);
    });
    try {
      await dropUnborn(this.runs, pipeline.root, stageId, this.log);
      const predicted = await this.expected(pipeline, stageId);
      const created = await this.now(pipeline.root);
      const plans: StagePlan[] = [];
      for (const seed of seeds) {
        const { plan, active } = await this.outlook(pipeline, stageId, seed);
        if (active) throw alreadyRunning(active);
        plans.push(plan);
      }
      const ids = newRunIds(stageId, plans.length);
      const starts = plans.map((plan, place) => this.startOf(pipeline, plan, target, ids[place] ?? "", options, { predicted, created: created + place / 1000 }));
      const started = await (await this.remote()).start(starts, options, limit);
      return started.map((run, place) => (place > 0 ? run : noted(run, plans[0] as StagePlan)));
    } finally {
      await release();
    }
  }

  /** Goes on with a run that ended before it was done: a new attempt in the same folder, from its last checkpoint. */
  async resumeRun(root: string, runId: string, options: StartOptions): Promise<StartedRun> {
    this.mustTrust(options, root);
    const first = await this.findRun(root, runId);
    const release = await lockStage(runsFolder(root), first.stage, runId);
    try {
      const run = await this.findRun(root, runId);
      if (isActive(run)) throw alreadyRunning(run);
      if (run.state.status === "done") throw new AppError("usage", t("Run {0} is finished: there is nothing to resume. Run the stage again instead.", run.id));
      const { spec } = run;
      const remote = await readRemote(run.dir);
      if (remote !== null) {
        const last = Math.max(...remote.attempts.map(({ attempt }) => attempt), ...(await attemptNumbers(run.dir)), run.state.attempt, 0);
        return await (await this.remote()).resume(run, remote, last + 1, options);
      }
      const explicit = options.python?.explicit ?? (existsSync(spec.target.python) ? { command: spec.target.python, setting: "run.json" } : undefined);
      const request = this.pythonRequest(root, null, { ...options, python: { ...options.python, ...(explicit ? { explicit } : {}) } });
      const python = requirePython(await findPython(request));
      const env = attemptEnv(this.runnerDir, spec.env, spec.launch.processes);
      const argv = recipeArgv(python.command, spec.recipe, run.dir, spec.launch);
      const notes = await preflight(python.command, this.runnerDir, join(run.dir, "run.json"), env, options.signal);
      const attempt = (await attemptNumbers(run.dir)).at(-1) ?? 0;
      const probe = await this.launch(run.dir, attempt + 1, spec, argv, env);
      this.log.info(`Resumed ${runId} as attempt ${attempt + 1}`);
      return { id: runId, dir: run.dir, attempt: attempt + 1, argv, python, probe, notes };
    } finally {
      await release();
    }
  }

  /** Asks a run to stop: it finishes its step, saves, and ends as `cancelled`; its folder stays. Resolves before it has ended. */
  async stopRun(root: string, runId: string, options: StartOptions): Promise<AttemptProbe> {
    this.mustTrust(options, root);
    const run = await this.findRun(root, runId);
    const remote = await readRemote(run.dir);
    if (remote !== null) {
      if (!isActive(run)) throw new AppError("usage", t("Run {0} is not running: it is {1}.", run.id, run.state.status));
      return (await this.remote()).stop(run, remote, options);
    }
    const attempt = (await attemptNumbers(run.dir)).at(-1);
    if (attempt === undefined || !isActive(run)) throw new AppError("usage", t("Run {0} is not running: it is {1}.", run.id, run.state.status));
    return new LocalTarget(this.runnerDir, this.anyPython(root, run.spec)).cancel(join(run.dir, attemptName(attempt)));
  }

  /** Brings a checkpoint of a run on another machine here; `step` null: its last one. Returns its folder. */
  async fetchCheckpoint(root: string, runId: string, step: number | null, options: StartOptions): Promise<{ folder: string; fetched: boolean }> {
    this.mustTrust(options, root);
    return (await this.remote()).fetch(await this.findRun(root, runId), step, options);
  }

  private async bringHere(root: string, folders: readonly string[], options: StartOptions): Promise<string[]> {
    for (const folder of folders) if ((await weightsAway(folder)) !== null) return (await this.remote()).bringHere(root, folders, options);
    return [];
  }

  private remote(): Promise<RemoteLauncher> {
    const { targets, runs, hasher, log, runnerDir } = this;
    if (targets === null) throw new AppError("internal", t("There is only this machine here."));
    return (this.remotely ??= import("./remote/remoteLauncher.ts").then(({ RemoteLauncher }) => new RemoteLauncher({ runs, hasher, log, targets, runnerDir })));
  }

  /** What a start on another machine is made of. */
  private startOf(pipeline: Pipeline, plan: StagePlan, settings: Exclude<Target, { kind: "local" }>, id: string, { trusted }: StartOptions, known: { predicted: PredictedCost | null; created: number }): RemoteStart {
    const { env, resources } = plan.stage;
    const runsDir = runsFolder(pipeline.root);
    const freeze = (python: string): RunSpec => freezeRun(pipeline, plan, { id, trusted, target: { id: settings.id, kind: settings.kind, python, ...(resources !== undefined && { resources }) }, env, versions: { seesaw: version }, ...known });
    return { root: pipeline.root, settings, freeze, dir: join(runsDir, id), aside: join(runsDir, `.new-${id}`) };
  }

  /** The price beside which the run's own is shown later. A stage starts without one all the same. */
  private async expected(pipeline: Pipeline, stageId: string): Promise<PredictedCost | null> {
    try {
      return (await this.predict?.(pipeline, stageId)) ?? null;
    } catch (error) {
      this.log.info(`What ${stageId} will cost cannot be told: ${messageOf(error)}`);
      return null;
    }
  }

  /** Seconds since 1970, but after every run there is: also where the clock was set back, the newest run is the newest. */
  private async now(root: string): Promise<number> {
    const created = (await this.runs.list(root)).runs.map(({ spec }) => spec.created);
    return Math.max(Date.now() / 1000, ...created.map((time) => time + 0.001));
  }

  /** The run with this id. AppError("not-found"). */
  private async findRun(root: string, runId: string): Promise<RunRecord> {
    const { runs, unreadable } = await this.runs.list(root);
    const run = runs.find((candidate) => candidate.id === runId);
    if (run) return run;
    const broken = unreadable.find((candidate) => candidate.id === runId);
    if (broken) throw new AppError("run-unreadable", broken.message);
    throw new AppError("not-found", t("There is no run {0} in {1}.", runId, runsFolder(root)));
  }

  private async launch(dir: string, attempt: number, spec: RunSpec, argv: string[], env: Record<string, string>): Promise<AttemptProbe> {
    const attemptDir = join(dir, attemptName(attempt));
    const attemptSpec: AttemptSpec = {
      v: 1,
      nonce: randomBytes(16).toString("hex"),
      argv,
      cwd: spec.pipeline.root,
      env,
      epoch: attempt,
      grace_s: 20,
      beat_s: 1,
      fate: false,
      run: "..",
    };
    let probe: AttemptProbe;
    try {
      probe = await new LocalTarget(this.runnerDir, argv[0] ?? spec.target.python).launch(attemptDir, attemptSpec);
    } catch (error) {
      // No claim: no agent ever began, so the folder tells nothing.
      if (!existsSync(join(attemptDir, "claim"))) await rm(attempt === 1 ? dir : attemptDir, { recursive: true, force: true });
      throw error;
    }
    if (probe.state === "absent" || probe.state === "claimed") {
      throw new AppError("agent-failed", t("The agent of {0} did not report a start in time: see {1}.", spec.id, join(attemptDir, "agent.log")));
    }
    return probe;
  }

  private target(pipeline: Pipeline, stageId: string): Target {
    const stage = stageOf(pipeline, stageId);
    const target = pipeline.targets.find((candidate) => candidate.id === stage.on);
    if (target) return target;
    if (stage.on === "local") return { id: "local", kind: "local", python: null };
    throw new AppError("bad-pipeline", t("Stage `{0}` runs on target `{1}`, which {2} does not define.", stageId, stage.on, pipeline.file));
  }

  private pythonRequest(root: string, target: { id: string; python: string | null } | null, options: StartOptions): PythonRequest {
    return {
      root,
      ...options.python,
      ...(target !== null && target.python !== null ? { target: { id: target.id, python: target.python } } : {}),
      probeFile: join(this.runnerDir, "probe.py"),
      log: this.log,
      ...(options.signal ? { signal: options.signal } : {}),
    };
  }

  /** The agent's own verbs need no packages: the run's Python, or any other if that one is gone. */
  private anyPython(root: string, spec: RunSpec): string {
    if (existsSync(spec.target.python)) return spec.target.python;
    const place = pythonPlaces({ root, probeFile: "" })[0];
    if (place) return place.command;
    throw new AppError("no-python", t("{0}, which started this run, is gone and no other Python was found: install Python 3.", spec.target.python));
  }

  private mustTrust(options: StartOptions, root: string): void {
    if (!options.trusted) throw new AppError("untrusted", t("Nothing is started from {0} before you trust this workspace.", root));
  }
}

function noted(run: StartedRun, { startNote }: StagePlan): StartedRun {
  return { ...run, notes: [...(startNote === null ? [] : [startNote]), ...run.notes] };
}
