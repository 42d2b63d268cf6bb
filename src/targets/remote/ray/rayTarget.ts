import { basename, dirname } from "node:path";
import type { AttemptProbe } from "../../../protocol/attempt.ts";
import type { StoreCleared, StoreItem, StoreSurvey } from "../../../protocol/cleaning.ts";
import type { JobRef, MirrorFile, RaySettings, RemoteFile, SchedulerWord, StationFrame, TargetReport } from "../../../protocol/remote.ts";
import type { Resources } from "../../../protocol/runSpec.ts";
import { AppError } from "../../../util/errors.ts";
import { t } from "../../../util/l10n.ts";
import { sleep } from "../../sleep.ts";
import type { Description, Progress, RemotePlan, RemoteTarget } from "../port.ts";
import { ReachError, reachOf } from "../reachError.ts";
import { attemptDir } from "../remotePlan.ts";
import { isTrouble } from "../stationErrors.ts";
import { StationRuns, keepAccount } from "../stationRuns.ts";
import type { AdapterDeps } from "../targets.ts";
import { RayClient, ended, type RayJob, type RayJobRequest } from "./rayClient.ts";
import { neededRuns, nodeFor, nodeOfRun, runKey } from "./rayNodes.ts";
import { inputGroups, inputPackage, packageLimit, packageOf, tooLarge, type CarriedInput, type RayPackage } from "./rayPackage.ts";
import { rayReport } from "./rayReport.ts";
import { RayStation, uploadedRunner } from "./rayStation.ts";
import { entrypointResources, submissionId, wordOf } from "./rayText.ts";

/** One question may follow this long; then it is asked anew, so that what a crashed window left ends by itself. */
const followSeconds = 900;
/** Seconds that Ray lets a stopped job have beyond what the attempt gives its training, until it kills. */
const beyondGrace = 20;
/** What `ray_job.py` ends with when it started nothing, and says why. */
const refusedExit = 3;

/** A Ray cluster, through its Jobs API alone. */
export class RayTarget implements RemoteTarget {
  readonly kind = "ray";
  readonly id: string;
  readonly address: string;
  private readonly settings: RaySettings;
  private readonly deps: AdapterDeps;
  private readonly client: RayClient;
  /** What was packed for these inputs: for the job itself it need not be packed again. */
  private readonly packed = new Map<string, { name: string; uri: string; carried: CarriedInput[] }>();

  private where: { dir: string; python: string } | null = null;

  constructor(settings: RaySettings, deps: AdapterDeps, env: NodeJS.ProcessEnv = process.env) {
    this.settings = settings;
    this.deps = deps;
    this.id = settings.id;
    this.address = settings.address;
    this.client = new RayClient(settings.address, () => deps.token(settings), env, deps.editorFindsProxies);
  }

  async locate(signal?: AbortSignal): Promise<{ dir: string; python: string }> {
    return (this.where ??= await this.runs(null).locate(this.settings.dir, signal));
  }

  check(signal?: AbortSignal): Promise<TargetReport> {
    return rayReport(this.client, this.settings, (node) => this.runs(node), signal);
  }

  async describe(plan: RemotePlan): Promise<Description> {
    const { base, name } = { base: this.address, name: submissionId(plan.id, plan.attempt, plan.attemptSpec.nonce) };
    const script = { ...this.request(plan, "gcs://_ray_pkg_RUNNER.zip", ["gcs://_ray_pkg_INPUTS.zip", "gcs://_ray_pkg_RUN.zip"], null), submission_id: name };
    return {
      commands: [
        { what: t("Upload runner and inputs, each once, under the hash of what it holds"), argv: ["PUT", `${base}/api/packages/gcs/_ray_pkg_HASH.zip`] },
        { what: t("Submit the job"), argv: ["POST", `${base}/api/jobs/`] },
      ],
      files: plan.inputs.map(({ local, remote, bytes }) => ({ local, remote, bytes, there: null })),
      script: `${JSON.stringify(script, null, 2)}\n`,
      notes: [
        ...plan.inputs.filter(({ bytes }) => bytes > packageLimit).map(({ local, remote }) => t("{0} is too large for a Ray package: it has to be at {1} on the cluster already.", local, remote)),
        t("Ray gives up a job that could not start within 15 minutes, unless RAY_JOB_START_TIMEOUT_SECONDS says otherwise on the head."),
        ...(plan.attempt > 1 ? [t("A resumed run needs the files of its earlier attempts: it runs on the node that has them, unless all nodes share the folder.")] : []),
      ],
    };
  }

