import type { JsonValue } from "./jsonText.ts";

/** The formats a row can have, in the order in which they are looked for; the position is the code used in the index. */
export const rowFormats = ["messages", "prompt-completion", "preference", "sharegpt", "alpaca", "slime", "text", "unknown", "not-an-object"] as const;

export type RowFormat = (typeof rowFormats)[number];

export interface RowFormatOptions {
  /** Key of the prompt in slime rows (slime's `--input-key`); default `prompt`. */
  promptKey?: string;
}

/** Which format a row has. Decided for each row on its own: a file may mix them. */
export function rowFormat(row: JsonValue, options: RowFormatOptions = {}): RowFormat {
  if (!(row instanceof Map)) return "not-an-object";
  if (Array.isArray(row.get("messages"))) return "messages";
  if (row.has("prompt") && row.has("completion")) return "prompt-completion";
  if (row.has("chosen") && row.has("rejected")) return "preference";
  if (Array.isArray(row.get("conversations"))) return "sharegpt";
  if (typeof row.get("instruction") === "string") return "alpaca";
  const prompt = row.get(options.promptKey ?? "prompt");
  if (typeof prompt === "string" || Array.isArray(prompt)) return "slime";
  return typeof row.get("text") === "string" ? "text" : "unknown";
}
