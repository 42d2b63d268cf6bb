import type { LaunchSpec, Resources } from "../../../protocol/runSpec.ts";
import { AppError } from "../../../util/errors.ts";
import { t } from "../../../util/l10n.ts";
import { shellText } from "../../../util/shellText.ts";
import { runnerPackages } from "../stationRuns.ts";

/** What a job is made of. All paths are the cluster's. */
export interface BatchJob {
  run: string;
  attempt: number;
  nonce: string;
  /** The run folder, the runner's folder and the Python. */
  dir: string;
  runner: string;
  python: string;
  resources: Resources;
  /** An array of several runs, whose folder has the script and the list of runs; `run` is one of them. */
  array?: BatchArray;
}

export interface BatchArray {
  dir: string;
  name: string;
  nonce: string;
  runs: readonly string[];
  limit: number | null;
}

/** Seconds before the time limit at which the agent is told to save and stop. */
export const warnSeconds = 120;
/** Slurm looks up to a minute late at its clock, and after the grace comes the copy of the last event. */
const reserveSeconds = 15;

/** By which our jobs are known at a glance, and found again when an answer was lost. */
export function jobName(run: string, attempt: number): string {
  return `seesaw-${run}-${attempt}`;
}

/**
 * The options of the job, `--name=value` each. They are given to sbatch as arguments, which weigh more than the script and
 * the person's SBATCH_ variables; no shell ever sees them. What the person added comes first, so that ours decide.
 * Not said: `--no-kill`, so that a job of several nodes ends, and is started again, when one of them fails.
 */
export function sbatchOptions(job: BatchJob): string[] {
  const { requeue = true, warn_s = warnSeconds } = job.resources;
  const { array } = job;
  const { dir, output, name, nonce } = array === undefined ? { ...job, output: "slurm-%j.out", name: jobName(job.run, job.attempt) } : { ...array, output: "slurm-%A_%a.out" };
  return [
    ...resourceOptions(job.resources),
    ...(array === undefined ? [] : [`--array=0-${array.runs.length - 1}${array.limit === null ? "" : `%${array.limit}`}`]),
    requeue ? "--requeue" : "--no-requeue",
    `--signal=B:USR1@${warn_s}`, // not TERM: that is how a stop or a preemption looks
    "--open-mode=append", // a job that is started again goes on in the same file
    `--chdir=${folder(dir)}`,
    `--output=${folder(dir)}/${output}`,
    `--job-name=${checked("job-name", name)}`,
    `--comment=${checked("comment", nonce)}`,
  ];
}

