import { canonicalNumber } from "./jsonNumber.ts";
import { JsonNumber, type JsonValue } from "./jsonText.ts";
import { splitTurns, type Turn } from "./turns.ts";

/** Lower-case hex SHA-256 of the UTF-8 form of a text. Given by the caller: this room imports no `node:` module. */
export type Sha256 = (text: string) => string;

/** The identity of a row. `prompt` is null where a row has no turn before its answer, `answer` where it has none. */
export interface RowHashes {
  full: string;
  prompt: string | null;
  answer: string | null;
}

/** Canonical JSON of a value (contract §3): equal values give equal text, whatever their spelling. */
export function canonicalText(value: JsonValue): string {
  if (typeof value === "string") return canonicalString(value);
  if (value === null || typeof value === "boolean") return String(value);
  if (value instanceof JsonNumber) return canonicalNumber(value.text);
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(",")}]`;
  const keys = [...value.keys()].sort(byCodePoint);
  return `{${keys.map((key) => `${canonicalString(key)}:${canonicalText(value.get(key) ?? null)}`).join(",")}}`;
}

/** The three hashes of a row. */
export function rowHashes(row: JsonValue, sha256: Sha256): RowHashes {
  const { prompt, answer } = splitTurns(row);
  return {
    full: sha256(canonicalText(row)),
    prompt: prompt.length > 0 ? sha256(canonicalTurns(prompt)) : null,
    answer: answer === null ? null : sha256(canonicalTurns([answer])),
  };
}

/** Canonical JSON of a list of turns, what the `prompt` and `answer` hashes are taken over. */
export function canonicalTurns(turns: readonly Turn[]): string {
  return canonicalText(turns.map((turn) => [turn.role, turn.text, turn.toolCalls]));
}

/** Compares by Unicode code point; `<` on strings compares UTF-16 units, which puts 😀 before U+FF01. */
export function byCodePoint(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const left = a.charCodeAt(i);
    const right = b.charCodeAt(i);
    if (left === right) continue;
    const afterHigh = i > 0 && isHigh(a.charCodeAt(i - 1));
    // The pair that one text completes here ranks above the lone high half that the other one then has.
    if (afterHigh && isLow(left) !== isLow(right)) return isLow(left) ? 1 : -1;
    return (a.codePointAt(i) ?? left) - (b.codePointAt(i) ?? right);
  }
  return a.length - b.length;
}

function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLow(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

function canonicalString(text: string): string {
  // JSON.stringify escapes exactly what the contract names, and unpaired surrogates as \udxxx in lower case.
  return JSON.stringify(text);
}
