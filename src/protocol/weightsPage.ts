import type { WeightDrift } from "./weights.ts";

/**
 * Everything the weights page and the extension host can say to each other. The page says `ready`, the host answers with
 * the state and sends it again whenever it changes.
 */
export interface ToWeightsPage {
  type: "state";
  state: WeightsState;
}

export type FromWeightsPage =
  | { type: "ready" }
  /** A `seesaw.yaml` of the workspace. */
  | { type: "pipeline"; file: string }
  /** Labels of two checkpoints. */
  | { type: "choose"; from: string; to: string }
  /** Also, or no longer, the effective rank of every update. */
  | { type: "rank"; wanted: boolean }
  | { type: "cancel" }
  | { type: "retry" }
  /** The numbers of one of the two pictures, as a file. */
  | { type: "export"; what: "weights" | "capabilities" }
  | { type: "runStage" }
  | { type: "showLog" }
  /** Something in the page failed: for the log. */
  | { type: "error"; message: string };

/** One coordinate of a capability vector: a skill in-domain or OOD. null: not checked at this checkpoint. */
export interface PageCapability {
  skill: string;
  split: "id" | "ood";
  n: number | null;
  correct: number | null;
  accuracy: number | null;
  interval: { low: number; high: number } | null;
}

/** What one checkpoint can do, over the same coordinates as every other. */
export interface PageVector {
  label: string;
  stage: string | null;
  values: PageCapability[];
}

export interface WeightsState {
  /** Every `seesaw.yaml` of the workspace, and the one that is shown. */
  pipelines: { file: string; label: string }[];
  pipeline: string;
  /** Checkpoints whose weights are there, M0 first. */
  places: { label: string; title: string }[];
  from: string;
  to: string;
  /** What `from` was trained from, where the cosine of the two updates is known. */
  before: string | null;
  rank: boolean;
  /** Share of the tensors that are compared, 0 to 1. null: nothing is at work. */
  busy: number | null;
  drift: WeightDrift | null;
  capabilities: PageVector[];
  /** Set instead of the heat map where there is none, with what a person can do about it. */
  empty: { kind: "none" | "error"; title: string; detail: string; action: "runStage" | "retry" | null } | null;
}
