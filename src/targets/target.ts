import type { AttemptProbe, AttemptSpec } from "../protocol/attempt.ts";

/** A piece of a file, and the file's whole size at that moment. */
export interface FilePiece {
  bytes: Uint8Array;
  size: number;
}

/**
 * Where runs execute. Every kind speaks to the same `agent.py`; they differ in how its verbs get there.
 * A resumed run is `launch` with the next attempt folder: the agent fences the one before.
 * All paths are paths on the target.
 */
export interface Target {
  readonly kind: string;
  /**
   * Writes `spec` as `attemptDir/spec.json`, starts the agent detached and resolves once it answered. Launching the same
   * attempt twice is harmless: the second is told what the first became. AppError("spawn-failed" | "agent-failed").
   */
  launch(attemptDir: string, spec: AttemptSpec): Promise<AttemptProbe>;
  probe(attemptDir: string): Promise<AttemptProbe>;
  /** Asks the attempt to stop; its end shows in later probes. */
  cancel(attemptDir: string): Promise<AttemptProbe>;
  /** Closes the books of an attempt whose agent is gone; changes nothing while it lives. */
  reap(attemptDir: string): Promise<AttemptProbe>;
  /** Bytes of `file` (relative to the attempt folder) from `offset`; a missing file is empty. */
  read(attemptDir: string, file: string, offset: number, max?: number): Promise<FilePiece>;
}
