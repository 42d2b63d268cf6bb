import { homedir } from "node:os";
import { basename, dirname } from "node:path/posix";
import type { AttemptProbe } from "../../../protocol/attempt.ts";
import type { StoreCleared, StoreItem, StoreSurvey } from "../../../protocol/cleaning.ts";
import type { JobRef, MirrorFile, RemoteFile, SchedulerWord, SlurmSettings, StationFrame, TargetReport } from "../../../protocol/remote.ts";
import type { Resources } from "../../../protocol/runSpec.ts";
import { attemptName } from "../../../storage/runs/runStore.ts";
import { AppError, messageOf } from "../../../util/errors.ts";
import { t } from "../../../util/l10n.ts";
import { sleep } from "../../sleep.ts";
import { taskRef } from "../arrayKin.ts";
import type { Description, Progress, RemotePlan, RemoteTarget } from "../port.ts";
import { ReachError, reachOf } from "../reachError.ts";
import { runnerArchive } from "../runnerArchive.ts";
import { SshCommand } from "../sshCommand.ts";
import { localStation, type Station } from "../station.ts";
import { isTrouble } from "../stationErrors.ts";
import { StationRuns } from "../stationRuns.ts";
import type { AdapterDeps } from "../targets.ts";
import { acrossNodes, arrayList, arrayListText, batchScript, graceSeconds, jobFile, onEachNode, refusalIn, resourceOptions, sbatchArgv, type BatchJob } from "./batchScript.ts";
import { askedFor, idAmong, idOf, markedOf, markOf, ours, type JobMark } from "./jobMark.ts";
import { SlurmClient } from "./slurmClient.ts";
import { wordOf, type SlurmJob } from "./slurmText.ts";

/** Seconds that a job which was still waiting may take to leave the queue after it was cancelled. */
const cancelPatience = 15;

/**
 * A Slurm cluster, seen from the machine that has `sbatch`: this one, or a login node behind ssh. Files and agents are reached
 * as on any machine (`runs`); here is what the scheduler adds. A job is ours only if its comment holds the attempt's nonce.
 */
export class SlurmTarget implements RemoteTarget {
  readonly kind = "slurm";
  readonly id: string;
  readonly address: string;
  private readonly settings: SlurmSettings;
  private readonly runnerDir: string;
  private readonly ssh: SshCommand | null;
  private readonly station: Station;
  private readonly runs: StationRuns;
  private readonly slurm: SlurmClient;

  constructor(settings: SlurmSettings, { runnerDir, sshProgram }: Pick<AdapterDeps, "runnerDir"> & { sshProgram?: readonly string[] }) {
    this.settings = settings;
    this.id = settings.id;
    this.address = settings.host === null ? t("this machine (Slurm)") : `${settings.host} (Slurm)`;
    this.runnerDir = runnerDir;
    this.ssh = settings.host === null ? null : new SshCommand(settings.host, sshProgram);
    this.station = this.ssh?.station(runnerDir, settings.python) ?? localStation(runnerDir, settings.python.replace(/^~(?=\/)/, homedir()));
    this.runs = new StationRuns(this.station, runnerDir);
    this.slurm = new SlurmClient(this.station);
  }

  locate(signal?: AbortSignal): Promise<{ dir: string; python: string }> {
    return this.runs.locate(this.settings.dir, signal);
  }

  /** Also asks Slurm whether it would take a job with the target's own resources; nothing is submitted. */
  async check(signal?: AbortSignal): Promise<TargetReport> {
    // The GPUs of a login node are nobody's business: those of the partitions count.
    const about = { target: this.id, kind: this.kind, address: this.address } as const;
    const report: TargetReport = { ...(await this.runs.check(about, this.settings.dir, signal)), gpus: null };
    if (!report.reachable) return report;
    try {
      const { resources } = this.settings;
      const [partitions, version, refusal] = await Promise.all([this.slurm.partitions(signal), this.slurm.version(signal), this.slurm.wouldRefuse(resourceOptions(resources), resources, signal)]);
      report.queue = partitions.map(({ name, state, nodes, gpus, waiting, running }) => ({ name, state, nodes, gpus, waiting, running }));
      if (version !== null) report.versions = { ...report.versions, slurm: version };
      if (refusal !== null) report.problems.push({ reason: "resources", message: refusal });
    } catch (error) {
      if (AppError.is(error, "cancelled")) throw error;
      report.problems.push({ reason: reachOf(error) ?? "resources", message: messageOf(error) });
    }
    return report;
  }

