import { randomBytes } from "node:crypto";
import { mkdir, rename, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { awaySentence } from "../../domain/run/awayWeights.ts";
import { newestAttempt } from "../../domain/run/remoteFiles.ts";
import type { AttemptProbe } from "../../protocol/attempt.ts";
import type { StoreItem } from "../../protocol/cleaning.ts";
import type { RemoteAttempt, RemoteFile, RemoteSettings } from "../../protocol/remote.ts";
import type { RunSpec } from "../../protocol/runSpec.ts";
import type { RunRecord, RunStore } from "../../storage/runs/runStore.ts";
import { AppError, messageOf } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import type { Log } from "../../util/log.ts";
import type { FileHasher } from "../hashFiles.ts";
import type { StartedRun, StartOptions } from "../launcher.ts";
import { diskError, writeJson } from "../local.ts";
import { judgeFindings } from "../preflight.ts";
import { asArray, taskRef } from "./arrayKin.ts";
import { mustBeThere } from "./cleaning.ts";
import { fetchCheckpoint } from "./fetchCheckpoint.ts";
import type { PlannedModel } from "./pathMap.ts";
import type { Description, RemotePlan, RemoteTarget } from "./port.ts";
import { reachOf } from "./reachError.ts";
import { homeOf, machineOf, readPlan, weightsAway, withAttempt, writePlan, writeRemote, type RemoteHome } from "./remoteFolder.ts";
import { gatherFiles } from "./remoteInputs.ts";
import { planModels } from "./remoteModels.ts";
import { nextAttempt, remotePlan } from "./remotePlan.ts";
import type { RemoteTargets } from "./targets.ts";

export interface RemoteDeps {
  runs: RunStore;
  hasher: FileHasher;
  log: Log;
  targets: RemoteTargets;
  /** Folder that holds `seesaw_runner`. */
  runnerDir: string;
}

/** A stage that starts on another machine. */
export interface RemoteStart {
  root: string;
  settings: RemoteSettings;
  /** The spec as this machine keeps it, once the target has said which Python it has. */
  freeze(python: string): RunSpec;
  /** The run folder, and the name it has until everything is on the target. */
  dir: string;
  aside: string;
}


/** How long a start that failed may take to clean up after itself, in ms. */
const tidyMs = 20_000;

/** Starts, resumes, stops and describes runs on other machines. What it decides is in the run folder and on the target. */
export class RemoteLauncher {
  private readonly deps: RemoteDeps;

  constructor(deps: RemoteDeps) {
    this.deps = deps;
  }

  /**
   * Everything up to the submission happens aside: a run folder that can be seen is whole on the target and has passed the
   * preflight. Several `starts` are the same stage with other seeds, tasks of one array, of which at most `limit` go at once.
   */
  async start(starts: readonly RemoteStart[], options: StartOptions, limit: number | null = null): Promise<StartedRun[]> {
    const { root, settings } = firstOf(starts);
    const target = await this.deps.targets.of(settings);
    const progress = options.onCopy ?? (() => {});
    const where = await target.locate(options.signal);
    const specs = starts.map(({ freeze }) => freeze(where.python));
    const notes = await this.bring(firstOf(specs), settings, options);
    const { models } = await planModels(firstOf(specs), settings, where.dir, this.deps.hasher, join(root, ".seesaw", "cache"));
    const plans = await this.plans(specs, starts, target, where, models, limit);
    try {
      for (const [index, { aside }] of starts.entries()) {
        const plan = plans[index] as RemotePlan;
        await mkdir(aside, { recursive: true });
        await writeJson(join(aside, "run.json"), specs[index]);
        await writeRemote(aside, plan.remote);
        await writePlan(aside, plan);
        await target.prepare(plan, progress, options.signal);
      }
      // They differ by their seeds alone.
      notes.push(...(await this.preflight(target, firstOf(plans), options)));
      for (const { aside, dir } of starts) await rename(aside, dir);
    } catch (error) {
      for (const one of starts) await putAway(one);
      await this.tidy(target, plans, error);
      throw AppError.is(error) ? error : diskError(firstOf(starts).aside, error);
    }
    notes.push(...(await this.submit(target, plans, async () => {
      for (const one of starts) await putAway(one);
      await this.tidy(target, plans, null);
    })));
    return plans.map((plan, index) => started(plan, settings, index === 0 ? notes : []));
  }

  /** The next attempt, in the same run folder on the same machine, whatever seesaw.yaml says of the target now. */
  async resume(run: RunRecord, remote: RemoteFile, attempt: number, options: StartOptions): Promise<StartedRun> {
    await mustBeThere(run.dir);
    const target = await this.deps.targets.of(remote.settings);
    const plan = nextAttempt(await readPlan(run.dir), { attempt, nonce: newNonce(), runner: await this.runner(), remote });
    await writeRemote(run.dir, plan.remote);
    let notes: string[];
    try {
      await target.prepare(plan, options.onCopy ?? (() => {}), options.signal);
      notes = await this.preflight(target, plan, options);
      await writePlan(run.dir, plan);
    } catch (error) {
      await writeRemote(run.dir, remote);
      throw error;
    }
    notes.push(...(await this.submit(target, [plan], () => writeRemote(run.dir, remote))));
    return started(plan, remote.settings, notes);
  }

  /** Goes up the cancel ladder on the target; its end shows as the run's. */
  async stop(run: RunRecord, remote: RemoteFile, options: StartOptions): Promise<AttemptProbe> {
    const target = await this.deps.targets.of(remote.settings);
    const attempt = Math.max(run.state.attempt, newestAttempt(remote)?.attempt ?? 1);
    await target.stop(remote, attempt, options.signal);
    return target.probe(remote, attempt, options.signal);
  }

  /** What a start would do. Nothing is written and nobody is asked: what is not known here is shown as seesaw.yaml has it. */
  async describe(starts: readonly RemoteStart[], limit: number | null = null): Promise<Description> {
    const { settings } = firstOf(starts);
    const target = await this.deps.targets.of(settings);
    const home = (path: string): string => path.replace(/^~(?=\/)/, "/HOME");
    const where = { dir: home(settings.dir), python: home(settings.python) };
    const notes = settings.dir.startsWith("~") || settings.python.startsWith("~") ? [t("HOME stands for your home folder on {0}; a start asks there where that is.", target.address)] : [];
    const specs = starts.map(({ freeze }) => freeze(where.python));
    const spec = firstOf(specs);
    const { models, detours } = await planModels(spec, settings, where.dir, this.deps.hasher, null);
    const { runs } = await this.deps.runs.list(spec.pipeline.root);
    for (const { folder, home } of detours) {
      const saved = checkpointAt(runs, home);
      notes.push(t("{0} lies on {1} and would be copied here first.", folder, home.remote.address));
      models.set(folder, { kind: "send", folder, sha256: saved?.weightsHash ?? basename(home.runDir), bytes: saved?.bytes ?? 0 });
    }
    const description = await target.describe(firstOf(await this.plans(specs, starts, target, where, models, limit)));
    return { ...description, notes: [...notes, ...description.notes] };
  }

  /** Brings a checkpoint of a run here. Returns its folder; one that is here already is left alone. */
  async fetch(run: RunRecord, step: number | null, options: StartOptions): Promise<{ folder: string; fetched: boolean }> {
    const saved = step === null ? run.state.checkpoints.findLast((one) => one.final) ?? run.state.checkpoints.at(-1) : run.state.checkpoints.find((one) => one.step === step);
    if (saved === undefined) {
      const steps = run.state.checkpoints.map((one) => one.step).join(", ") || t("none yet");
      throw new AppError("not-found", step === null ? t("Run {0} has saved no checkpoint yet.", run.id) : t("Run {0} saved no checkpoint at step {1}: it has {2}.", run.id, step, steps));
    }
    const folder = join(run.dir, saved.path);
    const home = await homeOf(folder);
    if (home === null) throw new AppError("usage", t("Run {0} is of this machine: its checkpoints are here already, in {1}.", run.id, join(run.dir, "checkpoints")));
    if (home.here) return { folder, fetched: false };
    await mustBeThere(run.dir);
    return { folder: await this.fetchHome(home, saved.weightsHash, options), fetched: true };
  }

  /** Brings here whatever of these folders lies on another machine. Returns what was done, in sentences. */
  async bringHere(root: string, folders: Iterable<string>, options: StartOptions, unless: (home: RemoteHome) => boolean = () => false): Promise<string[]> {
    const notes: string[] = [];
    const { runs } = await this.deps.runs.list(root);
    for (const folder of new Set(folders)) {
      const away = await weightsAway(folder);
      const home = away === null ? null : await homeOf(folder);
      if (away === null || home === null || unless(home)) continue;
      if (!options.trusted) throw new AppError("untrusted", awaySentence(away));
      await this.fetchHome(home, checkpointAt(runs, home)?.weightsHash ?? null, options);
      notes.push(t("The weights of {0} were copied here from {1}.", away.run, home.remote.address));
    }
    return notes;
  }

  private bring(spec: RunSpec, settings: RemoteSettings, options: StartOptions): Promise<string[]> {
    const folders = [spec.base, spec.start.checkpoint, ...Object.values(spec.models ?? {}).map(({ checkpoint }) => checkpoint)];
    return this.bringHere(spec.pipeline.root, folders, options, ({ remote }) => machineOf(remote.settings) === machineOf(settings));
  }

  private async fetchHome(home: RemoteHome, weightsHash: string | null, options: StartOptions): Promise<string> {
    const target = await this.deps.targets.of(home.remote.settings);
    this.deps.log.info(`Fetching ${home.remote.dir}/${home.relative} from ${home.remote.address}`);
    return fetchCheckpoint(target, home, weightsHash, options.onCopy ?? (() => {}), options.signal);
  }

  private async plans(specs: readonly RunSpec[], starts: readonly RemoteStart[], target: RemoteTarget, where: { dir: string; python: string }, models: ReadonlyMap<string, PlannedModel>, limit: number | null): Promise<RemotePlan[]> {
    const { settings } = firstOf(starts);
    const { objects, tree } = await gatherFiles(firstOf(specs), this.deps.hasher);
    await this.deps.hasher.save();
    const runner = await this.runner();
    const plans = specs.map((spec, index) => remotePlan({ spec, dir: starts[index]?.dir ?? "", attempt: 1, nonce: newNonce(), settings, address: target.address, where, runner, objects, tree, models }));
    return asArray(plans, limit);
  }

  /**
   * Takes away what a start that came to nothing has put on its target: nobody would know these folders as theirs. What was
   * copied for all runs stays. Best effort, since the person waits for the reason.
   */
  private async tidy(target: RemoteTarget, plans: readonly RemotePlan[], error: unknown): Promise<void> {
    const reach = reachOf(error);
    if (target.kind === "ray" || (reach !== null && reach !== "not-writable")) return; // a Ray job brings its folders along
    const items = plans.flatMap(({ id }): StoreItem[] => [{ kind: "runs", name: id }, { kind: "work", name: id }]);
    await target.clear(plans.map(({ id }) => id), items, AbortSignal.timeout(tidyMs)).catch((failure: unknown) => this.deps.log.info(`What was prepared on ${target.address} stays there: ${messageOf(failure)}`));
  }

  private async runner(): Promise<string> {
    const { runnerArchive } = await import("./runnerArchive.ts");
    return (await runnerArchive(this.deps.runnerDir)).version;
  }

  /** null: only a job could run it; there it is the first thing that runs. */
  private async preflight(target: RemoteTarget, plan: RemotePlan, options: StartOptions): Promise<string[]> {
    options.onCopy?.(t("checking packages, data and disk space"), 0, 0);
    const printed = await target.preflight(plan, options.signal);
    if (printed === null) return [];
    const sentences = judgeFindings(printed);
    if (sentences !== null) return sentences;
    throw new AppError("agent-failed", t("The preflight check of {0} on {1} gave no answer.", plan.remote.python, plan.remote.address));
  }

  /**
   * Asks for the attempt, or for all tasks of an array, under the stage's lock, which their supervisors respect. A lost answer
   * is no failure: the attempt may well be there, and the supervisor looks it up by its nonce before anything is asked again.
   * `undo`: when it was refused.
   */
  private async submit(target: RemoteTarget, plans: readonly RemotePlan[], undo: () => Promise<void>): Promise<string[]> {
    const asked = plans.map(({ dir, attempt, attemptSpec, remote, array }) => {
      const one: RemoteAttempt = { attempt, nonce: attemptSpec.nonce, state: "submitting", job: null, asked: Date.now() / 1000 };
      const attempted = array === undefined ? one : { ...one, array: { nonce: array.nonce, name: array.name, task: array.task } };
      return { dir, attempted, remote: withAttempt(remote, attempted) };
    });
    const plan = firstOf(plans);
    const { address } = plan.remote;
    const names = plans.map(({ id }) => id).join(", ");
    for (const { dir, remote } of asked) await writeRemote(dir, remote);
    try {
      const job = await target.submit({ ...plan, remote: firstOf(asked).remote });
      for (const { dir, attempted, remote } of asked) await writeRemote(dir, withAttempt(remote, { ...attempted, state: "submitted", job: attempted.array === undefined ? job : taskRef(job, attempted) }));
      this.deps.log.info(`Submitted ${names}, attempt ${plan.attempt}, on ${address} as ${job.id}`);
      return [];
    } catch (error) {
      if (isRefusal(error)) {
        await undo();
        throw error;
      }
      this.deps.log.warn(`The answer to the start of ${names} on ${address} was lost: ${messageOf(error)}`);
      return [t("No answer came from {0}, so it is not known yet whether the run has started there: it is looked up and never started twice. ({1})", address, messageOf(error))];
    }
  }
}

/** A run folder that came to nothing. A supervisor may be writing in it: out of sight first. */
async function putAway({ dir, aside }: RemoteStart): Promise<void> {
  await rename(dir, aside).catch(() => {}); // it never had its name
  await rm(aside, { recursive: true, force: true, maxRetries: 10 });
}

function firstOf<T>(all: readonly T[]): T {
  const [one] = all;
  if (one === undefined) throw new AppError("internal", t("Nothing was to be started."));
  return one;
}

/** Reasons for which an attempt was surely not taken: the target itself said no, or nothing was ever sent. */
function isRefusal(error: unknown): boolean {
  return ["bad-input", "bad-pipeline", "usage", "not-found", "spawn-failed", "disk-full", "not-writable", "no-python", "python-packages", "untrusted"].some((reason) => AppError.is(error) && error.reason === reason);
}

function newNonce(): string {
  return randomBytes(16).toString("hex");
}

function checkpointAt(runs: readonly RunRecord[], { runDir, relative }: RemoteHome): RunRecord["state"]["checkpoints"][number] | undefined {
  return runs.find(({ dir }) => dir === runDir)?.state.checkpoints.find(({ path }) => path === relative);
}

function started({ id, dir, attempt, attemptSpec }: RemotePlan, settings: RemoteSettings, notes: string[]): StartedRun {
  const python = { command: attemptSpec.argv[0] ?? settings.python, how: t("target `{0}` in seesaw.yaml", settings.id), version: null, packages: {}, problems: [], dependsOn: ["target"] };
  return { id, dir, attempt, argv: attemptSpec.argv, python, notes, probe: { state: "absent", now: 0, boot: "", beat_age: null, started: null, exit: null } };
}
