import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { AppError, messageOf } from "../util/errors.ts";

export type JsonRecord = Record<string, unknown>;

/** A JSON object from a file of a checkpoint; null when it is not there. AppError("bad-input") when it is no object. */
export async function readJsonFile(folder: string, name: string): Promise<JsonRecord | null> {
  let text: string;
  try {
    text = await readFile(join(folder, name), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw new AppError("bad-input", `${join(folder, name)} cannot be read: ${messageOf(error)}.`, { cause: error });
  }
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as JsonRecord;
  } catch {
    // The sentence below says it.
  }
  throw new AppError("bad-input", `${join(folder, name)} is no JSON object. It may still be being written.`);
}
