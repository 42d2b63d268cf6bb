import type { EventType, FinishReason, JournalEvent, UnknownEvent } from "../../protocol/journal.ts";
import type { RunState, RunStatus } from "./runState.ts";
import { decodeNumber } from "../../protocol/numbers.ts";
import { isKnownEvent } from "./journalLine.ts";
import { addFlag, addMetric, put, rewind, samePoint, warnNonFinite } from "./runLists.ts";

/** The state of a run of which nothing is known yet. */
export function emptyRunState(): RunState {
  return {
    status: "starting",
    attempt: 0,
    lastSeq: 0,
    startedAt: null,
    endedAt: null,
    attemptStartedAt: null,
    earlierSeconds: 0,
    lastAt: null,
    phase: null,
    step: 0,
    total: 0,
    loss: null,
    tokensPerSecond: null,
    etaSeconds: null,
    device: null,
    metrics: [],
    replacedMetrics: [],
    resumes: [],
    checkpoints: [],
    probes: [],
    evals: [],
    flags: [],
    flagHistory: [],
    warnings: [],
    reason: null,
    remote: null,
    benchmarks: [],
    probeShare: null,
    cost: null,
    started: null,
    ledger: [],
    badLines: 0,
    unknownEvents: 0,
    missingSeqs: [],
  };
}

/** The state after one more event. Pure; for many events `reduceEvents` copies only once. */
export function reduceEvent(state: RunState, event: JournalEvent | UnknownEvent): RunState {
  return reduceEvents(state, [event]);
}

/** The state after some more events. `state` itself is not changed. */
export function reduceEvents(state: RunState, events: Iterable<JournalEvent | UnknownEvent>): RunState {
  const next = copyState(state);
  for (const event of events) apply(next, event);
  return next;
}

/** Lists are replaced or appended to, their items never changed: a copy one level deep is enough. */
function copyState(state: RunState): RunState {
  const copy: Record<string, unknown> = { ...state };
  for (const [key, value] of Object.entries(copy)) if (Array.isArray(value)) copy[key] = [...(value as unknown[])];
  return copy as unknown as RunState;
}

/**
 * `seq` orders and identifies events. A repeated one is ignored; one that comes late fills its hole but does not
 * move the present (phase, step, loss) back; one of an attempt that has been replaced is ignored.
 */
function apply(state: RunState, event: JournalEvent | UnknownEvent): void {
  if (event.attempt < state.attempt) return;
  if (event.attempt > state.attempt) beginAttempt(state, event.attempt, event.seq);
  else if (event.seq <= state.lastSeq) {
    const hole = state.missingSeqs.indexOf(event.seq);
    if (hole < 0) return;
    state.missingSeqs.splice(hole, 1);
    if (isKnownEvent(event)) applyKnown(state, event, true);
    else state.unknownEvents += 1;
    return;
  }
  for (let seq = state.lastSeq + 1; seq < event.seq && state.missingSeqs.length < maxHoles; seq += 1) state.missingSeqs.push(seq);
  state.lastSeq = Math.max(state.lastSeq, event.seq);
  state.lastAt = event.t;
  if (isKnownEvent(event)) applyKnown(state, event, false);
  else state.unknownEvents += 1;
}

const maxHoles = 1000;

/** A new attempt owns the run from its first event on, whatever `seq` a fenced older writer may have reached. */
function beginAttempt(state: RunState, attempt: number, seq: number): void {
  state.attempt = attempt;
  if (state.attemptStartedAt !== null) state.earlierSeconds += Math.max(0, (state.endedAt ?? state.lastAt ?? state.attemptStartedAt) - state.attemptStartedAt);
  state.attemptStartedAt = null;
  if (seq <= state.lastSeq) state.lastSeq = seq - 1;
  state.missingSeqs = state.missingSeqs.filter((missing) => missing < seq);
  state.status = "running";
  state.reason = null;
  state.endedAt = null;
  state.etaSeconds = null;
  state.tokensPerSecond = null;
}

type Handlers = { [K in EventType]: (state: RunState, event: Extract<JournalEvent, { type: K }>, late: boolean) => void };

function applyKnown(state: RunState, event: JournalEvent, late: boolean): void {
  (handlers[event.type] as (state: RunState, event: JournalEvent, late: boolean) => void)(state, event, late);
}

