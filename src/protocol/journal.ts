import type { WireNumber } from "./numbers.ts";
import type { SchedulerWord } from "./remote.ts";
import type { Split } from "./runSpec.ts";

/** What every journal line carries. `seq` orders; `t` (unix seconds) only informs. */
export interface EventHead {
  v: number;
  seq: number;
  t: number;
  attempt: number;
}

/** Why an attempt ended. A signal is never flattened into an exit code. */
export type FinishReason =
  | { kind: "done" }
  | { kind: "failed"; code: FailureCode; message: string; where?: string; exit_code?: number }
  | { kind: "killed"; signal: string }
  | { kind: "out-of-memory"; message: string }
  | { kind: "cancelled" }
  /** A skill's `on_flag: pause`: a checkpoint was saved at this step, and the run waits to be resumed. `flag` is `<skill>.<split>`. */
  | { kind: "paused"; flag: string; step: number }
  | { kind: "lost"; message: string }
  /** Never in a journal: a reader takes it from the scheduler, where the run's own machine left no word of the end. `message` is the scheduler's own word. */
  | { kind: "scheduler"; end: NonNullable<SchedulerWord["end"]>; message: string }
  | { kind: "unknown"; message: string };

export type FailureCode =
  | "preflight"
  | "bad-argument"
  | "bad-data"
  | "bad-checkpoint"
  | "template"
  | "nan-loss"
  | "disk-full"
  | "out-of-memory"
  | "cancelled"
  | "untrusted"
  | "exception"
  | "spawn"
  /** A skill's `on_flag: stop`. */
  | "flag-stop";

export type Phase = "preflight" | "load" | "probe" | "generate" | "train" | "eval" | "benchmark" | "save";

export type FlagState = "drifting" | "confirmed" | "recovered" | "not-measurable";

/** Paired exact test on the skill's check, run because the watch fired. */
export interface PairedTest {
  /** Passed at the stage's start, fails now / the reverse / number of pairs. */
  lost: number;
  gained: number;
  n: number;
  p: WireNumber;
  /** The level it was held against, after Holm's correction over the skills tested in this run. */
  level: number;
  accuracy_start: number;
  accuracy_now: number;
}

export interface FlagBody {
  /** `<skill>.<split>` : one flag per skill and split in a run. */
  id: string;
  skill: string;
  split: Split;
  step: number;
  state: FlagState;
  /** Mean sequence ΔNLL against the stage's start, nats; with its one-sided lower bound at `level`. */
  value: WireNumber;
  lower: WireNumber;
  threshold: WireNumber;
  /** A/A noise part of the threshold, nats. */
  noise: WireNumber;
  /** Per-look level after correction over skills and looks. */
  level: number;
  n: number;
  /** For "not-measurable": the sentence that says why. */
  reason?: string;
  test?: PairedTest;
  /** Which detector watches (src/domain/flags). Absent in files older than the choice: then `nll`, with `lower` as above. */
  detector?: "limit" | "nll" | "shift" | "soft" | "strict";
  /** Unit of `value`, `lower`, `high`, `threshold`: loss is positive. Absent: nats. */
  unit?: "nats" | "points";
  /** Upper end of the band that `lower` begins: 90 % together; of `nll`, where `lower` is at `level`, one-sided 90 %. */
  high?: WireNumber;
  /** Expected loss in points of accuracy, with its 90 % band. */
  points?: { estimate: WireNumber; low: WireNumber; high: WireNumber };
  /** Share of the run's false-alarm budget that this series has used. */
  spent?: number;
  /** True below 64 independent rows: a flag may be raised, a calm says little. */
  weak?: boolean;
  /** Which tokens the margins are the least of. */
  margin?: "all" | "decision";
  /** The rows that moved most, at most five, worst first. */
  moved?: MovedRow[];
  /** The smallest drop, in points, that the check on these n rows shows in 4 of 5 cases at its level; null: none of any size. */
  smallest_drop?: number | null;
}

/** A probe row that lost ground: `tokens` are indexes into the scored tokens, `change` is that of its margin in nats (negative). */
export interface MovedRow {
  row: number;
  line: number;
  tokens: number[];
  change: WireNumber;
}