/** What the job needs: all that decides whether and where it can run. */
export function resourceOptions({ partition, account, qos, constraint, gpus, nodes, cpus, memory, time, args = [] }: Resources): string[] {
  const said = { partition, account, qos, constraint, nodes, "ntasks-per-node": 1, "cpus-per-task": cpus, gres: gpus ? `gpu:${gpus}` : undefined, mem: memory, time };
  return [...args.map(personsWord), ...Object.entries(said).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${checked(name, String(value))}`]))];
}

/** Before a sentence in the job's output that says why nothing was started; slurm_job.py says it, too. */
const refusalMark = "seesaw job: nothing was started: ";

/** The last such sentence in a job's output; null: there is none. */
export function refusalIn(output: string): string | null {
  return output.split("\n").findLast((line) => line.startsWith(refusalMark))?.slice(refusalMark.length).trim() || null;
}

/**
 * The script does nothing but hand over to the runner's own Python: everything else is decided, and tested, there. Only that a
 * machine has no Python which could do that is told here.
 */
export function batchScript(job: BatchJob): string {
  const lines = sbatchOptions(job).filter((option) => !/["'\\#\n]/.test(option));
  const entry = `${folder(job.runner)}/seesaw_runner/slurm_job.py`;
  const python = folder(job.python, "python");
  const no = `, ${python} cannot be started, or is older than Python 3.8. Make Python 3.10 or newer with ${runnerPackages.join(", ")} available there, or name another with \`python:\` of this target.`;
  const { array } = job;
  const what = array === undefined ? `${job.run}, attempt ${job.attempt}` : `${array.runs.length} runs: which task is which, ${arrayList(array)} says`;
  const which = array === undefined ? [folder(job.dir)] : ["--array", folder(arrayList(array))];
  return [
    "#!/bin/sh",
    `# Made by Seesaw for ${what}. To submit it by hand: sbatch ${jobFile(job)}`,
    ...lines.map((option) => `#SBATCH ${option}`),
    `${shellText([python, "-c", "import sys; sys.exit(sys.version_info < (3, 8))"])} || {`,
    `  echo "${refusalMark}On \${SLURMD_NODENAME:-$(hostname)}"${shellText([no])}`,
    "  exit 3",
    "}",
    `exec ${shellText([python, "-u", entry, ...which, String(job.attempt)])}`,
    "",
  ].join("\n");
}

/** The file by which a task finds its run folder, and what it holds. */
export function arrayList({ dir }: Pick<BatchArray, "dir">): string {
  return `${dir}/runs.json`;
}

export function arrayListText({ runs }: Pick<BatchArray, "runs">): string {
  return `${JSON.stringify({ v: 1, runs: runs.map((run) => folder(run)) }, null, 1)}\n`;
}

/** Where the script lies. */
export function jobFile(job: Pick<BatchJob, "dir" | "attempt" | "array">): string {
  if (job.array !== undefined) return `${job.array.dir}/job.sh`;
  return `${job.dir}/attempt-${String(job.attempt).padStart(4, "0")}/job.sh`;
}

/** Everything is said twice, in the script for people and here for sbatch; the script itself is only read where it lies. */
export function sbatchArgv(job: BatchJob): string[] {
  return ["sbatch", "--parsable", ...sbatchOptions(job), jobFile(job)];
}

/**
 * How long a training may take to save when it is told to stop: until shortly before the limit. Where Slurm is more impatient
 * (KillWait, a partition's GraceTime), it ends both, and its own word is what remains.
 */
export function graceSeconds(resources: Resources, wanted: number): number {
  return Math.max(wanted, (resources.warn_s ?? warnSeconds) - reserveSeconds);
}

/**
 * The training's command on several nodes: torchrun on each, started by srun, meeting on the first node. Where that is, only
 * the job knows: slurm_job.py sets PET_RDZV_ENDPOINT and PET_RDZV_ID, which torchrun reads.
 */
export function acrossNodes(argv: readonly string[], launch: LaunchSpec, resources: Resources): string[] {
  const nodes = resources.nodes ?? launch.nodes ?? 1;
  if (nodes <= 1 || launch.kind !== "torchrun") return [...argv];
  const words = argv.filter((word) => word !== "--standalone");
  const at = words.indexOf("torch.distributed.run") + 1;
  const torchrun = [...words.slice(0, at), `--nnodes=${nodes}`, "--rdzv-backend=c10d", ...words.slice(at).filter((word) => !/^--(nnodes|rdzv-backend)=/.test(word))];
  return onEachNode(torchrun, resources, nodes);
}

/** A command on every node of the job: by srun where there are several. */
export function onEachNode(argv: readonly string[], resources: Resources, nodes = resources.nodes ?? 1): string[] {
  if (nodes <= 1) return [...argv];
  const cpus = resources.cpus === undefined ? [] : [`--cpus-per-task=${resources.cpus}`]; // since 22.05 a step does not have the job's by itself
  return ["srun", `--nodes=${nodes}`, `--ntasks=${nodes}`, "--ntasks-per-node=1", ...cpus, "--kill-on-bad-exit=1", "--mpi=none", ...argv];
}

/** Options by which Seesaw knows its job again, follows and ends it; an abbreviation of one is one. */
const reserved = ["array", "chdir", "clusters", "comment", "error", "help", "job-name", "open-mode", "output", "parsable", "signal", "test-only", "uid", "usage", "version", "wait", "wrap"];

function personsWord(word: string): string {
  const name = /^--([a-z][a-z0-9-]*)(=.*)?$/s.exec(word)?.[1];
  if (name === undefined || /[\0\n\r]/.test(word)) throw new AppError("bad-input", t("`{0}` in resources.args is no option of sbatch: write --name or --name=value.", word));
  if (reserved.some((own) => own.startsWith(name))) throw new AppError("bad-input", t("--{0} in resources.args is what Seesaw itself says to sbatch, to find and end its job: remove it.", name));
  return word;
}

function checked(name: string, value: string): string {
  if (!/^[A-Za-z0-9_([][A-Za-z0-9_.,:+*&|()[\]<>=!%@/-]*$/.test(value)) throw new AppError("bad-input", t("`{0}` cannot be given to sbatch as --{1}: use letters, digits and . , : + @ % / = - _ without blanks.", value, name));
  return value;
}

/** A path as the script may hold it. `%` would be a placeholder of --output. */
function folder(path: string, kind: "path" | "python" = "path"): string {
  const bare = kind === "python" && /^[A-Za-z0-9_.][A-Za-z0-9_.+-]*$/.test(path);
  if (!bare && (!/^\/[A-Za-z0-9_./~+@:=,-]*$/.test(path) || path.split("/").includes(".."))) {
    throw new AppError("bad-input", t("`{0}` cannot be used in a job script: it must be an absolute path of letters, digits and . / ~ + @ : = , - _ without `..`.", path));
  }
  return path;
}