  async describe(plan: RemotePlan): Promise<Description> {
    const job = jobOf(plan);
    const { attemptSpec, inputs, remote, spec } = forJob(plan);
    const { version, bytes } = await runnerArchive(this.runnerDir);
    const { requeue = true, time } = job.resources;
    const { array } = plan;
    const written: [string, string][] = [["run.json", json(spec)], [`${attemptName(plan.attempt)}/spec.json`, json(attemptSpec)]];
    const dirs = array === undefined ? [remote.dir] : array.runs.map(({ dir }) => dir);
    return {
      commands: [
        ...(this.ssh === null ? [] : [{ what: t("The one command that ssh is given, for every step; what is done there comes on its input"), argv: await this.ssh.stationArgv(this.settings.python) }]),
        { what: t("Check the run before it starts"), argv: [remote.python, "-m", "seesaw_runner.preflight", `${remote.dir}/run.json`, "--json"] },
        { what: t("Submit the job"), argv: sbatchArgv(job) },
        ...(attemptSpec.check === undefined ? [] : [{ what: t("Check the Python of the job's own machines, first of all in the job"), argv: attemptSpec.check }]),
        { what: t("The training, started by the agent"), argv: attemptSpec.argv },
      ],
      files: [
        { local: `${this.runnerDir}/seesaw_runner`, remote: remote.runner, bytes: bytes.length, there: null },
        ...inputs.map(({ local, remote: path, bytes: size }) => ({ local, remote: path, bytes: size, there: null })),
        ...dirs.flatMap((dir) => written.map(([name, text]) => ({ local: `${plan.dir.slice(0, -plan.id.length)}${basename(dir)}/${name}`, remote: `${dir}/${name}`, bytes: Buffer.byteLength(text), there: null }))),
        ...jobFiles(job).map(({ path, text }) => ({ local: basename(path), remote: path, bytes: Buffer.byteLength(text), there: null })),
      ],
      script: batchScript(job),
      notes: [
        ...(array === undefined ? [] : [t("One array of {0} tasks, each a run of its own: {1}.", array.runs.length, array.runs.map(({ dir, seed }, task) => t("task {0} is seed {1} ({2})", task, seed, basename(dir))).join(", "))]),
        t("The runner (version {0}) and every input are copied once, under the hash of what they hold.", version),
        requeue ? t("After a node failure or a preemption Slurm starts it again, and it goes on from its last checkpoint.") : t("After a node failure or a preemption it is not started again."),
        ...(time === undefined ? [t("No time limit is asked for: the partition's own holds.")] : []),
      ],
    };
  }

  async prepare(plan: RemotePlan, progress: Progress, signal?: AbortSignal): Promise<void> {
    batchScript(jobOf(plan)); // refused before anything is copied
    return this.runs.prepare(forJob(plan), progress, signal);
  }

  /** On the machine that has sbatch, which sees the same disks and has the same Python as the nodes. */
  preflight(plan: RemotePlan, signal?: AbortSignal): Promise<string | null> {
    return this.runs.preflight(forJob(plan), signal);
  }

