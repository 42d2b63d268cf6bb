import type { WireNumber } from "./numbers.ts";
import type { BenchmarkSpec } from "./runSpec.ts";

/** `benchmarks/step-000120/request.json`: what is to be measured on which checkpoint. Read by `seesaw_runner.benchmark`. */
export interface BenchmarkRequest {
  v: 1;
  /** Absolute path of the weights. */
  checkpoint: string;
  run: string;
  stage: string;
  step: number;
  label: string;
  benchmark: BenchmarkSpec;
  trusted: boolean;
  use_cpu: boolean;
}

export interface BenchmarkMetric {
  metric: string;
  filter: string;
  value: WireNumber | null;
  higher_is_better: boolean;
  /** Every row has this number, so that checkpoints can be compared row by row. */
  per_row: boolean;
  /** It is 0 or 1 in every row. */
  binary: boolean;
  /** The one that stands for the task. */
  main: boolean;
}

/** `benchmarks/step-000120/<task>.json`. */
export interface BenchmarkResult {
  v: 1;
  harness: string;
  task: string;
  run: string;
  stage: string;
  step: number;
  label: string;
  weights_hash: string;
  n: number;
  metrics: BenchmarkMetric[];
  settings: { harness: string; template: string; limit: number | null; dtype: string; task: string; shots: number | null; prompts: string; sampling: string; max_tokens: number | null };
  /** Name of the file with the rows, in the same folder. */
  samples: string;
}

/** One line of `<task>.jsonl`: one prompt under one filter. */
export interface BenchmarkSample {
  /** Names the prompt in every checkpoint. */
  key: string;
  filter: string;
  metrics: Record<string, WireNumber | null>;
  prompt_hash: string;
  prompt: string | null;
  target: unknown;
  answer: unknown;
  responses: unknown;
  group?: string;
}

/** What the process prints, one line each, as tasks end. */
export type BenchmarkMessage =
  | { seesaw_benchmark: 1; event: "started"; task: string }
  | { seesaw_benchmark: 1; event: "done"; task: string; n: number; metrics: BenchmarkMetric[]; samples: string; again: boolean; seconds: number }
  | { seesaw_benchmark: 1; event: "failed"; task: string | null; code: string; message: string };
