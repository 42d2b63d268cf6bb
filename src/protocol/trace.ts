import type { Split } from "./runSpec.ts";

/** `meta` of a trace. The fields of `comparableFields` must agree before two traces are compared. */
export interface TraceMeta {
  schema: string;
  run: string;
  stage: string;
  step: number;
  skill: string;
  split: Split;
  engine: string;
  dtype: string;
  attention: string;
  batch_size: number;
  temperature: number;
  tokenizer_hash: string;
  template_hash: string;
  probe_set_hash: string;
  top_k: number;
  mask: "generation-block" | "prefix";
  weights_hash: string;
  device: string;
  /** A/A of the stage's start, nats. `margin_sd`, `decision_sd`: of a row's margin; absent in files older than the margins. */
  noise?: { nll_q99: number; token_q99: number; margin_sd?: number; decision_sd?: number };
}

export const comparableFields = [
  "tokenizer_hash",
  "template_hash",
  "probe_set_hash",
  "temperature",
  "dtype",
  "attention",
  "engine",
  "mask",
] as const satisfies readonly (keyof TraceMeta)[];

/** One row of the `probe` table. */
export interface ProbeRow {
  row: number;
  /** 1-based physical line in the probe file. */
  line: number;
  hash: string;
  prompt: string;
  reference: string;
  tags: string[];
  status: "ok" | "skipped";
  reason: string | null;
  tokens: number;
  /** Sum over the reference's tokens, nats. */
  nll: number;
  mean_entropy: number;
  kl_start: number | null;
  kl_base: number | null;
  worst: number | null;
  /** null: the check was not run at this step. */
  correct: boolean | null;
  generated: string | null;
  finish: "stop" | "length" | null;
}

/** One row of the `summary` table. */
export interface TraceSummaryRow {
  kind: "all" | "segment" | "tag";
  name: string;
  rows: number;
  tokens: number;
  nll: number;
  perplexity: number;
  mean_entropy: number;
  kl_start: number | null;
  kl_base: number | null;
  correct: number | null;
  checked: number;
}

/** One decoded row of the `tokens` table; arrays of length `n` (top-k: `n * k`, row-major). */
export interface TokenScores {
  ids: Uint32Array;
  /** End offset of each token in the UTF-8 bytes of the reference. */
  ends: Uint32Array;
  logprob: Float32Array;
  entropy: Float32Array;
  rank: Uint32Array;
  topkIds: Uint32Array;
  topkLogprob: Float32Array;
  segment: Uint8Array;
  klStart: Float32Array | null;
  klBase: Float32Array | null;
}