  async prepare(plan: RemotePlan, progress: Progress, signal?: AbortSignal): Promise<void> {
    await this.packages(plan, progress, signal);
  }

  /** The recipe checks everything itself before it trains. */
  preflight(): Promise<string | null> {
    return Promise.resolve(null);
  }

  async submit(plan: RemotePlan, signal?: AbortSignal): Promise<JobRef> {
    const { nonce } = plan.attemptSpec;
    const node = await nodeFor(this.client, plan, (one) => this.station(one), signal);
    const { runner, modules } = await this.packages(plan, () => {}, signal);
    const request = this.request(plan, runner.uri, modules, node);
    const { there } = await this.client.submit(request, signal);
    const id = request.submission_id;
    if (there && (await this.client.job(id, signal))?.metadata?.["nonce"] !== nonce) {
      throw new AppError("already-running", t("Ray at {0} has a job {1} of somebody else: start the stage again.", this.address, id));
    }
    if (node !== null) this.deps.log.info(`${plan.id}: pinned to Ray node ${node}, which has the files of its earlier runs`);
    return { id, nonce };
  }

  async find(run: RemoteFile, attempt: number, signal?: AbortSignal): Promise<JobRef | null> {
    const { id, nonce } = jobOf(run, attempt);
    const job = await this.client.job(id, signal);
    return job?.metadata?.["nonce"] === nonce ? { id, nonce } : null;
  }

  async word(run: RemoteFile, attempt: number, signal?: AbortSignal): Promise<SchedulerWord> {
    const { id } = jobOf(run, attempt);
    const job = await this.client.job(id, signal);
    if (job?.status === "PENDING" && (await this.client.job(stopMark(id), signal)) !== null) return { state: "ended", end: "cancelled", reason: "STOPPED", nodes: null };
    const said = job?.status === "FAILED" && job.driver_exit_code === refusedExit ? await this.refusal(job.submission_id, signal) : null;
    const nodes = await this.client.nodes(signal).catch(() => null);
    return wordOf(job, nodes, said, job === null ? undefined : resourcesIn(job));
  }

  async probe(run: RemoteFile, attempt: number, signal?: AbortSignal): Promise<AttemptProbe> {
    const job = await this.client.job(jobOf(run, attempt).id, signal);
    if (job?.status === "PENDING") return absent();
    return this.agent(run, attempt, "probe", [], signal);
  }

  async follow(run: RemoteFile, known: MirrorFile["files"], onFrame: (frame: StationFrame) => Promise<void> | void, signal: AbortSignal): Promise<void> {
    const have: MirrorFile["files"] = { ...known };
    let over = false;
    const take = async (frame: StationFrame): Promise<void> => {
      await onFrame(frame);
      keepAccount(have, frame);
      if (frame.kind === "end") over = true;
    };
    while (!over) {
      const job = await this.newestJob(run, signal);
      const station = job?.status === "PENDING" ? null : this.station(await nodeOfRun(this.client, run, signal));
      try {
        await station?.call({ verb: "follow", run: run.dir, runner: run.runner, known: have, limit_s: followSeconds }, { onFrame: take, signal });
        if (station !== null) continue;
      } catch (error) {
        if (!isTrouble(error, "no-run") && !isTrouble(error, "no-runner")) throw error;
        // A job that has just begun still makes the folder; one that gave up before never will: its word tells.
        if (job === null || ended(job)) {
          if (Object.keys(have).length > 0) throw error;
          await nothingNew(take, signal, Infinity);
        }
      }
      await nothingNew(take, signal, 1);
    }
  }

  async stop(run: RemoteFile, attempt: number, signal?: AbortSignal): Promise<void> {
    const { id } = jobOf(run, attempt);
    const job = await this.client.job(id, signal);
    if (job === null || ended(job)) {
      // The head forgot it; what it started may still be there on a disk that outlives it.
      await this.agent(run, attempt, "cancel", [], signal).catch((error: unknown) => {
        if (reachOf(error) === null && !AppError.is(error, "agent-failed")) throw error;
      });
      return;
    }
    if (job.status === "RUNNING") {
      // The cancel file first: only it lets the attempt say that it was cancelled.
      const asked = await this.agent(run, attempt, "cancel", [], signal).catch(() => null);
      if (asked !== null && asked.state !== "absent" && (await this.endsWithin(id, (graceOf(job) + 10) * 1000, signal))) return;
    }
    if (job.status === "PENDING") return this.stopWaiting(run, attempt, id, signal);
    await this.client.stop(id, signal);
    if (!(await this.endsWithin(id, (graceOf(job) + beyondGrace + 15) * 1000, signal))) {
      throw new ReachError("other", t("Ray at {0} was asked to stop job {1}, but it has not ended: look at it in the Ray dashboard.", this.address, id));
    }
  }

