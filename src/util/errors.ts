/** Every reason an error of ours can have. The reason decides what the surfaces do; the message is for the person. */
export type ErrorReason =
  | "usage"
  | "bad-pipeline"
  | "bad-input"
  | "not-found"
  | "already-running"
  | "not-finished"
  | "newer-schema"
  | "run-unreadable"
  | "trace-unreadable"
  | "not-comparable"
  | "sqlite-missing"
  | "index-unusable"
  | "no-python"
  | "python-packages"
  | "untrusted"
  | "spawn-failed"
  | "agent-failed"
  | "disk-full"
  | "not-writable"
  | "unreachable"
  | "cancelled"
  | "internal";

/** An error whose message is a sentence for the person: it names the thing and the fix. */
export class AppError extends Error {
  override readonly name = "AppError";
  readonly reason: ErrorReason;

  constructor(reason: ErrorReason, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.reason = reason;
  }

  /** True for an AppError, of the given reason if one is given. */
  static is(error: unknown, reason?: ErrorReason): error is AppError {
    return error instanceof AppError && (reason === undefined || error.reason === reason);
  }
}

/** The sentence to show for anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
