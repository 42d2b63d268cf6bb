import { canonicalText } from "./canonical.ts";
import { parseJson, type JsonValue } from "./jsonText.ts";
import { textPart, toTurns } from "./turns.ts";

/** What a message's content is: null, absent and "" are three different things, and shown as such. */
export type ContentState = "text" | "empty" | "null" | "absent" | "parts" | "other";

/** A part of a content: text, or a placeholder for an image or another thing that is not text. */
export type ContentPart = { kind: "text"; text: string } | { kind: "other"; type: string };

/** The state of a message's content. */
export function contentState(message: JsonValue): ContentState {
  if (!(message instanceof Map) || !message.has("content")) return "absent";
  const content = message.get("content") ?? null;
  if (content === null) return "null";
  if (typeof content === "string") return content === "" ? "empty" : "text";
  return Array.isArray(content) ? "parts" : "other";
}

/** The parts of a content, in order; a plain string is one text part. */
export function contentParts(content: JsonValue): ContentPart[] {
  if (content === null) return [];
  if (!Array.isArray(content)) return [{ kind: "text", text: typeof content === "string" ? content : canonicalText(content) }];
  return content.map((part) => {
    const text = typeof part === "string" ? part : textPart(part);
    if (text !== undefined) return { kind: "text", text };
    const type = part instanceof Map ? part.get("type") : undefined;
    return { kind: "other", type: typeof type === "string" ? type : "part" };
  });
}

/** The text with every unpaired surrogate replaced by U+FFFD, as it is scored (`printable` in Python). */
export function printable(text: string): string {
  return text.replace(/\p{Surrogate}/gu, "\ufffd");
}

/** A value that is JSON text inside a string (slime's metadata) parsed; any other value unchanged. */
export function unwrapJsonText(value: JsonValue): JsonValue {
  if (typeof value !== "string" || !/^\s*[[{]/.test(value)) return value;
  const result = parseJson(value);
  return result.ok ? result.value : value;
}

const signs: ReadonlyMap<string, string> = new Map([["\n", "↵"], ["\t", "⇥"], ["\r", "␍"], ["\u007f", "␡"]]);

/** Makes what cannot be seen visible: ↵ ⇥ ␍, control pictures, and ⟨U+200B⟩ for blanks, joiners, marks of direction and lone surrogates. */
export function showInvisible(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Surrogate}]|(?! )\p{Zs}/gu, (character) => {
    const sign = signs.get(character);
    if (sign !== undefined) return sign;
    const point = character.codePointAt(0) ?? 0;
    if (point < 32) return String.fromCodePoint(0x2400 + point);
    return `⟨U+${point.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

/** One line that shows what a row is about: `user: … → assistant: …`, at most about `limit` characters. */
export function rowPreview(row: JsonValue, limit = 160): string {
  const turns = toTurns(row);
  if (turns.length === 0) return shorten(canonicalText(row), limit);
  const share = Math.max(24, Math.floor(limit / turns.length) - 14);
  const pieces = turns.map(({ role, text, toolCalls }) => {
    const body = typeof text === "string" ? text || (toolCalls === null ? "(no text)" : "") : canonicalText(text);
    const calls = toolCalls === null ? "" : ` [${Array.isArray(toolCalls) ? toolCalls.length : 1} tool call${Array.isArray(toolCalls) && toolCalls.length !== 1 ? "s" : ""}]`;
    return `${role || "?"}: ${shorten(body, share)}${calls}`;
  });
  return pieces.length <= 6 ? pieces.join(" → ") : [...pieces.slice(0, 3), `… ${pieces.length - 5} turns …`, ...pieces.slice(-2)].join(" → ");
}

function shorten(text: string, limit: number): string {
  // Cut before the signs are put in, and never inside a character.
  const characters = Array.from(text.slice(0, limit * 2));
  return showInvisible(characters.slice(0, limit).join("")) + (characters.length > limit || text.length > limit * 2 ? "…" : "");
}
