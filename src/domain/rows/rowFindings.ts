import { canonicalText } from "./canonical.ts";
import { kindOf } from "./readRow.ts";
import type { JsonObject, JsonValue } from "./jsonText.ts";
import { rowFormat, type RowFormat, type RowFormatOptions } from "./rowFormat.ts";
import { messageParts, preferenceParts, splitTurns, textPart, toTurns, trimBlanks, type Turn } from "./turns.ts";

/** What is wrong with a row as training data, although it can be read. Codes as in `row_problems.py`. */
export interface RowFinding {
  code: string;
  message: string;
  /** Counted from 0. */
  turn: number | null;
  severity: "warning" | "info";
}

/** Codes of rows that a strictly alternating trainer would drop. */
export const droppedCodes: ReadonlySet<string> = new Set(["turn-order", "unknown-role", "empty-conversation"]);

const knownRoles: ReadonlySet<string> = new Set(["system", "user", "assistant", "tool", "function", "observation", "function_call", "developer"]);

/** All findings of a row. Bad JSON is not one of them: that is a problem of `readRow`. */
export function rowFindings(row: JsonValue, options: RowFormatOptions = {}): RowFinding[] {
  const format = rowFormat(row, options);
  if (!(row instanceof Map)) return [finding("not-an-object", `the row is ${kindOf(row)}, not an object`)];
  if (format === "unknown") {
    const keys = [...row.keys()].slice(0, 5).join(", ") || "none";
    return [finding("unknown-format", `no known row format; its keys are ${keys}. Known: messages, prompt + completion, chosen + rejected, conversations, instruction, prompt, text`)];
  }
  const findings = [...textFindings(row, format, options), ...messageFindings(row, format, options)];
  if (format === "sharegpt") findings.push(...orderFindings(toTurns(row)));
  if (format === "preference") findings.push(...preferenceFindings(row));
  return findings;
}

/** True where a strictly alternating trainer would drop the row without a word. */
export function isDropped(findings: readonly RowFinding[]): boolean {
  return findings.some(({ code }) => droppedCodes.has(code));
}

function finding(code: string, message: string, turn: number | null = null, severity: RowFinding["severity"] = "warning"): RowFinding {
  return { code, message, turn, severity };
}

function isBlank(text: JsonValue): boolean {
  return typeof text === "string" && trimBlanks(text) === "";
}

function textFindings(row: JsonObject, format: RowFormat, options: RowFormatOptions): RowFinding[] {
  const { prompt, answer } = splitTurns(row, options);
  const findings: RowFinding[] = [];
  if (format === "slime" && answer === null) findings.push(finding("no-label", "no label: the row cannot be rewarded by exact match", null, "info"));
  else if (answer === null) findings.push(finding("no-trainable-text", "no trainable text: there is no assistant turn"));
  else if (!toTurns(row, options).some(({ role, text, toolCalls }) => role === "assistant" && (toolCalls !== null || !isBlank(text)))) {
    findings.push(finding("no-trainable-text", "no trainable text: the assistant's text is empty or only white space"));
  }
  const needsPrompt = format === "prompt-completion" || format === "alpaca" || format === "slime";
  if (needsPrompt && prompt.every(({ text }) => isBlank(text))) findings.push(finding("empty-prompt", "empty prompt"));
  return findings;
}

function messageFindings(row: JsonObject, format: RowFormat, options: RowFormatOptions): RowFinding[] {
  const [head, tail] = messageParts(row, options);
  const findings: RowFinding[] = [];
  let others = 0;
  for (const [i, message] of [...head, ...tail].entries()) {
    if (!(message instanceof Map)) {
      findings.push(finding("bad-turn", `turn ${i} is not an object with role and content`, i));
      continue;
    }
    const content = message.get("content") ?? null;
    const role = message.get("role");
    const hasCalls = toTurns(new Map([["messages", [message]]]))[0]?.toolCalls !== null;
    if (typeof role !== "string") findings.push(finding("bad-turn", `turn ${i} has no role`, i));
    else if (role === "assistant" && content === null && !hasCalls) findings.push(finding("empty-turn", `assistant turn with neither content nor tool_calls (turn ${i})`, i));
    else if (content !== null && typeof content !== "string" && !Array.isArray(content) && format !== "slime") {
      findings.push(finding("bad-turn", `the content of turn ${i} is neither text nor a list of parts`, i));
    }
    if (Array.isArray(content)) others += content.filter((part) => typeof part !== "string" && textPart(part) === undefined).length;
  }
  if (others > 0) {
    const words = others === 1 ? "1 content part that is" : `${others} content parts that are`;
    findings.push(finding("other-parts", `${words} not text (an image?); only the text is used`, null, "info"));
  }
  if (format === "messages" && tail.length === 0) findings.push(finding("empty-conversation", "empty conversation"));
  return findings;
}

/** The first thing a strictly alternating trainer would drop a ShareGPT row for. */
function orderFindings(turns: readonly Turn[]): RowFinding[] {
  if (turns.length === 0) return [finding("empty-conversation", "empty conversation")];
  let expected = "user";
  for (const [i, { role }] of turns.entries()) {
    if (role === "system" && i === 0) continue;
    if (!knownRoles.has(role)) return [finding("unknown-role", `unknown role "${role}" at turn ${i}`, i)];
    const side = sideOf(role);
    if (side !== expected) {
      const first = side === "assistant" && !turns.slice(0, i).some((turn) => turn.role === "user");
      if (first) return [finding("turn-order", `starts with an assistant turn (turn ${i})`, i)];
      const words = side === "user" ? `two human turns in a row at turn ${i}` : side === "assistant" ? `two assistant turns in a row at turn ${i}` : `a ${side} turn out of place at turn ${i}`;
      return [finding("turn-order", words, i)];
    }
    expected = expected === "user" ? "assistant" : "user";
  }
  if (expected === "user") return [];
  if (!turns.some(({ role }) => role === "assistant")) return [finding("turn-order", "no assistant turn (odd number of turns)")];
  return [finding("turn-order", "ends without an answer (odd number of turns)", turns.length - 1)];
}

function sideOf(role: string): string {
  if (role === "tool" || role === "function" || role === "observation") return "user";
  return role === "function_call" ? "assistant" : role;
}

function preferenceFindings(row: JsonObject): RowFinding[] {
  const [prompt, chosen, rejected] = [row.get("prompt") ?? null, row.get("chosen") ?? null, row.get("rejected") ?? null];
  if (canonicalText(chosen) === canonicalText(rejected)) return [finding("chosen-equals-rejected", "chosen equals rejected")];
  if (prompt !== null && prompt !== "" && !(Array.isArray(prompt) && prompt.length === 0)) {
    const repeats = Array.isArray(prompt) && Array.isArray(chosen) && preferenceParts(prompt, chosen)[1].length < chosen.length;
    return repeats ? [finding("prompt-repeated", "chosen repeats the prompt; it is used once", null, "info")] : [];
  }
  if (!Array.isArray(chosen) || !Array.isArray(rejected)) return [finding("no-prompt", "no prompt")];
  const [first, other] = [chosen[0], rejected[0]];
  const common = first !== undefined && other !== undefined && canonicalText(first) === canonicalText(other);
  return common ? [] : [finding("no-common-prompt", "no common prompt: chosen and rejected begin differently")];
}