  /**
   * Ray keeps a job that waits until it can start, and only then stops it; until then it stays PENDING, and nobody can remove
   * it. So the attempt gets its cancel file, with which it could never begin, by a job whose name tells everybody of the stop.
   */
  private async stopWaiting(run: RemoteFile, attempt: number, id: string, signal?: AbortSignal): Promise<void> {
    await this.client.stop(id, signal);
    const fence = new RayStation({ client: this.client, runnerDir: this.deps.runnerDir, python: this.settings.python, node: null, keptAs: stopMark(id) });
    await fence.call({ verb: "write", items: [{ path: `${attemptDir(run, attempt)}/cancel`, text: "" }] }, given(signal));
  }

  reap(run: RemoteFile, attempt: number, signal?: AbortSignal): Promise<AttemptProbe> {
    return this.agent(run, attempt, "reap", ["--gone"], signal);
  }

  async fetch(run: RemoteFile, relative: string, local: string, progress: Progress, signal?: AbortSignal): Promise<void> {
    await this.runs(await nodeOfRun(this.client, run, signal)).fetch(`${run.dir}/${relative}`, local, progress, signal);
  }

  /** Of disks that the nodes have for themselves only the head's is seen. */
  survey(runs: readonly string[], signal?: AbortSignal): Promise<StoreSurvey> {
    return this.runs(null).survey(this.settings.dir, runs, signal);
  }

  clear(runs: readonly string[], items: readonly StoreItem[], signal?: AbortSignal): Promise<StoreCleared> {
    return this.runs(null).clear(this.settings.dir, runs, items, signal);
  }

  dispose(): void {
    this.client.dispose();
  }

  private station(node: string | null): RayStation {
    return new RayStation({ client: this.client, runnerDir: this.deps.runnerDir, python: this.settings.python, node });
  }

  private runs(node: string | null): StationRuns {
    return new StationRuns(this.station(node), this.deps.runnerDir);
  }

  /** A verb of the run's agent, on the node that has its files. */
  private async agent(run: RemoteFile, attempt: number, verb: "probe" | "cancel" | "reap", args: string[], signal?: AbortSignal): Promise<AttemptProbe> {
    const { probe } = await this.runs(await nodeOfRun(this.client, run, signal)).agent(run, attempt, verb, args, signal);
    return probe ?? absent();
  }

  private async newestJob(run: RemoteFile, signal: AbortSignal): Promise<RayJob | null> {
    const newest = run.attempts.at(-1);
    return newest === undefined ? null : this.client.job(jobOf(run, newest.attempt).id, signal);
  }

  /** Uploads what is not there. Asking for a package also keeps it there until the job holds it. */
  private async packages(plan: RemotePlan, progress: Progress, signal?: AbortSignal): Promise<{ runner: RayPackage; modules: string[] }> {
    const runner = await uploadedRunner(this.client, this.deps.runnerDir, signal);
    const large = await this.tooLargeOnes(plan, signal);
    const names = new Set<string>();
    const carried: CarriedInput[] = large.map(({ kind, remote }) => ({ kind, remote, package: null, files: [] }));
    const groups = inputGroups(plan.inputs.filter((input) => !large.includes(input)));
    const total = groups.flat().reduce((sum, { bytes }) => sum + bytes, 0);
    let copied = 0;
    for (const group of groups) {
      progress(group[0]?.local ?? "", copied, total);
      const { uri, carried: mine } = await this.uploadedInputs(group, signal);
      names.add(uri);
      carried.push(...mine);
      copied += group.reduce((sum, { bytes }) => sum + bytes, 0);
      progress(group[0]?.local ?? "", copied, total);
    }
    const run = packageOf([{ name: "seesaw-job.json", bytes: Buffer.from(JSON.stringify(jobFile(plan, carried))) }]);
    await this.client.upload(run, signal);
    return { runner, modules: [...names, run.uri] };
  }

  private async uploadedInputs(group: RemotePlan["inputs"], signal?: AbortSignal): Promise<{ uri: string; carried: CarriedInput[] }> {
    const key = group.map(({ kind, sha256, remote }) => `${kind} ${sha256} ${remote}`).join("\n");
    const known = this.packed.get(key);
    if (known !== undefined && (await this.client.has(known.name, signal))) return known;
    const { made, carried } = await inputPackage(group);
    await this.client.upload(made, signal);
    this.packed.set(key, { name: made.name, uri: made.uri, carried });
    return { uri: made.uri, carried };
  }

