import type { AttemptProbe } from "../../protocol/attempt.ts";
import type { FailureCode, FinishReason } from "../../protocol/journal.ts";
import type { RunState } from "./runState.ts";
import { finish } from "./reduceRun.ts";

/** What else is known of the newest attempt when its probe is merged into the state. */
export interface AttemptFacts {
  /** Number of the probed attempt; default: the one the journal is at. */
  attempt?: number;
  /** The attempt's `cancel` file is there. */
  cancelRequested?: boolean;
  /** Seconds since the attempt (or, without one, the run) was written. */
  age?: number;
  /** Seconds since the heartbeat changed, on the reader's clock; used where the processes cannot be seen. */
  beatAge?: number | null;
}

/** How long an attempt may take from its folder to its first sign of life, in seconds. */
const startPatience = 120;
/** A heartbeat older than this says nothing any more, in seconds. */
const beatPatience = 30;

/**
 * The state with what the attempt folder says merged in: the journal knows what happened, the probe knows whether it
 * still happens. `probe` null: the processes cannot be seen from here (another host), so nothing is called lost.
 */
export function statusFromAttempt(state: RunState, probe: AttemptProbe | null, facts: AttemptFacts = {}): RunState {
  const attempt = facts.attempt ?? state.attempt;
  if (state.reason !== null && attempt <= state.attempt) return state;
  const next: RunState = { ...state };
  if (attempt > state.attempt) Object.assign(next, { attempt, status: "starting", reason: null, endedAt: null, etaSeconds: null });
  const alive = next.status === "starting" ? "starting" : "running";
  if (probe === null) {
    const fresh = facts.beatAge !== undefined && facts.beatAge !== null && facts.beatAge <= beatPatience;
    next.status = fresh || withinPatience(facts, next) ? alive : "unknown";
    return next;
  }
  switch (probe.state) {
    case "absent":
    case "claimed":
      if (next.lastSeq > 0 && attempt === state.attempt) next.status = "unknown"; // events, but no word of who wrote them
      else if (withinPatience(facts, next)) next.status = "starting";
      else finish(next, { kind: "lost", message: "The run was written but never started: its agent did not answer. Start it again." }, null);
      return next;
    case "running":
      next.status = facts.cancelRequested === true ? "stopping" : alive;
      return next;
    case "orphan":
      next.status = facts.cancelRequested === true ? "stopping" : "orphan";
      return next;
    case "exited":
      finish(next, reasonFromExit(probe.exit ?? {}), numberOr(probe.exit?.["t"], null));
      return next;
    case "lost:no-exit-file":
      finish(next, { kind: "lost", message: "The agent and the training are both gone and left no word of their end. Resume from the last checkpoint." }, null);
      return next;
    case "lost:reboot-or-other-host":
      finish(next, { kind: "lost", message: `The machine was restarted while the run was going${hostOf(probe)}. Resume from the last checkpoint.` }, null);
      return next;
  }
}

function withinPatience(facts: AttemptFacts, state: RunState): boolean {
  return state.status === "starting" && (facts.age ?? 0) <= startPatience;
}

function hostOf(probe: AttemptProbe): string {
  return probe.started === null ? "" : ` (${probe.started.host})`;
}

/**
 * The end that an exit.json tells. The agent writes it ready-made as `finished`; without that, a signal stays a
 * signal and an exit code never becomes "done" unless it is 0.
 */
export function reasonFromExit(exit: Record<string, unknown>): FinishReason {
  const finished = exit["finished"];
  if (isObject(finished) && typeof finished["kind"] === "string") return finished as FinishReason;
  const outcome = isObject(exit["outcome"]) ? exit["outcome"] : {};
  const { code, signal, reason } = exit;
  if (typeof reason === "string" && /^(cancel|fenced)/.test(reason)) return { kind: "cancelled" };
  if (typeof outcome["code"] === "string" && outcome["code"] !== "done") {
    const where = typeof outcome["where"] === "string" ? { where: outcome["where"] } : {};
    return { kind: "failed", code: outcome["code"] as FailureCode, message: String(outcome["message"] ?? ""), ...where };
  }
  if (typeof signal === "string") return { kind: "killed", signal };
  if (code === 0) return { kind: "done" };
  if (typeof code === "number") return { kind: "failed", code: "exception", message: `The training ended with exit code ${code} and did not say why: see the end of out.log.`, exit_code: code };
  return { kind: "unknown", message: "The training has ended, but no exit code was kept." };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function numberOr<T>(value: unknown, otherwise: T): number | T {
  return typeof value === "number" ? value : otherwise;
}
