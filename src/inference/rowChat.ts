import { JsonNumber, parseJson, type JsonObject, type JsonValue } from "../domain/rows/jsonText.ts";
import { rowFormat } from "../domain/rows/rowFormat.ts";
import { messageParts, textOf } from "../domain/rows/turns.ts";
import { AppError } from "../util/errors.ts";
import type { ChatMessage } from "./chatTemplate.ts";

/** A row as it is scored: a chat for the template, or plain texts that no template touches. */
export type RowChat = { messages: ChatMessage[]; tools: unknown } | { prompt: string; answer: string };

/** Reads a row as the runner does (`scoring/encode.py`). AppError("bad-input") says what is missing. */
export function readChat(text: string): RowChat {
  const result = parseJson(text);
  if (!result.ok) throw new AppError("bad-input", `The row is no valid JSON: ${result.error.message}.`);
  const row = result.value;
  if (!(row instanceof Map)) throw new AppError("bad-input", "The row is no JSON object.");
  const kind = rowFormat(row);
  const [prompt, completion, plain] = [row.get("prompt"), row.get("completion"), row.get("text")];
  if (kind === "text" && typeof plain === "string") return { prompt: "", answer: plain };
  if (kind === "prompt-completion" && typeof prompt === "string" && typeof completion === "string") return { prompt, answer: completion };
  if (kind === "unknown") throw new AppError("bad-input", "The row has none of the known shapes (messages, prompt and completion, chosen, conversations, instruction, text).");
  const messages = messageParts(row).flat().map(toMessage);
  const last = messages.findLastIndex(({ role }) => role === "assistant");
  if (last < 0) throw new AppError("bad-input", "The row has no assistant message, so there is nothing to score.");
  const tools = row.get("tools");
  return { messages: messages.slice(0, last + 1), tools: Array.isArray(tools) ? plainOf(tools) : null };
}

function toMessage(value: JsonValue): ChatMessage {
  const message: JsonObject = value instanceof Map ? value : new Map([["role", ""], ["content", value]]);
  const [role, content] = [message.get("role"), textOf(message.get("content"))];
  const text = content instanceof JsonNumber ? content.text : content;
  if (typeof text !== "string") throw new AppError("bad-input", "A message's content is neither text nor a list of text parts.");
  const calls = message.get("tool_calls");
  const rest = [...message].filter(([key]) => key !== "tool_calls" || (Array.isArray(calls) && calls.length > 0));
  const fields = Object.fromEntries(rest.map(([key, item]) => [key, plainOf(item)]));
  return { ...fields, role: typeof role === "string" ? role : "", content: text.replace(/\p{Surrogate}/gu, "\ufffd") };
}

function plainOf(value: JsonValue): unknown {
  if (value instanceof JsonNumber) return value.toNumber();
  if (Array.isArray(value)) return value.map(plainOf);
  return value instanceof Map ? Object.fromEntries([...value].map(([key, item]) => [key, plainOf(item)])) : value;
}
