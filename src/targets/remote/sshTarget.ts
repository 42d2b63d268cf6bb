import type { AttemptProbe } from "../../protocol/attempt.ts";
import type { StoreCleared, StoreItem, StoreSurvey } from "../../protocol/cleaning.ts";
import type { JobRef, MirrorFile, RemoteFile, SchedulerWord, SshSettings, StationFrame, TargetReport } from "../../protocol/remote.ts";
import { attemptName } from "../../storage/runs/runStore.ts";
import { AppError } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import type { Description, Progress, RemotePlan, RemoteTarget } from "./port.ts";
import { runnerArchive } from "./runnerArchive.ts";
import { SshCommand } from "./sshCommand.ts";
import { StationRuns } from "./stationRuns.ts";
import type { AdapterDeps } from "./targets.ts";

/** A machine behind ssh: the agent is started there, detached, and outlives every connection. */
export class SshTarget implements RemoteTarget {
  readonly kind = "ssh";
  readonly id: string;
  readonly address: string;
  private readonly settings: SshSettings;
  private readonly runnerDir: string;
  private readonly ssh: SshCommand;
  /** Made with the Python that seesaw.yaml names. */
  private readonly runs: StationRuns;

  constructor(settings: SshSettings, { runnerDir, sshProgram }: Pick<AdapterDeps, "runnerDir"> & { sshProgram?: readonly string[] }) {
    this.id = settings.id;
    this.address = settings.host;
    this.settings = settings;
    this.runnerDir = runnerDir;
    this.ssh = new SshCommand(settings.host, sshProgram);
    this.runs = new StationRuns(this.ssh.station(runnerDir, settings.python), runnerDir);
  }

  locate(signal?: AbortSignal): Promise<{ dir: string; python: string }> {
    return this.runs.locate(this.settings.dir, signal);
  }

  check(signal?: AbortSignal): Promise<TargetReport> {
    return this.runs.check({ target: this.id, kind: this.kind, address: this.address }, this.settings.dir, signal);
  }

  async describe(plan: RemotePlan): Promise<Description> {
    const { remote, attempt } = plan;
    const station = await this.ssh.stationArgv(this.settings.python);
    const { version, bytes } = await runnerArchive(this.runnerDir);
    const folder = `${remote.dir}/${attemptName(attempt)}`;
    const agent = `${remote.runner}/seesaw_runner/agent.py`;
    return {
      commands: [
        { what: t("The one command that ssh is given, for every step; what is done there comes on its input"), argv: [...station] },
        { what: t("Check the run before it starts"), argv: [remote.python, "-m", "seesaw_runner.preflight", `${remote.dir}/run.json`, "--json"] },
        { what: t("Start the attempt, detached"), argv: [remote.python, agent, "run", folder, "--detach"] },
        { what: t("The training, started by the agent"), argv: plan.attemptSpec.argv },
      ],
      files: [
        { local: `${this.runnerDir}/seesaw_runner`, remote: remote.runner, bytes: bytes.length, there: null },
        ...plan.inputs.map(({ local, remote: path, bytes: size }) => ({ local, remote: path, bytes: size, there: null })),
        ...[["run.json", plan.spec] as const, [`${attemptName(attempt)}/spec.json`, plan.attemptSpec] as const].map(([name, value]) => ({
          local: `${plan.dir}/${name}`, remote: `${remote.dir}/${name}`, bytes: Buffer.byteLength(JSON.stringify(value, null, 1)) + 1, there: null,
        })),
      ],
      script: null,
      notes: [
        t("The runner (version {0}) and every input are copied once, under the hash of what they hold.", version),
        t("The run goes on in {0} on {1} when this machine is gone.", remote.dir, this.address),
      ],
    };
  }

  prepare(plan: RemotePlan, progress: Progress, signal?: AbortSignal): Promise<void> {
    return this.runs.prepare(plan, progress, signal);
  }

  preflight(plan: RemotePlan, signal?: AbortSignal): Promise<string> {
    return this.runs.preflight(plan, signal);
  }

  /** The agent's claim makes a second start harmless: it is answered with what the first became. */
  async submit({ remote, attempt, attemptSpec }: RemotePlan, signal?: AbortSignal): Promise<JobRef> {
    const { probe, nonce } = await this.runs.agent(remote, attempt, "run", ["--detach"], signal);
    if (nonce !== attemptSpec.nonce) throw new AppError("already-running", t("Attempt {0} of {1} on {2} belongs to another start: look at the run before you start again.", attempt, remote.dir, this.address));
    if (probe === null || probe.state === "absent") throw new AppError("agent-failed", t("The agent on {0} did not report a start: see {1}.", this.address, `${remote.dir}/${attemptName(attempt)}/agent.log`));
    return this.job(remote, attempt, attemptSpec.nonce);
  }

  /** An attempt that somebody has claimed was started, whatever became of it since. */
  async find(run: RemoteFile, attempt: number, signal?: AbortSignal): Promise<JobRef | null> {
    const asked = run.attempts.find((one) => one.attempt === attempt);
    const { probe, nonce } = await this.runs.agent(run, attempt, "probe", [], signal);
    if (probe === null || probe.state === "absent" || nonce === null || asked?.nonce !== nonce) return null;
    return this.job(run, attempt, nonce);
  }

  word(): Promise<SchedulerWord | null> {
    return Promise.resolve(null);
  }

  probe(run: RemoteFile, attempt: number, signal?: AbortSignal): Promise<AttemptProbe> {
    return this.runs.ask(run, attempt, "probe", [], signal);
  }

  follow(run: RemoteFile, known: MirrorFile["files"], onFrame: (frame: StationFrame) => Promise<void> | void, signal: AbortSignal): Promise<void> {
    return this.runs.follow(run, known, onFrame, signal);
  }

  async stop(run: RemoteFile, attempt: number, signal?: AbortSignal): Promise<void> {
    await this.runs.ask(run, attempt, "cancel", [], signal);
  }

  reap(run: RemoteFile, attempt: number, signal?: AbortSignal): Promise<AttemptProbe> {
    return this.runs.ask(run, attempt, "reap", [], signal);
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

  /** The shared connection stays for other windows, and ends by itself when nobody has used it for a while. */
  dispose(): void {
    this.runs.dispose();
  }

  private job(run: RemoteFile, attempt: number, nonce: string): JobRef {
    return { id: `${run.dir}/${attemptName(attempt)}`, nonce };
  }
}
