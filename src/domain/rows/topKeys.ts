import { rowFormats, type RowFormat } from "./rowFormat.ts";

/** The top-level keys that decide the format of a row. */
export const topKeys = ["messages", "prompt", "completion", "chosen", "rejected", "conversations", "instruction", "text"] as const;

const keyBytes = topKeys.map((key) => new TextEncoder().encode(key));

/** Which of `topKeys` the bytes spell, or -1. */
export function topKeyIndex(bytes: Uint8Array, start: number, end: number): number {
  for (let k = 0; k < keyBytes.length; k++) {
    const key = keyBytes[k] as Uint8Array;
    if (key.length !== end - start || key[0] !== bytes[start]) continue;
    let i = 1;
    while (i < key.length && key[i] === bytes[start + i]) i++;
    if (i === key.length) return k;
  }
  return -1;
}

/** Code (position in `rowFormats`) of a row, from the kinds of its top-level keys; the same rule as `rowFormat`. */
export function formatCode(firstByte: number, keys: number): number {
  return rowFormats.indexOf(firstByte === 123 ? formatOfKeys(keys) : "not-an-object");
}

function formatOfKeys(keys: number): RowFormat {
  const kind = (key: (typeof topKeys)[number]): number => (keys >> (2 * topKeys.indexOf(key))) & 3;
  const prompt = kind("prompt");
  if (kind("messages") === 3) return "messages";
  if (prompt > 0 && kind("completion") > 0) return "prompt-completion";
  if (kind("chosen") > 0 && kind("rejected") > 0) return "preference";
  if (kind("conversations") === 3) return "sharegpt";
  if (kind("instruction") === 2) return "alpaca";
  if (prompt > 1) return "slime";
  return kind("text") === 2 ? "text" : "unknown";
}