  /** Inputs that no package can hold, but that are on the cluster already. AppError("bad-input") with the place for one that is not. */
  private async tooLargeOnes(plan: RemotePlan, signal?: AbortSignal): Promise<RemotePlan["inputs"]> {
    const large = plan.inputs.filter(({ bytes }) => bytes > packageLimit);
    if (large.length === 0) return large;
    const { items } = await this.station(null).call({ verb: "have", items: large.map(({ remote, kind, bytes }) => ({ path: remote, ...(kind === "file" && { bytes }) })) }, given(signal));
    const missing = large.find((_, index) => (items as { there: boolean }[])[index]?.there !== true);
    if (missing !== undefined) throw tooLarge(missing, missing.bytes);
    return large;
  }

  private request(plan: RemotePlan, runner: string, modules: string[], node: string | null): RayJobRequest {
    const { nonce, grace_s: grace } = plan.attemptSpec;
    return {
      entrypoint: `${this.settings.python} -u seesaw_runner/ray_job.py train`,
      submission_id: submissionId(plan.id, plan.attempt, nonce),
      metadata: { seesaw: "train", nonce, [runKey]: plan.id, attempt: String(plan.attempt), resources: JSON.stringify(plan.spec.target.resources ?? {}), grace_s: String(grace) },
      runtime_env: { working_dir: runner, py_modules: modules, env_vars: { RAY_JOB_STOP_WAIT_TIME_S: String(Math.ceil(grace + beyondGrace)) } },
      ...entrypointResources(plan.spec.target.resources),
      ...(node !== null && { entrypoint_label_selector: { "ray.io/node-id": node } }),
    };
  }

  /** The sentence with which a job gave up before it started anything. */
  private async refusal(id: string, signal?: AbortSignal): Promise<string | null> {
    const found = /^@seesaw (\{"kind": "error".*\})$/m.exec(await this.client.logs(id, signal).catch(() => ""))?.[1];
    return found === undefined ? null : String((JSON.parse(found) as { message?: unknown }).message ?? "");
  }

  private async endsWithin(id: string, ms: number, signal?: AbortSignal): Promise<boolean> {
    const deadline = performance.now() + ms;
    for (;;) {
      const job = await this.client.job(id, signal);
      if (job === null || ended(job)) return true;
      if (performance.now() > deadline) return false;
      await pause(500, signal);
    }
  }
}

/** What `ray_job.py train` reads. */
function jobFile(plan: RemotePlan, inputs: readonly CarriedInput[]): object {
  const attempt = attemptDir(plan.remote, plan.attempt);
  const files = { "run.json": `${JSON.stringify(plan.spec, null, 1)}\n`, "spec.json": `${JSON.stringify({ ...plan.attemptSpec, fate: true }, null, 1)}\n` };
  return { v: 1, runner: plan.remote.runner, run: plan.remote.dir, work: plan.attemptSpec.cwd || dirname(attempt), attempt: basename(attempt), needs: neededRuns(plan), inputs, files };
}

function jobOf(run: RemoteFile, attempt: number): JobRef {
  const found = run.attempts.find((one) => one.attempt === attempt);
  const nonce = found?.nonce ?? "";
  return { id: found?.job?.id ?? submissionId(basename(run.dir), attempt, nonce), nonce };
}

function resourcesIn(job: RayJob): Resources {
  try {
    return JSON.parse(job.metadata?.["resources"] ?? "{}") as Resources;
  } catch {
    return {};
  }
}

const stopMark = (id: string): string => `${id}-stop`;

const absent = (): AttemptProbe => ({ state: "absent", now: Date.now() / 1000, boot: "", beat_age: null, started: null, exit: null });

/** Says so often that all that is there has been sent, which it has: a job that waits is not silent. Rejects when the signal fires. */
async function nothingNew(take: (frame: StationFrame) => Promise<void>, signal: AbortSignal, times: number): Promise<void> {
  for (let time = 0; time < times; time++) {
    await take({ kind: "caught-up", bytes: 0 });
    await pause(1_500, signal);
  }
}

const graceOf = (job: RayJob): number => Number(job.metadata?.["grace_s"] ?? 20) || 20;

const given = (signal: AbortSignal | undefined): { signal?: AbortSignal } => (signal === undefined ? {} : { signal });

async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await sleep(ms, signal);
  if (signal?.aborted) throw new AppError("cancelled", t("Waiting for Ray was stopped: cancelled."));
}