const handlers: Handlers = {
  "run.started"(state, event) {
    const { v: _v, seq: _seq, t, attempt, type: _type, ...started } = event;
    state.started = started;
    state.startedAt ??= t;
    state.attemptStartedAt ??= t;
    state.device = started.device;
    state.total = started.total_steps;
    state.step = started.resumed_from ?? 0;
    if (attempt > 1) rewind(state, attempt, started.resumed_from);
    if (state.reason === null) state.status = "running";
  },
  "stage.progress"(state, event, late) {
    if (late) return;
    state.phase = event.phase;
    // Before the model is loaded the number of steps is not known: what an earlier attempt reached still stands.
    if (event.total > 0) [state.step, state.total] = [event.step, event.total];
    state.tokensPerSecond = decodeNumber(event.tokens_per_s) ?? state.tokensPerSecond;
    state.etaSeconds = decodeNumber(event.eta_s) ?? null;
  },
  metric(state, event, late) {
    const values: Record<string, number> = {};
    for (const [key, value] of Object.entries(event.values)) {
      const number = decodeNumber(value);
      if (number !== undefined) values[key] = number;
    }
    addMetric(state, { step: event.step, attempt: event.attempt, values });
    warnNonFinite(state, event.step, values);
    if (late) return;
    if (values["loss"] !== undefined) state.loss = values["loss"];
    state.step = Math.max(state.step, event.step);
  },
  "checkpoint.saved"(state, event) {
    const { step, path, kind, final, weights_hash: weightsHash, bytes } = event;
    put(state.checkpoints, { step, path, kind, final, weightsHash, bytes }, (other) => other.step === step);
  },
  "probe.scored"(state, event) {
    const { step, skill, split, trace, summary } = event;
    put(state.probes, { step, skill, split, trace, summary }, (other) => samePoint(other, event));
  },
  "eval.result"(state, event) {
    const { step, skill, split, n, correct } = event;
    put(state.evals, { step, skill, split, n, correct }, (other) => samePoint(other, event));
  },
  "benchmark.result"(state, event) {
    const { v: _v, seq: _seq, t: _t, attempt: _attempt, type: _type, ...body } = event;
    put(state.benchmarks, body, (other) => other.step === body.step && other.task === body.task && other.metric === body.metric && other.filter === body.filter);
  },
  "probe.cost"(state, event) {
    state.probeShare = event.share;
  },
  "ledger.drawn"(state, event) {
    const { step, buffer, rows, distinct } = event;
    put(state.ledger, { step, buffer, rows, distinct }, (other) => other.step === step && other.buffer === buffer);
  },
  "cost.measured"(state, event) {
    const { step, memory, train_s, probe_s, tokens } = event;
    state.cost = { step, memory, train_s, probe_s, tokens };
  },
  "flag.raised": noteFlag,
  "flag.changed": noteFlag,
  warning(state, event) {
    const { code, message, severity, fix, where } = event;
    const known = state.warnings.some((other) => other.code === code && other.message === message && other.where === where);
    if (!known) state.warnings.push({ code, severity, message, ...(fix !== undefined && { fix }), ...(where !== undefined && { where }) });
  },
  "run.finished"(state, event) {
    finish(state, event.reason, event.t);
  },
};

function noteFlag(state: RunState, event: Extract<JournalEvent, { type: "flag.raised" | "flag.changed" }>): void {
  const { v: _v, type: _type, ...flag } = event;
  addFlag(state, flag);
}

/** Sets the end of the newest attempt. */
export function finish(state: RunState, reason: FinishReason, at: number | null): void {
  state.reason = reason;
  state.status = statusOfReason(reason);
  state.endedAt = at;
  state.etaSeconds = null;
}

/** Seconds that all attempts took together, without the time between them; null before the first one started. `now` in seconds. */
export function runSeconds(state: Pick<RunState, "startedAt" | "endedAt" | "attemptStartedAt" | "earlierSeconds" | "lastAt" | "reason">, now: number): number | null {
  if (state.startedAt === null) return null;
  const { attemptStartedAt: from } = state;
  if (from === null) return state.earlierSeconds;
  const to = state.endedAt ?? (state.reason === null ? now : (state.lastAt ?? from));
  return state.earlierSeconds + Math.max(0, to - from);
}

/** The status that an end of this kind gives. */
export function statusOfReason(reason: FinishReason): RunStatus {
  if (reason.kind === "scheduler") return schedulerStatuses[reason.end];
  if (reason.kind !== "failed") return reason.kind;
  return reason.code === "cancelled" || reason.code === "out-of-memory" ? reason.code : "failed";
}

/** A scheduler can tell what it did to a job and whether its machine died; never that a training is done. */
const schedulerStatuses: Record<Extract<FinishReason, { kind: "scheduler" }>["end"], RunStatus> = {
  exited: "unknown",
  failed: "failed",
  cancelled: "cancelled",
  "time-limit": "killed",
  preempted: "killed",
  "node-failure": "lost",
  "out-of-memory": "out-of-memory",
  unknown: "unknown",
};
