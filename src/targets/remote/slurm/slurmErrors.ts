import { AppError } from "../../../util/errors.ts";
import { t } from "../../../util/l10n.ts";
import { ReachError } from "../reachError.ts";

/** How one of Slurm's programs ended. */
export interface ProgramEnd {
  program: string;
  code: number | null;
  signal: string | null;
  stdout: string;
  stderr: string;
  timedOut: boolean;
}

/** What sbatch was asked for, as far as a refusal may be about it. */
export interface Asked {
  partition?: string | undefined;
  account?: string | undefined;
  qos?: string | undefined;
  constraint?: string | undefined;
  /** Partitions that there are, where that could be told. */
  partitions?: readonly string[];
}

const controllerDown = /Unable to contact slurm controller|Connection refused|Socket timed out|Zero Bytes were transmitted|Transport endpoint|Connection timed out|backup controller|Slurm temporarily unable|No route to host|slurm_persist_conn|unable to resolve/i;
const mungeDown = /munge|Protocol authentication error|Invalid authentication credential|auth_g_create/i;
const unknownJob = /Invalid job id specified|Invalid job id/i;
/** How `scontrol show job` says it of a task of an array, on its standard output. */
const unknownTask = /^Job \d+_\d+ not found/im;
const noAccounting = /accounting storage is disabled|Problem talking to the database|Slurm accounting|slurmdbd/i;

/** The job is not known, or not any more. */
export function isUnknownJob(end: ProgramEnd): boolean {
  return end.code !== 0 && (unknownJob.test(end.stderr) || unknownTask.test(end.stdout) || unknownTask.test(end.stderr));
}

/** There is no accounting to ask; that is no error. */
export function hasNoAccounting(end: ProgramEnd): boolean {
  return end.code !== 0 && noAccounting.test(end.stderr) && !mungeDown.test(end.stderr);
}

/** There is no such program on the PATH of a session without a terminal. */
export function noProgram(name: string, program: string): ReachError {
  return new ReachError("no-scheduler", t("{0} has no program {1}: name a login node of the cluster with `host:` of this target in seesaw.yaml, or put Slurm's folder on the PATH of sessions without a terminal there (in ~/.bashrc, above the line that ends them).", name, program));
}

/** A failed call as a sentence. Whether Slurm can be asked at all comes first: everything else is Slurm's own refusal. */
export function slurmError(name: string, end: ProgramEnd, asked: Asked = {}): AppError {
  const said = lines(end.stderr || end.stdout);
  if (end.timedOut) return new ReachError("no-scheduler", t("Slurm on {0} gave no answer to {1} in time: its controller is busy or down. What runs goes on; Seesaw asks again.", name, end.program));
  if (mungeDown.test(end.stderr)) return new ReachError("no-scheduler", t("Slurm on {0} cannot tell who asks, because munge does not run there or its clock is wrong: tell the administrators. What runs goes on; Seesaw asks again.", name));
  if (controllerDown.test(end.stderr)) return new ReachError("no-scheduler", t("Slurm's controller does not answer on {0}: it is down or starts again. What runs goes on; Seesaw asks again.", name));
  if (end.program !== "sbatch") return new ReachError("no-scheduler", t("{1} failed on {0} ({2}): {3}", name, end.program, howEnded(end), said));
  return new AppError("bad-input", refusal(name, said, end, asked));
}

function refusal(name: string, said: string, end: ProgramEnd, asked: Asked): string {
  const { partition = "", account = "", qos = "", constraint = "", partitions = [] } = asked;
  if (/invalid partition/i.test(said)) {
    return partitions.length > 0
      ? t("Slurm on {0} has no partition `{1}`: it has {2}. Correct `resources.partition` in seesaw.yaml.", name, partition, partitions.join(", "))
      : t("Slurm on {0} has no partition `{1}`: correct `resources.partition` in seesaw.yaml.", name, partition);
  }
  if (/No partition specified|default partition/i.test(said)) return t("Slurm on {0} has no default partition: name one with `resources.partition` in seesaw.yaml. It says: {1}", name, said);
  if (/feature specification/i.test(said)) return t("No node on {0} has the features `{1}`: correct `resources.constraint` in seesaw.yaml.", name, constraint);
  if (/invalid account|account.*combination|InvalidAccount/i.test(said)) return t("Slurm on {0} does not let you use the account `{1}` there: correct `resources.account` (and `partition`) in seesaw.yaml. It says: {2}", name, account, said);
  if (/invalid qos|InvalidQOS/i.test(said)) return t("Slurm on {0} does not let you use the quality of service `{1}`: correct `resources.qos` in seesaw.yaml. It says: {2}", name, qos, said);
  if (/not permitted|permission denied|Access\/permission/i.test(said)) return t("Slurm on {0} does not let you submit this job: ask for the right to use the partition `{1}`, or name another. It says: {2}", name, partition, said);
  if (/Requested time limit|--time specification/i.test(said)) return t("Slurm on {0} does not take this time limit: correct `resources.time` in seesaw.yaml. It says: {1}", name, said);
  if (/policy|Limit\b|limit reached|Max\w*(Job|Submit|Wall)/i.test(said)) return t("A limit of your account on {0} does not allow this job now: wait until others of yours have ended, or ask for less. It says: {1}", name, said);
  if (/not available|gres|Memory specification|processors|Node count|CPU count|nodes? .*specification|TRES/i.test(said)) {
    return t("No node on {0} has what the stage asks for: lower gpus, cpus, memory or nodes in `resources` of seesaw.yaml, or name another partition. Slurm says: {1}", name, said);
  }
  if (/job array specification/i.test(said)) return t("Slurm on {0} does not take an array of so many runs: give fewer seeds at once. It says: {1}", name, said);
  if (/unrecognized option|unknown option|invalid option/i.test(said)) return t("sbatch on {0} does not know an option that `resources.args` of seesaw.yaml names: {1}", name, said);
  return t("Slurm on {0} did not take the job ({1}): {2}", name, howEnded(end), said);
}

/** The program's own words in one line, without its name before each. */
function lines(text: string): string {
  const kept = text.split("\n").map((line) => line.replace(/^\w+: (error: )?/, "").replace(/^Batch job submission failed: /, "").trim()).filter((line) => line !== "" && !/^Try "/.test(line));
  return kept.join("; ").slice(0, 600) || "–";
}

function howEnded({ code, signal }: ProgramEnd): string {
  return signal === null ? t("exit code {0}", String(code)) : t("signal {0}", signal);
}
