import type { CheckSpec, SegmentPattern } from "./checks.ts";

/** Version of run.json, journal and trace formats. Readers refuse a newer major, accept a newer minor. */
export const schemaVersion = "1.0";

/** In-domain or out-of-domain probe set. */
export type Split = "id" | "ood";

export interface SkillSpec {
  id: string;
  /** Absolute paths. */
  probes: { id: string; ood?: string };
  check: CheckSpec;
  segments?: SegmentPattern[];
  /** What the run does when a loss of this skill is confirmed; absent: what `flags` says. */
  on_flag?: OnFlag;
  /** The tokens that decide whether an answer is right; absent: what the check decides by. */
  decision?: DecisionSpec;
  /** The first stage of the pipeline whose id equals the skill's, or null: what the UI calls the skill's own stage. */
  own_stage: string | null;
}

export interface ProbeSpec {
  /**
   * Score every n optimizer steps and at early points, or at these steps, or at 1,2,3,6,12,… ("log"); null: about 20 times
   * and at early points. Step 0 and the last step always. See `lookSteps`.
   */
  every: number | number[] | "log" | null;
  /** Run the checks on greedy generations every n steps, or at these steps, or at 1,2,3,6,…; null: only at step 0 and the last step. */
  eval_every: number | number[] | "log" | null;
  top_k: number;
  max_new_tokens: number;
  batch_size: number;
  kl: ("start" | "base")[];
}

/** What watches the scores between two checks (`src/domain/flags`). */
export type DetectorName = "limit" | "soft" | "shift" | "strict" | "nll";

/** What a run does when a loss is confirmed: go on; save and wait for Resume; save and end as failed. */
export type OnFlag = "inform" | "pause" | "stop";

/** All tokens of a reference, those of its answer, the first five, or those of the named segments. */
export type DecisionSpec = "all" | "answer" | "first-5" | string[];

/** Runs older than the detectors have only the first two, `tolerance` in nats (of the detector `nll`). */
export interface FlagSpec {
  /** False-alarm budget per run, over all skills and looks. */
  alpha: number;
  /** Harmless loss, in points of accuracy. */
  tolerance: number;
  detector?: DetectorName;
  /** For `nll`: harmless rise of the sequence NLL, in nats, added to the A/A noise. */
  tolerance_nats?: number;
  /** For skills that do not say it themselves; absent: inform. */
  on_flag?: OnFlag;
}

export interface ReplaySpec {
  buffer: string;
  /** Share of each batch drawn from the buffer, 0 < ratio < 1. */
  ratio: number;
  rows: number;
  from: { stage: string; data: string; skill: string | null }[];
  quality: QualitySpec | null;
  diversity: DiversitySpec | null;
  /** Rows of each stage in `from`; absent or null: even shares. */
  quotas?: Record<string, number> | null;
  /** Absent or null: no rows are taken for what they are like. */
  near?: NearSpec | null;
}

/** Rows whose prompt is nearest to these are taken first, up to half of each stage's share. */
export interface NearSpec {
  /** A file of rows, as an absolute path. */
  rows: string;
  /** From 1, ascending, each once. */
  lines: number[];
}

/** Which rows are good enough: by a number in the row, by its skill's check, or by a reward model (a key of `models`). */
export type QualitySpec = { field: string | null; min: number } | { check: true } | { reward_model: string; min: number };

/** What rows are compared by: TF-IDF of their text, or the start model's mean hidden state. */
export type RowFeatures = "tfidf" | "hidden";

/** How rows are kept apart. At most one of `k_center` and `clusters`; without them rows are taken by chance. */
export interface DiversitySpec {
  /** Jaccard similarity of 5-word shingles from which two rows count as near-duplicates. */
  minhash?: number;
  /** Always takes the row that is farthest from all taken ones. */
  k_center?: { features: RowFeatures };
  /** Equal shares of so many clusters. */
  clusters?: { count: number; features: RowFeatures };
}

