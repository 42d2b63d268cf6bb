import type { SchedulerWord } from "../../../protocol/remote.ts";

/**
 * What Slurm's programs print, read in the formats that hold over its releases: `-o` and `-P`. Its JSON changes from release to
 * release, `squeue --json` ignores filters and `sacct --json` lost exit codes. All of it is pure.
 */

/** Fields of `squeue -o`; the comment is last, as it may hold the separator. */
export const squeueFormat = "%A|%i|%T|%r|%N|%k";
/** Fields of `sacct -P -o`. Only JobID tells the task of an array. */
export const sacctFormat = "JobIDRaw,JobID,JobName,State,ExitCode,NodeList,Comment";
/** Fields of `sinfo -o`: partition, whether it is up, nodes, GPUs of a node, time limit, the nodes' state. */
export const sinfoFormat = "%P|%a|%D|%G|%l|%t";

/** A job as Slurm tells it. */
export interface SlurmJob {
  /** Of an array's task: its own raw id, or the array's while it waits. */
  id: string;
  /** `20_1` for a task of an array, which every one of Slurm's programs takes; else null. */
  task: string | null;
  state: string;
  reason: string | null;
  nodes: string | null;
  comment: string;
  restarts: number | null;
  exit: { code: number; signal: number } | null;
}

/** The id that `sbatch --parsable` printed (`12`, or `12;cluster`) among whatever else a site prints; null: none. */
export function submittedId(stdout: string): string | null {
  const line = stdout.split("\n").findLast((text) => /^\d+(;[\w.-]+)?\s*$/.test(text));
  return line === undefined ? null : (line.trim().split(";")[0] ?? null);
}

/** Lines of `squeue -h -o squeueFormat`. */
export function parseSqueue(stdout: string): SlurmJob[] {
  return stdout.split("\n").flatMap((line) => {
    const [id = "", shown = "", state = "", reason, nodes, ...comment] = line.split("|");
    if (!/^\d+$/.test(id) || !/^[A-Z_]+$/.test(state)) return [];
    return [{ id, task: taskOf(shown), state, reason: given(reason), nodes: given(nodes), comment: given(comment.join("|").trim()) ?? "", restarts: null, exit: null }];
  });
}

/** Lines of `scontrol show job -o`: several for an array. */
export function parseScontrol(stdout: string): SlurmJob[] {
  return stdout.split("\n").flatMap((line) => {
    const id = /^JobId=(\d+)/.exec(line)?.[1];
    // The words that may hold blanks (JobName, Comment …) are cut where the next known word begins.
    const value = (name: string): string | undefined => new RegExp(`(?:^| )${name}=(\\S*)`).exec(line)?.[1];
    const state = /^[A-Z_]+/.exec(value("JobState") ?? "")?.[0];
    if (id === undefined || state === undefined) return [];
    const comment = / Comment=(.*?)(?= (?:StdErr|StdIn|StdOut|Power|TresPer\w+|MailUser|MailType|NtasksPerTRES|SubmitLine|\w+)=|$)/.exec(line)?.[1] ?? "";
    const [array, index, restarts] = [value("ArrayJobId"), value("ArrayTaskId"), value("Restarts")];
    return [{
      id,
      task: array !== undefined && index !== undefined ? `${array}_${index}` : null,
      state,
      reason: given(value("Reason")),
      nodes: given(value("NodeList")),
      comment: given(comment.trim()) ?? "",
      restarts: restarts === undefined ? null : Number(restarts),
      exit: exitOf(value("ExitCode")),
    }];
  });
}

/** Lines of `sacct -X -n -P -o sacctFormat`: the newest with an id is the job, older ones are others that had the id before. */
export function parseSacct(stdout: string): SlurmJob[] {
  return stdout.split("\n").flatMap((line) => {
    const [id = "", shown = "", , said = "", exit, nodes, ...comment] = line.split("|");
    const state = /^[A-Z_]+/.exec(said)?.[0]; // `CANCELLED by 1000`
    if (!/^\d+$/.test(id) || state === undefined) return [];
    return [{ id, task: taskOf(shown), state, reason: null, nodes: given(nodes), comment: given(comment.join("|").trim()) ?? "", restarts: null, exit: exitOf(exit) }];
  });
}

