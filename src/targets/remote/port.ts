import type { AttemptProbe, AttemptSpec } from "../../protocol/attempt.ts";
import type { StoreCleared, StoreItem, StoreSurvey } from "../../protocol/cleaning.ts";
import type { ArrayTask, JobRef, MirrorFile, RemoteFile, SchedulerWord, StationFrame, TargetReport } from "../../protocol/remote.ts";
import type { RunSpec } from "../../protocol/runSpec.ts";

/** A file or folder of this machine that has to be on the target, once, under the hash of what it holds. */
export interface RemoteInput {
  /** Absolute path here. */
  local: string;
  kind: "file" | "model";
  sha256: string;
  bytes: number;
  /** Absolute path there. */
  remote: string;
}

/** A run as it will be on the target: every path in it is one of the target's. */
export interface RemotePlan {
  id: string;
  /** Local run folder. */
  dir: string;
  remote: RemoteFile;
  /** run.json as the target gets it. `spec.target.resources`: what a scheduler is asked for, the stage's on top of the target's. */
  spec: RunSpec;
  attempt: number;
  attemptSpec: AttemptSpec;
  inputs: RemoteInput[];
  /** Where this run is one of several that one job array starts: all of them, by task. */
  array?: ArrayPlan;
}

export interface ArrayPlan extends ArrayTask {
  /** How many tasks may run at once; null: as many as the scheduler lets. */
  limit: number | null;
  /** Run folders there, and the seed of each. */
  runs: { dir: string; seed: number }[];
}

/** What a start would do, without doing any of it. */
export interface Description {
  /** Each an argv or a request, in order, as a person could read or repeat it; no secret in it. */
  commands: { what: string; argv: string[] }[];
  /** What would be copied, and what is already there where that can be told without starting anything. */
  files: { local: string; remote: string; bytes: number; there: boolean | null }[];
  /** The job script or the request's body. */
  script: string | null;
  notes: string[];
}

export interface Progress {
  /** `copied` and `total` in bytes. */
  (what: string, copied: number, total: number): void;
}

/**
 * Another machine or cluster that runs stages. Every call may throw AppError("unreachable", …) with a `ReachReason`; none of
 * them ever asks a question on a terminal. All are safe to repeat: a submit whose answer was lost is found again by its nonce.
 */
export interface RemoteTarget {
  readonly id: string;
  readonly kind: RemoteFile["kind"];
  readonly address: string;
  /** Absolute folder on the target below which everything of ours lies (`~` resolved there), and the Python that runs things. */
  locate(signal?: AbortSignal): Promise<{ dir: string; python: string }>;
  check(signal?: AbortSignal): Promise<TargetReport>;
  describe(plan: RemotePlan): Promise<Description>;
  /** Copies runner, inputs, run.json and spec.json. What is there already, by hash, is not copied again; a cut copy goes on where it stopped. */
  prepare(plan: RemotePlan, progress: Progress, signal?: AbortSignal): Promise<void>;
  /** The preflight's findings as it prints them (JSON), run on the target. Where only a job could run it: null (the job runs it first). */
  preflight(plan: RemotePlan, signal?: AbortSignal): Promise<string | null>;
  /** Starts the attempt at most once; of an array all that belong to it, whichever of their plans is given. Gives the job; for `ssh` an id that names the attempt. */
  submit(plan: RemotePlan, signal?: AbortSignal): Promise<JobRef>;
  /** The job of a submission whose answer was lost, or null if there is none. */
  find(run: RemoteFile, attempt: number, signal?: AbortSignal): Promise<JobRef | null>;
  /** What the scheduler says of the attempt's job; null where there is no scheduler. */
  word(run: RemoteFile, attempt: number, signal?: AbortSignal): Promise<SchedulerWord | null>;
  probe(run: RemoteFile, attempt: number, signal?: AbortSignal): Promise<AttemptProbe>;
  /**
   * Frames of what the target has beyond `known`, as it comes, until the run's end (`end`), the signal, or a cut link, which
   * throws. Bounded on the target's side, so that nothing is left there when the link is gone.
   */
  follow(run: RemoteFile, known: MirrorFile["files"], onFrame: (frame: StationFrame) => Promise<void> | void, signal: AbortSignal): Promise<void>;
  /** The cancel ladder: cancel file, then the scheduler's cancel; its end shows in later probes. */
  stop(run: RemoteFile, attempt: number, signal?: AbortSignal): Promise<void>;
  /** Closes an attempt that the scheduler says is over but whose agent left no exit.json. */
  reap(run: RemoteFile, attempt: number, signal?: AbortSignal): Promise<AttemptProbe>;
  /** Copies a folder of the run (a checkpoint) here; a cut copy goes on where it stopped. `relative` is below the run folder. */
  fetch(run: RemoteFile, relative: string, local: string, progress: Progress, signal?: AbortSignal): Promise<void>;
  /** What lies below the target's folder that nobody needs, once `runs`, which their own workspace lets go of, are gone. Changes nothing. */
  survey(runs: readonly string[], signal?: AbortSignal): Promise<StoreSurvey>;
  /** Removes those of `items` that may go at that moment. */
  clear(runs: readonly string[], items: readonly StoreItem[], signal?: AbortSignal): Promise<StoreCleared>;
  /** Lets go of connections. */
  dispose(): void;
}
