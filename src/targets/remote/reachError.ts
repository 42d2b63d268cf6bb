import type { ReachReason } from "../../protocol/remote.ts";
import { AppError } from "../../util/errors.ts";

/** A target that cannot be reached or used now. `reach` decides what the surfaces offer; the message names the thing and the fix. */
export class ReachError extends AppError {
  readonly reach: ReachReason;

  constructor(reach: ReachReason, message: string, options?: { cause?: unknown }) {
    super("unreachable", message, options);
    this.reach = reach;
  }
}

/** The reason of a failed reach, or null for any other error. */
export function reachOf(error: unknown): ReachReason | null {
  return error instanceof ReachError ? error.reach : null;
}
