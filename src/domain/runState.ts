import type { FinishReason, FlagBody, Phase, ProbeSummary } from "../protocol/journal.ts";
import type { Split } from "../protocol/runSpec.ts";

/** What a person is told about a run. `orphan`: the agent is gone, the training lives. */
export type RunStatus =
  | "starting"
  | "running"
  | "stopping"
  | "orphan"
  | "done"
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

/** The state of one run: a pure function of its journal (see `reduceEvent`) and of its attempt folder. */
export interface RunState {
  status: RunStatus;
  attempt: number;
  lastSeq: number;
  startedAt: number | null;
  endedAt: number | null;
  phase: Phase | null;
  step: number;
  total: number;
  loss: number | null;
  tokensPerSecond: number | null;
  etaSeconds: number | null;
  device: string | null;
  metrics: { step: number; attempt: number; values: Record<string, number> }[];
  checkpoints: CheckpointState[];
  probes: ProbePoint[];
  evals: EvalPoint[];
  /** Newest state of each flag, by flag id, and their history in time order. */
  flags: FlagBody[];
  flagHistory: FlagBody[];
  warnings: Warning[];
  reason: FinishReason | null;
  probeShare: number | null;
  /** Lines that were no events, and events of unknown types: counted, never fatal. */
  badLines: number;
  unknownEvents: number;
}