/** What a scheduler is asked for. Says where and when, never what comes out: not part of the fingerprint. */
export interface Resources {
  partition?: string;
  account?: string;
  qos?: string;
  constraint?: string;
  /** GPUs and CPUs of each node. */
  gpus?: number;
  nodes?: number;
  cpus?: number;
  /** Of each node, as Slurm writes it: `32G`. */
  memory?: string;
  /** As sbatch reads it: `HH:MM:SS`, `D-HH:MM:SS`, or minutes. */
  time?: string;
  /** Start again after a node failure or a preemption; absent: yes. */
  requeue?: boolean;
  /** Seconds before the limit at which a checkpoint is saved; absent: 120. */
  warn_s?: number;
  /** Further words for sbatch, each beginning with `--`. */
  args?: string[];
}

/** What starts the training process or processes. */
export interface LaunchSpec {
  kind: "python" | "torchrun" | "accelerate" | "deepspeed";
  /** On each node. */
  processes: number;
  /** How many machines take part; absent: one. */
  nodes?: number;
  /** A configuration file of accelerate, as an absolute path. */
  config?: string;
  /** Further words for the program that starts the processes. */
  args?: string[];
}

/** A checkpoint other than the start that a recipe's options name, as it was when the run was frozen. */
export interface ModelSpec {
  checkpoint: string;
  label: string;
  run: string | null;
  step: number | null;
  weights_hash: string;
}

/** Benchmarks to run on a checkpoint: what `seesaw.yaml` says, paths absolute. */
export interface BenchmarkSpec {
  /** Names of lm-eval tasks, or of groups of them. */
  lm_eval: string[];
  /** A folder with task files of the person's own; they can run code. */
  include_path: string | null;
  /** Only the first n prompts; null: all. */
  limit: number | null;
  batch_size: number | "auto";
  /** null: what each task says. */
  num_fewshot: number | null;
  chat_template: boolean;
}

/** Bytes or seconds: the expected value and the range it may lie in. */
export interface PredictedRange {
  expected: number;
  low: number;
  high: number;
}

/** What a run was expected to cost before it started, to be held against its `cost.measured`. */
export interface PredictedCost {
  v: number;
  /** Peak of one process, by the kind of memory that is measured: of the accelerator, or of a process on a CPU without Python itself. */
  memory: { device: PredictedRange | null; resident: PredictedRange | null };
  /** Trained tokens over all processes, and model FLOPs of everything. */
  tokens: number | null;
  flops: number | null;
  /** Training without probes; null where no device was known. */
  seconds: PredictedRange | null;
}

export interface RunSpec {
  schema: string;
  /** Name of the run folder: `<stage>-<YYYYMMDDTHHMMSS-xxxx>`. */
  id: string;
  stage: string;
  /** 1-based position in the chain; the run's last checkpoint is M<index>. */
  index: number;
  recipe: string;
  pipeline: { file: string; name: string; root: string };
  created: number;
  start: { checkpoint: string; label: string; run: string | null; step: number | null };
  base: string;
  /** Null for a recipe that needs no rows of its own. */
  data: string | null;
  inputs: { path: string; sha256: string; bytes: number }[];
  args: Record<string, unknown>;
  /** The recipe's own settings, paths absolute. Absent in runs older than the recipes that have some. */
  options?: Record<string, unknown>;
  /** By the name that `options` uses. */
  models?: Record<string, ModelSpec>;
  adapter: Record<string, unknown> | null;
  launch: LaunchSpec;
  seed: number;
  /** The seed that `seesaw.yaml` had when this run was asked for with another one; absent else. Such a run stands beside the chain. */
  file_seed?: number;
  save_every: number | null;
  skills: SkillSpec[];
  probe: ProbeSpec;
  flags: FlagSpec;
  replay: ReplaySpec | null;
  target: { id: string; kind: string; python: string; resources?: Resources };
  env: Record<string, string>;
  fingerprint: string;
  /** Absent or null where it could not be told. Decides nothing, so it is not part of the fingerprint. */
  predicted?: PredictedCost | null;
  /** What runs after the last checkpoint; null or absent: nothing. Decides nothing of the weights, so it is not part of the fingerprint. */
  benchmark?: BenchmarkSpec | null;
  /** True only when the person trusted the workspace: user functions may be imported. */
  trusted: boolean;
  versions: Record<string, string>;
}