  async submit(plan: RemotePlan, signal?: AbortSignal): Promise<JobRef> {
    const job = jobOf(plan);
    const there = await this.find(plan.remote, plan.attempt, signal);
    if (there !== null) return there;
    const begun = await this.begun(plan, signal);
    if (begun !== null) return begun;
    await this.station.call({ verb: "write", items: jobFiles(job) }, { ...(signal && { signal }) });
    try {
      const id = await this.slurm.submit(sbatchArgv(job), job.resources, signal);
      return plan.array === undefined ? { id, nonce: job.nonce } : taskRef({ id }, { nonce: job.nonce, array: plan.array });
    } catch (error) {
      // The controller may have taken it and only its answer was lost.
      const found = error instanceof ReachError ? await this.find(plan.remote, plan.attempt, signal).catch(() => null) : null;
      if (found !== null) return found;
      throw error;
    }
  }

  async find(run: RemoteFile, attempt: number, signal?: AbortSignal): Promise<JobRef | null> {
    const asked = run.attempts.find((one) => one.attempt === attempt);
    if (asked === undefined) return null;
    const mark = markOf(run, asked);
    const id = idAmong(await this.slurm.named(mark.name, signal), mark) ?? (await this.jobThatTook(run.dir, attempt, signal)) ?? idAmong(await this.past(mark, signal), mark);
    return id === null ? null : { id, nonce: asked.nonce };
  }

  async word(run: RemoteFile, attempt: number, signal?: AbortSignal): Promise<SchedulerWord | null> {
    const job = await this.jobOf(run, attempt, signal);
    if (job === null) return (await this.leftArray(run, attempt, signal)) ?? { state: "not-found", reason: null };
    const word = wordOf(job);
    // A job that had finished can be put back into the queue, even held there for ever, when its last word was lost. It would start nothing.
    const idle = word.state === "queued" && (job.restarts ?? 0) > 0 && (await this.isOver(run, attempt, signal));
    if (idle) return { ...word, state: "ended", end: "exited" };
    let said: string | null = null;
    for (const path of word.end === "failed" ? outputsOf(run, attempt, job) : []) said ??= refusalIn(await this.text(path, signal));
    return said === null ? word : { ...word, said };
  }

  probe(run: RemoteFile, attempt: number, signal?: AbortSignal): Promise<AttemptProbe> {
    return this.runs.ask(run, attempt, "probe", [], signal);
  }

  /** An attempt's end is not the run's as long as Slurm may start its job again: whoever follows asks for the `word` then. */
  follow(run: RemoteFile, known: MirrorFile["files"], onFrame: (frame: StationFrame) => Promise<void> | void, signal: AbortSignal): Promise<void> {
    return this.runs.follow(run, known, onFrame, signal);
  }

  /** Cancel file first, so that the training saves and its end is recorded; scancel where no agent lives to see it, or if asked again. */
  async stop(run: RemoteFile, attempt: number, signal?: AbortSignal): Promise<void> {
    const newest = await this.newest(run, attempt, signal);
    const before = await this.probe(run, newest, signal);
    await this.runs.ask(run, newest, "cancel", [], signal);
    const job = await this.jobOf(run, newest, signal);
    if (job === null) return;
    const word = wordOf(job);
    if (word.state === "ended" || word.state === "completing") return;
    const agentWill = word.state === "running" && before.state === "running" && before.cancel !== true;
    if (agentWill) return;
    await this.slurm.cancel(idOf(job), signal);
    if (word.state !== "queued") return; // it has KillWait to end; later words tell
    const deadline = Date.now() + cancelPatience * 1000;
    while (wordOf((await this.jobOf(run, newest, signal)) ?? job).state === "queued") {
      if (Date.now() > deadline) throw new ReachError("no-scheduler", t("Slurm on {0} was asked to take job {1} out of the queue, but it still waits there: stop it again, or look with `squeue -j {1}`.", this.station.name, idOf(job)));
      await pause(500, signal);
      if ((await this.jobOf(run, newest, signal)) === null) return;
    }
  }

  /** Slurm must say that the job is over: only then its processes on other machines are surely gone. */
  async reap(run: RemoteFile, attempt: number, signal?: AbortSignal): Promise<AttemptProbe> {
    const word = await this.word(run, attempt, signal);
    const over = word?.state === "ended" || word?.state === "not-found";
    return over ? this.runs.ask(run, attempt, "reap", ["--gone"], signal) : this.probe(run, attempt, signal);
  }

