import { join } from "node:path";
import type { FlagChecks } from "../../domain/run/checkedFlag.ts";
import type { RunState } from "../../domain/run/runState.ts";
import type { RunSpec } from "../../protocol/runSpec.ts";

/** One run folder as read from disk. */
export interface RunRecord {
  dir: string;
  id: string;
  stage: string;
  spec: RunSpec;
  state: RunState;
  /** What a person had checked on further prompts; absent: nothing. */
  checked?: FlagChecks;
}

/** A run folder that cannot be shown, and the sentence that says why (newer schema, damaged run.json …). */
export interface UnreadableRun {
  dir: string;
  id: string;
  message: string;
}

export interface RunListing {
  /** Newest first. */
  runs: RunRecord[];
  unreadable: UnreadableRun[];
}

/** The folder of all runs of a pipeline. */
export function runsFolder(root: string): string {
  return join(root, ".seesaw", "runs");
}

/** Name of an attempt's folder in its run folder, from 1: `attempt-0001`. */
export function attemptName(attempt: number): string {
  return `attempt-${String(attempt).padStart(4, "0")}`;
}

/** What the rest of the code may ask about runs. The run folders are the truth; any index behind this is a cache. */
export interface RunStore {
  list(root: string): Promise<RunListing>;
  /** Calls back whenever something in a run folder of `root` changed; returns the stop function. */
  watch(root: string, onChange: () => void): () => void;
  dispose(): void;
}
