import { JsonNumber, type JsonObject, type JsonValue } from "./jsonText.ts";
import { rowFormat, type RowFormatOptions } from "./rowFormat.ts";

/** One turn as rows are compared by it. `text` is a string unless the row holds another JSON value there (a label 42). */
export interface Turn {
  role: string;
  text: JsonValue;
  toolCalls: JsonValue;
}

/** Turns before the answer, and the answer: the last assistant turn. Turns after it belong to neither. */
export interface SplitRow {
  prompt: Turn[];
  answer: Turn | null;
}

const shareGptRoles: ReadonlyMap<string, string> = new Map([["human", "user"], ["user", "user"], ["gpt", "assistant"], ["assistant", "assistant"]]);

/** All turns of a row in any format, texts with CRLF → LF and trimmed (`row_shapes.py` does the same). */
export function toTurns(row: JsonValue, options?: RowFormatOptions): Turn[] {
  const [head, tail] = messageParts(row, options);
  return [...head, ...tail].map(toTurn);
}

/** The prompt and the answer of a row in any format. */
export function splitTurns(row: JsonValue, options?: RowFormatOptions): SplitRow {
  const [head, tail] = messageParts(row, options);
  const headTurns = head.map(toTurn);
  const tailTurns = tail.map(toTurn);
  for (let i = tailTurns.length - 1; i >= 0; i--) {
    const turn = tailTurns[i];
    if (turn?.role === "assistant") return { prompt: [...headTurns, ...tailTurns.slice(0, i)], answer: turn };
  }
  return { prompt: [...headTurns, ...tailTurns], answer: null };
}

/** A row's messages as two lists; only the second can hold the answer. Not-an-object and unknown rows have none. */
export function messageParts(row: JsonValue, options?: RowFormatOptions): [JsonValue[], JsonValue[]] {
  if (!(row instanceof Map)) return [[], []];
  switch (rowFormat(row, options)) {
    case "messages":
      return [[], asList(row.get("messages"))];
    case "sharegpt":
      return [[], asList(row.get("conversations")).map(fromShareGpt)];
    case "prompt-completion":
      return [asMessages(row.get("prompt"), "user"), asMessages(row.get("completion"), "assistant")];
    case "preference":
      return preferenceParts(row.get("prompt"), row.get("chosen"));
    case "alpaca":
      return [asMessages(alpacaPrompt(row), "user"), asMessages(row.get("output"), "assistant")];
    case "slime":
      return [asMessages(row.get(options?.promptKey ?? "prompt"), "user"), asLabel(row.get("label"))];
    case "text":
      return [[], asMessages(row.get("text"), "assistant")];
    default:
      return [[], []];
  }
}

/** Prompt and chosen (or rejected) messages; a prompt that the answer repeats in front is not doubled. */
export function preferenceParts(prompt: JsonValue | undefined, answer: JsonValue | undefined): [JsonValue[], JsonValue[]] {
  const head = asMessages(prompt, "user");
  const tail = asMessages(answer, "assistant");
  const repeated = head.length > 0 && head.length <= tail.length && head.every((message, i) => sameTurn(toTurn(message), toTurn(tail[i] ?? null)));
  return [head, repeated ? tail.slice(head.length) : tail];
}

/** One message as a turn; one that is no object is a turn without a role. */
export function toTurn(message: JsonValue): Turn {
  if (!(message instanceof Map)) return { role: "", text: normalise(textOf(message)), toolCalls: null };
  const role = message.get("role");
  const calls = message.get("tool_calls") ?? null;
  return { role: typeof role === "string" ? role : "", text: normalise(textOf(message.get("content"))), toolCalls: isEmpty(calls) ? null : calls };
}

/** The text of a message's content: text parts joined, null and absent empty, any other JSON value unchanged. */
export function textOf(content: JsonValue | undefined): JsonValue {
  if (content === undefined || content === null) return "";
  if (!Array.isArray(content)) return content;
  return content.map((part) => (typeof part === "string" ? part : textPart(part) ?? "")).join("");
}

/** The text of a `{type: "text", text}` part; undefined for an image or another part. */
export function textPart(part: JsonValue): string | undefined {
  const text = part instanceof Map ? part.get("text") : undefined;
  return typeof text === "string" ? text : undefined;
}

/** True where two turns are the same text by the same speaker with the same calls. */
export function sameTurn(a: Turn, b: Turn): boolean {
  return a.role === b.role && sameValue(a.text, b.text) && sameValue(a.toolCalls, b.toolCalls);
}

/** Trims blanks, tabs, LF, VT, FF and CR only: `trim()` and Python's `strip()` disagree on others. */
export function trimBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isBlank(text.charCodeAt(start))) start++;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

function isBlank(unit: number): boolean {
  return unit === 32 || (unit >= 9 && unit <= 13);
}

function normalise(text: JsonValue): JsonValue {
  return typeof text === "string" ? trimBlanks(text.replaceAll("\r\n", "\n")) : text;
}

function asList(value: JsonValue | undefined): JsonValue[] {
  return Array.isArray(value) ? value : [];
}

function asMessages(value: JsonValue | undefined, role: string): JsonValue[] {
  if (value === undefined || value === null) return [];
  return Array.isArray(value) ? value : [new Map<string, JsonValue>([["role", role], ["content", value]])];
}

function asLabel(label: JsonValue | undefined): JsonValue[] {
  return label === undefined || label === null ? [] : [new Map<string, JsonValue>([["role", "assistant"], ["content", label]])];
}

function fromShareGpt(message: JsonValue): JsonValue {
  if (!(message instanceof Map)) return message;
  const role = (message.has("from") ? message.get("from") : message.get("role")) ?? null;
  const content = (message.has("value") ? message.get("value") : message.get("content")) ?? null;
  const rest = [...message].filter(([key]) => key !== "from" && key !== "value");
  return new Map<string, JsonValue>([...rest, ["role", typeof role === "string" ? (shareGptRoles.get(role) ?? role) : role], ["content", content]]);
}

function alpacaPrompt(row: JsonObject): string {
  const [instruction, input] = [row.get("instruction"), row.get("input")];
  const text = typeof instruction === "string" ? instruction : "";
  return typeof input === "string" && trimBlanks(input) !== "" ? `${text}\n\n${input}` : text;
}

function isEmpty(value: JsonValue): boolean {
  if (value === null || value === false || value === "") return true;
  if (value instanceof JsonNumber) return value.toNumber() === 0;
  return Array.isArray(value) ? value.length === 0 : value instanceof Map && value.size === 0;
}

function sameValue(a: JsonValue, b: JsonValue): boolean {
  if (a instanceof JsonNumber) return b instanceof JsonNumber && (a.text === b.text || a.toNumber() === b.toNumber());
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, i) => sameValue(item, b[i] ?? null));
  if (!(a instanceof Map)) return a === b;
  return b instanceof Map && a.size === b.size && [...a].every(([key, item]) => b.has(key) && sameValue(item, b.get(key) ?? null));
}
