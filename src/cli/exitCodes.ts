import type { ErrorReason } from "../util/errors.ts";

/** What the exit code of every command means. */
export const exitCodes = {
  ok: 0,
  /** A run ended otherwise than done (or a flag asked for with --fail-on was raised), the gate is not passed, or a defect of ours. */
  failed: 1,
  /** Wrong usage, a faulty seesaw.yaml or faulty data. */
  usage: 2,
  notFound: 3,
  alreadyRunning: 4,
  /** Python, packages, disk or system: the environment cannot do it. */
  environment: 5,
  /** A file written by another version, damaged, or not comparable. */
  unreadable: 6,
  interrupted: 130,
} as const;

export const exitCodeHelp = `Exit codes:
  0  fine                                 4  the stage is already running
  1  a run failed, --fail-on, or gate     5  Python, packages, disk or system
  2  wrong usage, seesaw.yaml or data     6  a file is damaged, too new or not comparable
  3  no such stage, run, prompt or file   130  interrupted; the run itself goes on`;

const byReason: Record<ErrorReason, number> = {
  usage: exitCodes.usage,
  "bad-pipeline": exitCodes.usage,
  "bad-input": exitCodes.usage,
  "not-found": exitCodes.notFound,
  "not-finished": exitCodes.notFound,
  "already-running": exitCodes.alreadyRunning,
  "newer-schema": exitCodes.unreadable,
  "run-unreadable": exitCodes.unreadable,
  "trace-unreadable": exitCodes.unreadable,
  "not-comparable": exitCodes.unreadable,
  "sqlite-missing": exitCodes.environment,
  "index-unusable": exitCodes.environment,
  "no-python": exitCodes.environment,
  "python-packages": exitCodes.environment,
  untrusted: exitCodes.environment,
  "spawn-failed": exitCodes.environment,
  "agent-failed": exitCodes.environment,
  "disk-full": exitCodes.environment,
  "not-writable": exitCodes.environment,
  unreachable: exitCodes.environment,
  cancelled: exitCodes.interrupted,
  internal: exitCodes.failed,
};

export function exitCodeOf(reason: ErrorReason): number {
  return byReason[reason];
}
