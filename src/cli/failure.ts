import { CommanderError } from "commander";
import { diskError, isQuota, systemWords } from "../targets/local.ts";
import { AppError, messageOf, type ErrorReason } from "../util/errors.ts";

/** An error as it is told: never a stack, unless the person asked to hear more. */
export interface Failure {
  reason: ErrorReason;
  message: string;
  /** Where a defect of ours happened. */
  stack: string | null;
}

export function failureOf(error: unknown): Failure {
  if (error instanceof CommanderError) return { reason: "usage", message: error.message.replace(/^error: /, ""), stack: null };
  if (AppError.is(error)) return { reason: error.reason, message: error.message, stack: null };
  if (isSystemError(error)) {
    const path = error.path ?? "A file";
    const written = /^(open|mkdir|rename|write|unlink|rm|rmdir|copyfile)$/.test(error.syscall ?? "") && (/^(ENOSPC|EROFS)$/.test(error.code ?? "") || isQuota(error));
    if (written) return failureOf(diskError(path, error));
    const what = error.code === "ENOENT" ? "it does not exist" : systemWords(error);
    return { reason: "not-writable", message: `${path} could not be read or written: ${what}.`, stack: error.stack ?? null };
  }
  const message = `Seesaw failed: ${messageOf(error)}. This is a defect of ours: \`--verbose\` shows where it happened, please report it.`;
  return { reason: "internal", message, stack: error instanceof Error ? (error.stack ?? null) : null };
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && "syscall" in error && "code" in error && typeof error.code === "string";
}