  fetch(run: RemoteFile, relative: string, local: string, progress: Progress, signal?: AbortSignal): Promise<void> {
    return this.runs.fetch(`${run.dir}/${relative}`, local, progress, signal);
  }

  survey(runs: readonly string[], signal?: AbortSignal): Promise<StoreSurvey> {
    return this.runs.survey(this.settings.dir, runs, signal);
  }

  clear(runs: readonly string[], items: readonly StoreItem[], signal?: AbortSignal): Promise<StoreCleared> {
    return this.runs.clear(this.settings.dir, runs, items, signal);
  }

  dispose(): void {
    this.runs.dispose();
  }

  /** The attempt's job as Slurm tells it, now or from its accounting; null where it knows none of ours. */
  private async jobOf(run: RemoteFile, attempt: number, signal?: AbortSignal): Promise<SlurmJob | null> {
    const asked = askedFor(run, attempt);
    if (asked === null) return null;
    const ref = asked.job ?? (await this.find(run, asked.attempt, signal));
    if (ref === null) return null;
    const mark = markOf(run, asked);
    const now = await this.slurm.job(ref.id, signal);
    if (now !== null && markedOf([now], mark) !== null) return now;
    const other = markedOf(await this.slurm.named(mark.name, signal), mark);
    if (other !== null) return (await this.slurm.job(idOf(other), signal)) ?? other;
    return markedOf(await this.past(mark, signal), mark);
  }

  /** From the accounting, which keeps comments only where it is told to; the name says whose they are, too. */
  private async past({ name, comment }: JobMark, signal?: AbortSignal): Promise<SlurmJob[]> {
    return ((await this.slurm.past({ name }, signal)) ?? []).map((job) => (job.comment === "" ? { ...job, comment } : job));
  }

  /**
   * What became of a task that is not in its array any more although others of it are known, and that never began: it was
   * taken out of the queue, and without accounting Slurm keeps no word of that. null: nothing can be told.
   */
  private async leftArray(run: RemoteFile, attempt: number, signal?: AbortSignal): Promise<SchedulerWord | null> {
    const asked = askedFor(run, attempt);
    if (asked?.array === undefined || attempt !== asked.attempt) return null;
    const mark = markOf(run, asked);
    const known = await this.slurm.named(mark.name, signal);
    if (ours(known, mark).length === 0 || markedOf(known, mark) !== null || (await this.jobThatTook(run.dir, asked.attempt, signal)) !== null) return null;
    const { cancel } = await this.probe(run, asked.attempt, signal);
    return { state: "ended", end: cancel === true ? "cancelled" : "unknown", reason: cancel === true ? "CANCELLED" : "LEFT_ARRAY" };
  }

  /** The job of an array that some of its runs' folders name, though Slurm knows none of its tasks any more. */
  private async begun({ array, attempt, attemptSpec }: RemotePlan, signal?: AbortSignal): Promise<JobRef | null> {
    if (array === undefined) return null;
    const folders = array.runs.map(({ dir }) => dir);
    const { items } = await this.station.call({ verb: "have", items: folders.map((dir) => ({ path: `${dir}/${attemptName(attempt)}/job.json` })) }, { ...(signal && { signal }) });
    const one = folders.find((_, index) => (items as { there: boolean }[])[index]?.there === true);
    const id = one === undefined ? null : await this.jobThatTook(one, attempt, signal);
    return id === null ? null : taskRef({ id }, { nonce: attemptSpec.nonce, array });
  }

  /** The job that an attempt's folder names: it began, whatever Slurm still knows of it. */
  private async jobThatTook(dir: string, attempt: number, signal?: AbortSignal): Promise<string | null> {
    try {
      const { id } = JSON.parse(await this.text(`${dir}/${attemptName(attempt)}/job.json`, signal)) as { id?: unknown };
      return typeof id === "string" ? id : null;
    } catch (error) {
      if (error instanceof SyntaxError) return null;
      throw error;
    }
  }

