import type { Resources } from "../../../protocol/runSpec.ts";
import { AppError } from "../../../util/errors.ts";
import { t } from "../../../util/l10n.ts";
import { ReachError } from "../reachError.ts";
import type { Station } from "../station.ts";
import { isTrouble } from "../stationErrors.ts";
import { hasNoAccounting, isUnknownJob, noProgram, slurmError, type Asked, type ProgramEnd } from "./slurmErrors.ts";
import { parsePartitions, parseSacct, parseScontrol, parseSqueue, sacctFormat, sinfoFormat, squeueFormat, submittedId, type Partition, type SlurmJob } from "./slurmText.ts";

/** Seconds that a question may take: without a controller Slurm's programs give up after 9 to 18. */
const patience = 40;
/** Submitting waits for a busy controller, and a lost answer costs a search. */
const submitPatience = 90;

/**
 * Variables of the person's own that would change what is asked or what comes back, and tokens, which Slurm would keep with
 * the job's environment.
 */
const unset = [
  "SBATCH_ARRAY_INX", "SBATCH_WAIT", "SBATCH_TEST_ONLY", "SLURM_TIME_FORMAT", "SEESAW_RAY_TOKEN", "RAY_AUTH_TOKEN",
  ...["ACCOUNT", "FORMAT", "FORMAT2", "LICENSES", "NAMES", "PARTITION", "QOS", "SORT", "STATES", "USERS", "ARRAY"].map((name) => `SQUEUE_${name}`),
  "SINFO_FORMAT", "SINFO_PARTITION", "SINFO_SORT", "SACCT_FORMAT",
];

/** Slurm's programs on a station: questions with a time limit, answers as values. Every argument is data. */
export class SlurmClient {
  private readonly station: Station;

  constructor(station: Station) {
    this.station = station;
  }

  /** The id of a new job. A refusal is an AppError("bad-input"); a ReachError means that it may have been taken all the same. */
  async submit(argv: readonly string[], resources: Resources, signal?: AbortSignal): Promise<string> {
    const end = await this.run(argv, { timeout: submitPatience, ...(signal && { signal }) });
    const id = end.code === 0 ? submittedId(end.stdout) : null;
    if (id !== null) return id;
    if (end.code === 0 || end.signal !== null) throw new ReachError("no-scheduler", t("sbatch on {0} gave no job id, so it is not known yet whether it took the job.", this.station.name));
    return this.refuse(end, resources, signal);
  }

  /** Why Slurm would not take a job with these options now, as a sentence; null: it would. Nothing is submitted. */
  async wouldRefuse(options: readonly string[], resources: Resources, signal?: AbortSignal): Promise<string | null> {
    const end = await this.run(["sbatch", "--test-only", "--output=/dev/null", ...options, "--wrap=true"], { ...(signal && { signal }) });
    if (end.code === 0) return null;
    try {
      return await this.refuse(end, resources, signal);
    } catch (error) {
      if (AppError.is(error, "bad-input")) return error.message;
      throw error;
    }
  }

  private async refuse(end: ProgramEnd, resources: Resources, signal?: AbortSignal): Promise<never> {
    const { partition, account, qos, constraint } = resources;
    const asked: Asked = { partition, account, qos, constraint };
    if (/invalid partition/i.test(end.stderr)) asked.partitions = (await this.partitions(signal).catch(() => [])).map(({ name }) => name);
    throw slurmError(this.station.name, end, asked);
  }

  /**
   * All jobs of this person with this name that the controller still knows, the newest last; of an array each task (-r), also
   * those that still wait, which are one line otherwise.
   */
  async named(name: string, signal?: AbortSignal): Promise<SlurmJob[]> {
    return parseSqueue(await this.ask(["squeue", "-h", "-r", "--me", "-t", "all", "-n", name, "-o", squeueFormat], signal)).sort((a, b) => Number(a.id) - Number(b.id));
  }

  /** A job that the controller still knows, or null. */
  async job(id: string, signal?: AbortSignal): Promise<SlurmJob | null> {
    const end = await this.run(["scontrol", "show", "job", "-o", id], { ...(signal && { signal }) });
    if (isUnknownJob(end)) return null;
    if (end.code !== 0) throw slurmError(this.station.name, end);
    return parseScontrol(end.stdout)[0] ?? null;
  }

  /** Jobs of the past from the accounting, by id or name; null where the cluster keeps none. */
  async past(what: { id: string } | { name: string }, signal?: AbortSignal): Promise<SlurmJob[] | null> {
    // Without a start time sacct looks back to midnight only, and an id that was given again shows one job without -D.
    const which = "id" in what ? ["-j", what.id] : ["--name", what.name];
    let end: ProgramEnd;
    try {
      end = await this.run(["sacct", ...which, "-S", "now-60days", "-D", "-X", "-n", "-P", "-o", sacctFormat], { ...(signal && { signal }) });
    } catch (error) {
      if (error instanceof ReachError && error.reach === "no-scheduler") return null; // no such program: none of it is installed
      throw error;
    }
    if (hasNoAccounting(end)) return null;
    if (end.code !== 0) throw slurmError(this.station.name, end);
    return parseSacct(end.stdout);
  }

  /** Asks Slurm to end a job. Says nothing about whether it has: scancel is silent for ids that are not there. */
  async cancel(id: string, signal?: AbortSignal): Promise<void> {
    const end = await this.run(["scancel", id], { ...(signal && { signal }) });
    // "already completing or completed" is what was wanted.
    if (end.code !== 0 && !isUnknownJob(end) && !/already complet/i.test(end.stderr)) throw slurmError(this.station.name, end);
  }

  async partitions(signal?: AbortSignal): Promise<Partition[]> {
    const sinfo = await this.ask(["sinfo", "-h", "-o", sinfoFormat], signal);
    return parsePartitions(sinfo, await this.ask(["squeue", "-h", "-t", "all", "-o", "%P|%T"], signal));
  }

  async version(signal?: AbortSignal): Promise<string | null> {
    return /^slurm\S* +(\S+)/m.exec(await this.ask(["sinfo", "--version"], signal))?.[1] ?? null;
  }

  private async ask(argv: readonly string[], signal?: AbortSignal): Promise<string> {
    const end = await this.run(argv, { ...(signal && { signal }) });
    if (end.code !== 0) throw slurmError(this.station.name, end);
    return end.stdout;
  }

  private async run(argv: readonly string[], options: { timeout?: number; signal?: AbortSignal }): Promise<ProgramEnd> {
    const { timeout = patience, signal } = options;
    const program = argv[0] ?? "";
    try {
      const said = await this.station.call(
        { verb: "exec", argv: ["env", ...unset.flatMap((name) => ["-u", name]), ...argv], timeout, limit: 8 << 20 },
        { silence: (timeout + 20) * 1000, ...(signal && { signal }) },
      );
      const end: ProgramEnd = { program, code: said["code"] as number | null, signal: said["signal"] as string | null, stdout: text(said["stdout"]), stderr: text(said["stderr"]), timedOut: said["timed_out"] === true };
      if (end.code === 127) throw noProgram(this.station.name, program); // that is how `env` says it
      return end;
    } catch (error) {
      if (isTrouble(error, "no-program")) throw noProgram(this.station.name, program);
      if (AppError.is(error)) throw error;
      throw new ReachError("other", String(error), { cause: error });
    }
  }
}

function text(base64: unknown): string {
  return Buffer.from(String(base64 ?? ""), "base64").toString("utf8");
}
