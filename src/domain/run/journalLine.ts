import type { EventType, JournalEvent, UnknownEvent } from "../../protocol/journal.ts";
import { eventTypes } from "../../protocol/journal.ts";
import { AppError } from "../../util/errors.ts";

/** What one line of a journal is. `bad` lines (torn, damaged) are counted and skipped. */
export type JournalLine =
  | { kind: "event"; event: JournalEvent }
  | { kind: "unknown"; event: UnknownEvent }
  | { kind: "bad"; problem: string };

type FieldType = "number" | "string" | "object" | "boolean";

/** The fields without which an event cannot be understood; all others may be missing or new. */
const neededFields: Record<EventType, Record<string, FieldType>> = {
  "run.started": { stage: "string", device: "string", total_steps: "number" },
  "stage.progress": { phase: "string", step: "number", total: "number" },
  metric: { step: "number", values: "object" },
  "checkpoint.saved": { step: "number", path: "string", kind: "string", final: "boolean" },
  "probe.scored": { step: "number", skill: "string", split: "string", trace: "string", summary: "object" },
  "eval.result": { step: "number", skill: "string", split: "string", n: "number", correct: "number" },
  "benchmark.result": { step: "number", task: "string", metric: "string", filter: "string", n: "number", samples: "string" },
  "probe.cost": { share: "number" },
  "ledger.drawn": { step: "number", buffer: "string", rows: "number" },
  "cost.measured": { step: "number", memory: "object", train_s: "number", tokens: "number" },
  "flag.raised": { id: "string", skill: "string", split: "string", step: "number", state: "string" },
  "flag.changed": { id: "string", skill: "string", split: "string", step: "number", state: "string" },
  warning: { code: "string", message: "string", severity: "string" },
  "run.finished": { reason: "object" },
};

const knownTypes: ReadonlySet<string> = new Set(eventTypes);
const readableMajor = 1;

/** True for an event of a type this version knows. */
export function isKnownEvent(event: JournalEvent | UnknownEvent): event is JournalEvent {
  return knownTypes.has(event.type);
}

/**
 * Reads one line (without its line end). Torn or damaged lines and unknown types are answers, not errors.
 * Throws AppError("newer-schema") for a journal of a newer major version.
 */
export function parseJournalLine(text: string): JournalLine {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: "bad", problem: "The line is no complete JSON value." };
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return { kind: "bad", problem: "The line is no JSON object." };
  const fields = value as Record<string, unknown>;
  const major = Math.floor(Number(fields["v"]));
  if (major > readableMajor) {
    throw new AppError("newer-schema", `The journal has format ${String(fields["v"])}; this Seesaw reads format ${readableMajor}. Update Seesaw to see this run.`);
  }
  const { seq, t, attempt, type } = fields;
  if (major !== readableMajor || typeof t !== "number" || typeof type !== "string" || !isCount(seq) || !isCount(attempt)) {
    return { kind: "bad", problem: "The line has no head: v, seq, t, attempt and type." };
  }
  if (!knownTypes.has(type)) return { kind: "unknown", event: fields as unknown as UnknownEvent };
  for (const [name, expected] of Object.entries(neededFields[type as EventType])) {
    const field = fields[name];
    if (typeof field !== expected || field === null) return { kind: "bad", problem: `The ${type} event has no ${name}.` };
  }
  return { kind: "event", event: fields as unknown as JournalEvent };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 1;
}
