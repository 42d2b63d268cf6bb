import type { EventBodies, FinishReason, FlagBody, Phase, ProbeSummary } from "../../protocol/journal.ts";
import type { MirrorFile, RemoteKind, SchedulerWord } from "../../protocol/remote.ts";
import type { Split } from "../../protocol/runSpec.ts";

/**
 * What a person is told about a run. `orphan`: the agent is gone, the training lives. `paused`: a flag asked for it, and it waits for Resume.
 * `queued`: a scheduler has it and has not started it. `unreachable`: its machine does not answer, so the run may well go on; what it was is in `remote`.
 */
export type RunStatus =
  | "queued"
  | "unreachable"
  | "starting"
  | "running"
  | "stopping"
  | "orphan"
  | "done"
  | "paused"
  | "failed"
  | "killed"
  | "out-of-memory"
  | "cancelled"
  | "lost"
  | "unknown";

export interface CheckpointState {
  step: number;
  /** Relative to the run folder. */
  path: string;
  kind: "full" | "adapter";
  final: boolean;
  weightsHash: string;
  bytes: number;
}

export interface ProbePoint {
  step: number;
  skill: string;
  split: Split;
  /** Relative to the run folder. */
  trace: string;
  summary: ProbeSummary;
}

export interface EvalPoint {
  step: number;
  skill: string;
  split: Split;
  n: number;
  correct: number;
}

export interface Warning {
  code: string;
  severity: "info" | "warning" | "error";
  message: string;
  fix?: string;
  where?: string;
}

export interface MetricPoint {
  step: number;
  attempt: number;
  /** NaN and the infinities are kept: a chart shows a gap there, never 0. */
  values: Record<string, number>;
}

/** A flag event with the head of its journal line. */
export interface FlagRecord extends FlagBody {
  seq: number;
  t: number;
  attempt: number;
}

/** Of a run on another machine: where it is, and what was heard of it last. */
export interface RemoteState {
  target: string;
  kind: RemoteKind;
  /** For people: `gpu-box`, `login1 (Slurm)`. */
  address: string;
  job: string | null;
  /** The newest word of the scheduler; `reason` in it is why a `queued` run waits. */
  word: SchedulerWord | null;
  /** Only while `status` is `unreachable`: since when, why, and what the run was before. */
  unreachable: (NonNullable<MirrorFile["unreachable"]> & { last: RunStatus }) | null;
  /** When the target was heard last, in seconds since 1970 on this machine's clock. */
  heard: number | null;
  /** Everything that the target had at the end is here. */
  complete: boolean;
}

/** The state of one run: a pure function of its journal (see `reduceEvent`) and of its attempt folder. */
export interface RunState {
  status: RunStatus;
  attempt: number;
  lastSeq: number;
  /** When the first attempt started, and when the newest one ended. */
  startedAt: number | null;
  endedAt: number | null;
  /** When the newest attempt started, what the ones before it took in seconds, and the newest sign of life. */
  attemptStartedAt: number | null;
  earlierSeconds: number;
  lastAt: number | null;
  phase: Phase | null;
  step: number;
  total: number;
  loss: number | null;
  tokensPerSecond: number | null;
  etaSeconds: number | null;
  device: string | null;
  /** Steps only go up: after a resume the later attempt's points replace the earlier ones. */
  metrics: MetricPoint[];
  /** What a later attempt replaced, for a pale line. */
  replacedMetrics: MetricPoint[];
  /** The attempts that went on from a checkpoint, and the step they started at. */
  resumes: { attempt: number; step: number }[];
  checkpoints: CheckpointState[];
  probes: ProbePoint[];
  evals: EvalPoint[];
  /** Newest state of each flag, by flag id, and their history in time order. */
  flags: FlagRecord[];
  flagHistory: FlagRecord[];
  warnings: Warning[];
  reason: FinishReason | null;
  /** null: the run is of this machine. */
  remote: RemoteState | null;
  /** Benchmarks that ran with the stage; those that ran later are in the folder only. */
  benchmarks: EventBodies["benchmark.result"][];
  probeShare: number | null;
  /** What the newest attempt that came to its end has cost. */
  cost: EventBodies["cost.measured"] | null;
  /** What the newest attempt said when it started. */
  started: EventBodies["run.started"] | null;
  ledger: EventBodies["ledger.drawn"][];
  /** Lines that were no events, and events of unknown types: counted, never fatal. */
  badLines: number;
  unknownEvents: number;
  /** Sequence numbers below `lastSeq` that have not been seen (yet). */
  missingSeqs: number[];
}
