import type { TokenScores } from "../protocol/trace.ts";
import type { Disposable } from "../util/disposable.ts";

/** One prompt and answer, to be scored under some checkpoints of a pipeline. */
export interface ScoreRequest {
  /** The row as JSON text, in any format of contract §3. */
  row: string;
  checkpoints: readonly { label: string; folder: string }[];
  /** `.seesaw/cache/graphs` of the pipeline: where the runner leaves the graphs. */
  graphs: string;
  topK: number;
}

/** A row under one checkpoint: scores, or the sentence that says why there are none. */
export interface CheckpointScores {
  label: string;
  scored: ScoredRow | null;
  why: string | null;
}

export interface ScoredRow {
  /** What stands before the answer, as the model sees it. */
  prompt: string;
  /** The answer as its tokens spell it. */
  reference: string;
  mask: "generation-block" | "prefix";
  /** Something worth knowing about how the row became tokens. */
  note: string | null;
  /** Ids of the answer's tokens, their ends in its bytes, and what the checkpoint says of each. */
  scores: Omit<TokenScores, "segment" | "klStart" | "klBase">;
  /** Raw bytes of every id in the scores. */
  vocabulary: Map<number, Uint8Array>;
}

/** Scores rows without Python. Checkpoints are kept in memory, so that a row that is edited is scored again at once. */
export interface Scorer extends Disposable {
  /**
   * Throws AppError("bad-input" | "not-found" | "cancelled" | "internal"); what one checkpoint lacks is in its `why`.
   * `onScored`: told after every checkpoint how many are done.
   */
  score(request: ScoreRequest, signal?: AbortSignal, onScored?: (count: number) => void): Promise<CheckpointScores[]>;
}
