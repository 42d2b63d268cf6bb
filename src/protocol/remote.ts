import type { AttemptProbe } from "./attempt.ts";
import type { Resources } from "./runSpec.ts";

/**
 * What a run on another machine leaves in its local folder, and what the two sides say to each other. The run folder on the
 * target is the truth; the local one is a copy of it that only grows, plus the two files described here.
 */

/** Kinds of target that are another machine. */
export const remoteKinds = ["ssh", "slurm", "ray"] as const;
export type RemoteKind = (typeof remoteKinds)[number];

/** What `seesaw.yaml` says of another machine, defaults filled in. Nothing in it is secret. */
interface AnyRemote {
  id: string;
  /** A path there, or a command such as `python3`. */
  python: string;
  /** Absolute there, or beginning with `~/`. */
  dir: string;
}

export interface SshSettings extends AnyRemote {
  kind: "ssh";
  /** An alias of the person's own ssh configuration, or `user@host`. */
  host: string;
}

export interface SlurmSettings extends AnyRemote {
  kind: "slurm";
  /** The machine on which `sbatch` is, by ssh; null: this one. */
  host: string | null;
  resources: Resources;
}

export interface RaySettings extends AnyRemote {
  kind: "ray";
  /** Of the dashboard: `http://head:8265`. */
  address: string;
  resources: Resources;
}

export type RemoteSettings = SshSettings | SlurmSettings | RaySettings;

/** A job of a scheduler. An id alone is no identity (Slurm gives ids again): the nonce, kept in the job's own comment or metadata, is. */
export interface JobRef {
  id: string;
  nonce: string;
}

/** Which task of a scheduler's job array an attempt is. All tasks were asked for at once, so one that is known vouches for the others. */
export interface ArrayTask {
  /** The array's own nonce, in its comment; the attempt's is this one, `_` and the task. */
  nonce: string;
  name: string;
  task: number;
}

/** One attempt, as far as its submission is known here. `submitting`: asked for, no answer yet; looked up by nonce before anything is asked again. */
export interface RemoteAttempt {
  attempt: number;
  nonce: string;
  state: "prepared" | "submitting" | "submitted";
  job: JobRef | null;
  /** Seconds since 1970, on this machine's clock; for people, never to decide anything. */
  asked: number | null;
  /** Absent: a job of its own. */
  array?: ArrayTask;
}

/** `<run folder>/remote.json`: where the run really is. Written by whoever starts or resumes it. */
export interface RemoteFile {
  v: 1;
  target: string;
  kind: RemoteKind;
  /** For people: `gpu-box`, `login1 (Slurm)`, `http://head:8265`. */
  address: string;
  /** The run folder on the target, absolute there. */
  dir: string;
  /** Folder of the runner on the target (holds `seesaw_runner`), and its Python. */
  runner: string;
  python: string;
  /** What `seesaw.yaml` said of the target when the run was started: a live run stays where it is, whatever the file says later. */
  settings: RemoteSettings;
  attempts: RemoteAttempt[];
}

/** What a scheduler says of a job, in one vocabulary for all of them. `reason` is its own word (`Priority`, `BeginTime`, `NODE_FAIL`). */
export interface SchedulerWord {
  state: "queued" | "running" | "completing" | "ended" | "not-found";
  /** Only where `ended`: how, as far as the scheduler knows. Never "done": that only exit.json can say. */
  end?: "exited" | "failed" | "cancelled" | "time-limit" | "preempted" | "node-failure" | "out-of-memory" | "unknown";
  reason: string | null;
  /** Only where `ended`: the sentence with which the job itself gave up before an agent began. */
  said?: string;
  /** How often the scheduler started it again. */
  restarts?: number;
  nodes?: string | null;
}

/** Why a target cannot be reached or used now: decides what the surfaces offer (a terminal to log in, a setting …). */
export type ReachReason =
  | "no-route" // host down, link cut, name not found, connection refused
  | "login" // a password, passphrase or second factor would be asked for
  | "refused" // key or token refused
  | "host-key" // unknown or changed host key
  | "expired" // token expired
  | "no-python"
  | "not-writable"
  | "no-scheduler" // slurmctld or the Ray dashboard does not answer
  | "other";

/** `<run folder>/mirror.json`: how far the copy is, and what was heard last. Written only by the holder of the run's lease. */
export interface MirrorFile {
  v: 1;
  /** Bytes copied of each file of the run folder, by relative path; `mark` names the version of a file that is replaced as a whole. */
  files: Record<string, { size: number; mark: string }>;
  /** The newest answer of the target's own agent, and when it came (seconds since 1970, this machine's clock). */
  probe: AttemptProbe | null;
  /** Which attempt `probe` is of. */
  attempt: number;
  heard: number | null;
  word: SchedulerWord | null;
  /** null: reachable. `since`: when it stopped being so. Unreachable is not lost: the run may well go on. */
  unreachable: { since: number; reason: ReachReason; message: string } | null;
  /** Everything the target had when the run ended is here: nothing more will come. True of `attempt`: a later one opens the copy again. */
  complete: boolean;
  /** How often the lease changed hands: a holder that finds a higher number has lost it and writes no more. */
  epoch: number;
}

/**
 * One line that `station.py follow` prints, ASCII JSON. `data` is base64. Files that only grow come in pieces from the size
 * that the reader has, and their `mark` begins with `g:`; the others whole, in one or more pieces under one new `mark`, the last with `done`.
 */
export type StationFrame =
  | { kind: "probe"; attempt: number; probe: AttemptProbe }
  | { kind: "piece"; file: string; offset: number; data: string; mark: string; done: boolean }
  /** A followed file was replaced or shortened: what was copied of it is void. */
  | { kind: "restart"; file: string; mark: string }
  /** All that is there now was sent. */
  | { kind: "caught-up"; bytes: number }
  /** Nothing more will come: the attempt has ended and its files were sent. `sums`: what the files that only grow hold, so that the copy can be held against it byte for byte. */
  | { kind: "end"; sums?: Record<string, { size: number; sha256: string }> };

/** What `seesaw targets check` and the Targets tree show. What could not be told is null, never 0. */
export interface TargetReport {
  target: string;
  kind: RemoteKind | "local";
  address: string;
  reachable: boolean;
  /** Sentences that name what is missing and the fix; empty exactly when a stage can be started there. */
  problems: { reason: ReachReason | "packages" | "resources"; message: string }[];
  python: { path: string; version: string; packages: Record<string, string | null> } | null;
  gpus: { name: string; total: number | null; used: number | null; utilisation: number | null }[] | null;
  /** Bytes under the target's folder. */
  disk: { free: number; total: number } | null;
  /** Partitions or nodes, as the scheduler names them. */
  queue: { name: string; state: string; nodes: number | null; gpus: string | null; waiting: number | null; running: number | null }[] | null;
  versions: Record<string, string>;
  /** Milliseconds of one small question and its answer. */
  roundTrip: number | null;
}
