import { basename } from "node:path/posix";
import type { RemoteAttempt, RemoteFile } from "../../../protocol/remote.ts";
import { jobName } from "./batchScript.ts";
import type { SlurmJob } from "./slurmText.ts";

/** By what an attempt's job is known again: its name finds it, its comment proves it; of an array also which task. */
export interface JobMark {
  name: string;
  comment: string;
  task: number | null;
}

export function markOf(run: Pick<RemoteFile, "dir">, { attempt, nonce, array }: Pick<RemoteAttempt, "attempt" | "nonce" | "array">): JobMark {
  return array === undefined ? { name: jobName(basename(run.dir), attempt), comment: nonce, task: null } : { name: array.name, comment: array.nonce, task: array.task };
}

/** The attempt that was submitted for the job which runs this one: those that Slurm began by itself have a nonce of its kin. */
export function askedFor(run: RemoteFile, attempt: number): RemoteAttempt | null {
  const until = run.attempts.filter((one) => one.attempt <= attempt).sort((a, b) => a.attempt - b.attempt);
  const kin = until.at(-1)?.nonce.split(".")[0];
  return until.find(({ nonce }) => nonce === kin) ?? null;
}

/** What Slurm's programs call the job: `12`, or `12_1` where it is a task of an array. */
export function idOf(job: Pick<SlurmJob, "id" | "task">): string {
  return job.task ?? job.id;
}

/** The newest of these jobs that is the marked one. */
export function markedOf(jobs: readonly SlurmJob[], mark: JobMark): SlurmJob | null {
  return ours(jobs, mark).findLast(({ task }) => mark.task === null || task?.endsWith(`_${mark.task}`) === true) ?? null;
}

/**
 * The id of the marked job, also where only other tasks of its array are known: Slurm takes an array as a whole or not at all,
 * and forgets at once a task that is cancelled alone while it waits.
 */
export function idAmong(jobs: readonly SlurmJob[], mark: JobMark): string | null {
  const one = markedOf(jobs, mark) ?? ours(jobs, mark).at(-1);
  if (one === undefined || mark.task === null) return one === undefined ? null : idOf(one);
  return `${idOf(one).split("_")[0] ?? ""}_${mark.task}`;
}

/** The id alone says nothing: Slurm gives ids again. */
export function ours(jobs: readonly SlurmJob[], { comment }: Pick<JobMark, "comment">): SlurmJob[] {
  return jobs.filter((job) => job.comment === comment);
}