  /** The beginning of a file there; empty where there is none. */
  private async text(path: string, signal?: AbortSignal): Promise<string> {
    let text = "";
    const onFrame = (frame: StationFrame): void => {
      if (frame.kind === "piece") text += Buffer.from(frame.data, "base64").toString("utf8");
    };
    try {
      await this.station.call({ verb: "get", path, max: 65_536 }, { onFrame, ...(signal && { signal }) });
    } catch (error) {
      if (!isTrouble(error, "not-there")) throw error;
    }
    return text;
  }

  /** Whether slurm_job.py would start nothing more of this run: its newest attempt is done, paused or was cancelled. */
  private async isOver(run: RemoteFile, attempt: number, signal?: AbortSignal): Promise<boolean> {
    const { probe } = await this.runs.agent(run, await this.newest(run, attempt, signal), "probe", [], signal);
    const exit = probe?.exit ?? {};
    const kind = (exit["finished"] as { kind?: unknown } | undefined)?.kind;
    return kind === "done" || kind === "paused" || probe?.cancel === true || String(exit["reason"]).startsWith("cancel");
  }

  /** The newest attempt there: Slurm may have started the job again since the caller last heard of it. */
  private async newest(run: RemoteFile, attempt: number, signal?: AbortSignal): Promise<number> {
    for (let newest = attempt; ; newest++) {
      const { probe } = await this.runs.agent(run, newest + 1, "probe", [], signal);
      if (probe === null || probe.state === "absent") return newest;
    }
  }
}

function resourcesOf(plan: RemotePlan): Resources {
  return plan.spec.target.resources ?? {};
}

/** The attempt as a job runs it. */
function forJob(plan: RemotePlan): RemotePlan {
  const { attemptSpec, spec } = plan;
  const resources = resourcesOf(plan);
  const nodes = spec.launch.kind === "torchrun" ? (resources.nodes ?? spec.launch.nodes) : 1;
  const check = attemptSpec.check && onEachNode(attemptSpec.check, resources, nodes);
  return { ...plan, attemptSpec: { ...attemptSpec, fate: true, grace_s: graceSeconds(resources, attemptSpec.grace_s), argv: acrossNodes(attemptSpec.argv, spec.launch, resources), ...(check && { check }) } };
}

function arrayDir(run: string, nonce: string): string {
  return `${dirname(dirname(run))}/arrays/${nonce}`;
}

function jobOf(plan: RemotePlan): BatchJob {
  const { array, attempt, attemptSpec } = plan;
  const { dir, runner, python } = plan.remote;
  const job: BatchJob = { run: basename(dir), attempt, nonce: attemptSpec.nonce, dir, runner, python, resources: resourcesOf(plan) };
  if (array === undefined) return job;
  const { name, nonce, limit, runs } = array;
  return { ...job, array: { dir: arrayDir(dir, nonce), name, nonce, limit, runs: runs.map((one) => one.dir) } };
}

/** Where Slurm writes what a job prints: as `sbatchOptions` says. */
function outputsOf(run: RemoteFile, attempt: number, job: SlurmJob): string[] {
  const array = askedFor(run, attempt)?.array;
  const own = `${run.dir}/slurm-${idOf(job)}.out`;
  // A task prints into its run's folder once it knows which that is.
  return array === undefined ? [own] : [own, `${arrayDir(run.dir, array.nonce)}/slurm-${idOf(job)}.out`];
}

/** What only the job needs. */
function jobFiles(job: BatchJob): { path: string; text: string }[] {
  const list = job.array === undefined ? [] : [{ path: arrayList(job.array), text: arrayListText(job.array) }];
  return [...list, { path: jobFile(job), text: batchScript(job) }];
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 1)}\n`;
}

async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  await sleep(ms, signal);
  if (signal?.aborted) throw new AppError("cancelled", t("Waiting for Slurm was stopped: cancelled."));
}
