import type { RunSpec } from "../../protocol/runSpec.ts";
import { schemaVersion } from "../../protocol/runSpec.ts";
import { AppError } from "../../util/errors.ts";

/** The fields without which a run cannot be shown, and their types. */
const neededFields: readonly (readonly [keyof RunSpec, "string" | "number" | "object" | "array"])[] = [
  ["id", "string"],
  ["stage", "string"],
  ["index", "number"],
  ["recipe", "string"],
  ["pipeline", "object"],
  ["created", "number"],
  ["start", "object"],
  ["skills", "array"],
  ["probe", "object"],
  ["flags", "object"],
  ["target", "object"],
];

/** Reads a run.json. Throws AppError("newer-schema" | "run-unreadable") with a sentence that says what to do. */
export function parseRunSpec(text: string): RunSpec {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new AppError("run-unreadable", "Its run.json is no JSON (half written or damaged). Restore the file, or delete the run folder.");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new AppError("run-unreadable", "Its run.json holds no object. Restore the file, or delete the run folder.");
  const spec = value as Record<string, unknown>;
  checkSchema(spec["schema"], "run.json");
  for (const [name, type] of neededFields) {
    const field = spec[name];
    const found = Array.isArray(field) ? "array" : typeof field;
    if (found !== type || field === null) throw new AppError("run-unreadable", `Its run.json has no "${name}". Restore the file, or delete the run folder.`);
  }
  return value as RunSpec;
}

/** Accepts any minor version of the major version we know. Throws AppError("newer-schema" | "run-unreadable"). */
export function checkSchema(schema: unknown, what: string): void {
  const known = Number(schemaVersion.split(".")[0]);
  const match = /^(\d+)(\.\d+)*$/.exec(String(schema));
  if (match === null) throw new AppError("run-unreadable", `Its ${what} does not say its format ("schema"). It was not written by Seesaw, or is damaged.`);
  if (Number(match[1]) > known) throw new AppError("newer-schema", `Its ${what} has format ${String(schema)}; this Seesaw reads format ${schemaVersion}. Update Seesaw to see it.`);
}
