import { t } from "../../util/l10n.ts";
import { confirmationText, type Confirmation } from "./confirmation.ts";

/**
 * What a person had checked on further prompts, from the editor or the command line: `checked/<skill>.json` of the run folder,
 * the newest check of the skill. The run's own journal and flags stay as the run decided them.
 */
export interface CheckedFlag {
  v: 1;
  skill: string;
  /** The checkpoint that was asked, next to the one that the stage started from. */
  step: number;
  /** Seconds since 1970. */
  t: number;
  /** The file of prompts, as it was named. */
  prompts: string;
  found: Confirmation;
}

/** A check that is there and cannot be shown, and the sentence that says why. */
export interface UnreadableCheck {
  problem: string;
}

/** By skill. */
export type FlagChecks = ReadonlyMap<string, CheckedFlag | UnreadableCheck>;

interface CheckedRun {
  stage: string;
  checked?: FlagChecks;
}

/** Reads such a file. Never throws: one that is damaged, or of a later Seesaw, is a sentence about `name`. */
export function parseCheckedFlag(text: string, name: string): CheckedFlag | UnreadableCheck {
  const value = objectOf(parse(text));
  const version = value?.["v"];
  if (typeof version === "number" && version >= 2) return { problem: t("{0} has format {1}; this Seesaw reads format 1. Update Seesaw to see the check.", name, version) };
  const found = objectOf(value?.["found"]);
  const [interval, left] = [objectOf(found?.["interval"]), objectOf(found?.["left_out"])];
  const numbers = [value?.["step"], value?.["t"], ...["n", "lost", "gained", "before", "now", "p"].map((key) => found?.[key]), interval?.["low"], interval?.["high"], ...["unusable", "trained", "more"].map((key) => left?.[key])];
  const whole = version === 1 && [value?.["skill"], value?.["prompts"]].every((one) => typeof one === "string") && typeof found?.["confirmed"] === "boolean" && numbers.every((one) => typeof one === "number" && Number.isFinite(one));
  return whole ? (value as unknown as CheckedFlag) : { problem: t("{0} is damaged, so what was checked is not known. Confirm the flag once more, which replaces it.", name) };
}

/** What is known of the skill's newest check, as a sentence or two; null where there was none. */
export function checkedText({ stage, checked }: CheckedRun, skill: string): string | null {
  const check = checked?.get(skill);
  if (check === undefined) return null;
  return "problem" in check ? check.problem : confirmationText({ stage, skill, step: check.step }, check.found);
}

/** The newest check that can be read. */
export function readableCheck({ checked }: CheckedRun, skill: string): CheckedFlag | null {
  const check = checked?.get(skill);
  return check === undefined || "problem" in check ? null : check;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}

function objectOf(value: unknown): Record<string, unknown> | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
}
