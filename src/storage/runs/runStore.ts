import type { RunState } from "../../domain/run/runState.ts";
import type { RunSpec } from "../../protocol/runSpec.ts";

/** One run folder as read from disk. */
export interface RunRecord {
  dir: string;
  id: string;
  stage: string;
  spec: RunSpec;
  state: RunState;
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

/** What the rest of the code may ask about runs. The run folders are the truth; any index behind this is a cache. */
export interface RunStore {
  list(root: string): Promise<RunListing>;
  /** Calls back whenever something in a run folder of `root` changed; returns the stop function. */
  watch(root: string, onChange: () => void): () => void;
  dispose(): void;
}