const queued = new Set(["PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"]);
const running = new Set(["RUNNING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING"]);
const completing = new Set(["COMPLETING", "STAGE_OUT"]);
const ends: Readonly<Record<string, NonNullable<SchedulerWord["end"]>>> = {
  COMPLETED: "exited",
  FAILED: "failed",
  CANCELLED: "cancelled",
  TIMEOUT: "time-limit",
  DEADLINE: "time-limit",
  PREEMPTED: "preempted",
  NODE_FAIL: "node-failure",
  BOOT_FAIL: "node-failure",
  OUT_OF_MEMORY: "out-of-memory",
};

/** A job in the vocabulary of all schedulers. Of an end, the reason is Slurm's own notation: `TIMEOUT`, `FAILED 7:0`, `FAILED 0:9`. */
export function wordOf(job: SlurmJob): SchedulerWord {
  const rest = { ...(job.restarts === null ? {} : { restarts: job.restarts }), nodes: job.nodes };
  if (queued.has(job.state)) return { state: "queued", reason: job.reason ?? (job.state === "PENDING" ? null : job.state), ...rest };
  if (running.has(job.state)) return { state: "running", reason: job.state === "RUNNING" ? null : job.state, ...rest };
  if (completing.has(job.state)) return { state: "completing", reason: null, ...rest };
  const { exit } = job;
  const how = exit === null || job.state !== "FAILED" ? "" : ` ${exit.code}:${exit.signal}`;
  return { state: "ended", end: ends[job.state] ?? "unknown", reason: job.state + how, ...rest };
}

/** A partition as `sinfo -o sinfoFormat` and `squeue -o '%P|%T'` tell it. */
export interface Partition {
  name: string;
  default: boolean;
  state: string;
  nodes: number;
  gpus: string | null;
  limit: string | null;
  waiting: number;
  running: number;
}

/** One entry per partition, in the order in which sinfo names them; `jobs`: lines `partition|STATE` of everyone's jobs. */
export function parsePartitions(sinfo: string, jobs: string): Partition[] {
  const found = new Map<string, Partition & { states: Map<string, number> }>();
  for (const line of sinfo.split("\n")) {
    const [shown = "", up = "", count = "", gres, limit, state = ""] = line.split("|");
    if (!/^\d+$/.test(count)) continue;
    const name = shown.replace(/\*$/, "");
    const one = found.get(name) ?? { name, default: shown.endsWith("*"), state: up, nodes: 0, gpus: null, limit: given(limit), waiting: 0, running: 0, states: new Map<string, number>() };
    one.nodes += Number(count);
    one.gpus ??= /\bgpu\b/.test(gres ?? "") ? given(gres?.replace(/\(.*?\)/g, "")) : null;
    const word = state.replace(/[*~#!%$@^-]+$/, "").trim();
    one.states.set(word, (one.states.get(word) ?? 0) + Number(count));
    found.set(name, one);
  }
  for (const line of jobs.split("\n")) {
    const [names = "", state = ""] = line.trim().split("|");
    for (const name of names.split(",")) {
      const one = found.get(name);
      if (one !== undefined && queued.has(state)) one.waiting += 1;
      else if (one !== undefined && running.has(state)) one.running += 1;
    }
  }
  return [...found.values()].map(({ states, ...one }) => ({ ...one, state: one.state === "up" ? [...states].map(([state, count]) => `${count} ${state}`).join(", ") : one.state }));
}

/** Slurm's ways to say nothing. */
function given(text: string | undefined): string | null {
  return text === undefined || text === "" || text === "(null)" || text === "None" || text === "N/A" ? null : text;
}

function taskOf(shown: string): string | null {
  return /^\d+_\d+$/.test(shown) ? shown : null;
}

function exitOf(text: string | undefined): SlurmJob["exit"] {
  const [, code, signal] = /^(\d+):(\d+)$/.exec(text ?? "") ?? [];
  return code === undefined ? null : { code: Number(code), signal: Number(signal) };
}