export interface ProbeSummary {
  rows: number;
  skipped: number;
  tokens: number;
  /** Mean over rows of the sequence NLL, nats. */
  nll: WireNumber;
  /** Mean paired ΔNLL per sequence against the stage's start, nats (0 at step 0). */
  delta_nll: WireNumber;
  /** exp(sum of NLL / number of tokens): token-weighted. */
  perplexity: WireNumber;
  kl_start: WireNumber | null;
  kl_base: WireNumber | null;
  segments: Record<string, { tokens: number; nll: WireNumber; delta_nll: WireNumber; perplexity: WireNumber; kl_start: WireNumber | null }>;
}

export interface EventBodies {
  "run.started": {
    stage: string;
    recipe: string;
    device: string;
    dtype: string;
    parameters: number;
    trainable: number;
    total_steps: number;
    start_label: string;
    rows: number;
    replay_rows: number;
    resumed_from: number | null;
    packages: Record<string, string>;
    processes: number;
  };
  "stage.progress": {
    phase: Phase;
    step: number;
    total: number;
    tokens_per_s?: WireNumber;
    eta_s?: WireNumber;
    message?: string;
  };
  metric: { step: number; values: Record<string, WireNumber> };
  "checkpoint.saved": {
    step: number;
    /** Relative to the run folder; absolute for a checkpoint that a command wrote elsewhere. */
    path: string;
    kind: "full" | "adapter";
    /** True for the last one of the stage. */
    final: boolean;
    weights_hash: string;
    bytes: number;
  };
  "probe.scored": {
    step: number;
    skill: string;
    split: Split;
    trace: string;
    summary: ProbeSummary;
    seconds: number;
  };
  "eval.result": { step: number; skill: string; split: Split; n: number; correct: number; seconds: number };
  /** One metric of one benchmark task; its answers, row by row, are in `samples`. */
  "benchmark.result": {
    step: number;
    harness: string;
    task: string;
    metric: string;
    filter: string;
    /** The one that stands for the task. */
    main: boolean;
    n: number;
    value: WireNumber | null;
    /** Relative to the run folder. */
    samples: string;
    seconds: number;
  };
  "probe.cost": {
    /** Seconds of probing and evaluating so far. */
    probe_s: number;
    /** Seconds since the training process started: what a person waits for. `share` = probe_s / stage_s. */
    stage_s: number;
    share: number;
    /** Seconds since imports, model and data were loaded. */
    after_loading_s?: number;
  };
  "ledger.drawn": { step: number; buffer: string; rows: number; distinct: number };
  /** What an attempt has cost, told once when its training ended; of the first process, where there are several. */
  "cost.measured": {
    step: number;
    memory: {
      /** `device`: memory that tensors took on the accelerator; `resident`: of the process, on a CPU. */
      kind: "device" | "resident";
      /** Bytes: of Python and its libraries before the model was loaded, the peak until the first training step, the peak of all. */
      before: number;
      start: number;
      peak: number;
      /** What the allocator held at most; null on a CPU. */
      reserved: number | null;
    };
    /** Seconds of training, probes left out, and of probes and checks. */
    train_s: number;
    probe_s: number;
    /** Trained tokens of this attempt over all processes, padding not counted; an estimate where answers are generated. */
    tokens: number;
  };
  "flag.raised": FlagBody;
  "flag.changed": FlagBody;
  warning: { code: string; message: string; fix?: string; severity: "info" | "warning" | "error"; where?: string };
  "run.finished": { reason: FinishReason };
}

export type EventType = keyof EventBodies;
export type JournalEvent = { [K in EventType]: EventHead & { type: K } & EventBodies[K] }[EventType];
/** An event of a type this version does not know: kept, counted, not interpreted. */
export type UnknownEvent = EventHead & { type: string };

export const eventTypes: readonly EventType[] = [
  "run.started",
  "stage.progress",
  "metric",
  "checkpoint.saved",
  "probe.scored",
  "eval.result",
  "benchmark.result",
  "probe.cost",
  "ledger.drawn",
  "cost.measured",
  "flag.raised",
  "flag.changed",
  "warning",
  "run.finished",
];
