import { t } from "../../util/l10n.ts";
/** A number as it was written: its digits are never rounded. */
export class JsonNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** The nearest double; `NaN`, `Infinity` and numbers beyond the range come out as such. */
  toNumber(): number {
    return Number(this.text);
  }
}

export type JsonObject = Map<string, JsonValue>;
export type JsonValue = null | boolean | string | JsonNumber | JsonValue[] | JsonObject;

export type JsonNoteCode = "duplicate-key" | "non-finite" | "overflow" | "unpaired-surrogate";

/** Something worth a mark that does not stop the value from being read. */
export interface JsonNote {
  code: JsonNoteCode;
  /** Path of the place, such as `messages[0].content`. */
  path: string;
  message: string;
}

export interface JsonError {
  message: string;
  /** UTF-16 offset in the text. */
  index: number;
  /** Both counted from 1; the column in UTF-16 units, as editors count. */
  line: number;
  column: number;
}

export type JsonResult =
  | { ok: true; value: JsonValue; notes: JsonNote[] }
  | { ok: false; error: JsonError };

/** Deeper nesting is refused, so that no input can exhaust the stack; `row_parse.py` has the same limit. */
export const maxDepth = 256;

/**
 * Reads one JSON value, as Python's `json` does: `NaN`, `Infinity` and `-Infinity` are numbers and the last of
 * two equal keys wins, and both are noted. Numbers keep their text. Nothing may follow the value but blanks.
 */
export function parseJson(text: string): JsonResult {
  const reader = new Reader(text);
  try {
    const value = reader.document();
    return { ok: true, value, notes: reader.notes };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return { ok: false, error: { message: error.message, ...positionOf(text, error.index) } };
  }
}

/** Line and column (from 1, UTF-16 units) of an offset; lines end at LF only. */
export function positionOf(text: string, index: number): { index: number; line: number; column: number } {
  const before = text.lastIndexOf("\n", index - 1);
  let line = 1;
  for (let at = text.indexOf("\n"); at !== -1 && at < index; at = text.indexOf("\n", at + 1)) line++;
  return { index, line, column: index - (index === 0 ? -1 : before) };
}

class Failure extends Error {
  readonly index: number;

  constructor(message: string, index: number) {
    super(message);
    this.index = index;
  }
}

const maxExponentDigits = 4000;

/** True for a number that no reader here or in Python takes: its exponent alone is longer than 4000 digits. */
export function isHugeExponent(text: string): boolean {
  return text.length > maxExponentDigits && text.length - text.search(/[eE]|$/) - 1 > maxExponentDigits;
}

const numberPattern = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const plainPattern = /[^"\\\u0000-\u001f]*/y;
const loneSurrogate = /\p{Surrogate}/u;
const hexPattern = /^[0-9a-fA-F]{4}$/;
const simpleEscapes: Record<string, string> = { '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

class Reader {
  readonly notes: JsonNote[] = [];
  private readonly text: string;
  private at = 0;
  private readonly path: (string | number)[] = [];

  constructor(text: string) {
    this.text = text;
  }

  document(): JsonValue {
    this.blanks();
    if (this.at >= this.text.length) throw new Failure(t("there is no JSON value here"), this.at);
    const value = this.value();
    this.blanks();
    if (this.at < this.text.length) throw new Failure(this.afterValue(), this.at);
    return value;
  }

  private afterValue(): string {
    const next = this.text[this.at] ?? "";
    if (next === ",") return t("a comma after the row; in JSON Lines rows are not separated by commas, remove it");
    if (next === "{" || next === "[" || next === '"') return t("more than one JSON value on this line; put each on a line of its own");
    return t("text after the end of the row; remove it");
  }

  private blanks(): void {
    for (;;) {
      const unit = this.text.charCodeAt(this.at);
      if (unit !== 32 && unit !== 9 && unit !== 10 && unit !== 13) return;
      this.at++;
    }
  }

  private value(): JsonValue {
    const unit = this.text[this.at];
    if (unit === '"') return this.string();
    if (unit === "{" || unit === "[") {
      if (this.path.length >= maxDepth) throw new Failure(t("the row is nested deeper than {0} levels; flatten it", maxDepth), this.at);
      return unit === "{" ? this.object() : this.array();
    }
    return this.scalar();
  }

  private scalar(): JsonValue {
    for (const [word, value] of [["true", true], ["false", false], ["null", null]] as const) {
      if (this.text.startsWith(word, this.at)) {
        this.at += word.length;
        return value;
      }
    }
    for (const word of ["NaN", "Infinity", "-Infinity"]) {
      if (!this.text.startsWith(word, this.at)) continue;
      this.at += word.length;
      this.note("non-finite", t("the number {0} is not JSON; it is read, and left out of statistics", word));
      return new JsonNumber(word);
    }
    numberPattern.lastIndex = this.at;
    const found = numberPattern.exec(this.text)?.[0];
    if (found === undefined) throw new Failure(this.unexpected(t("a value")), this.at);
    this.at += found.length;
    if (isHugeExponent(found)) throw new Failure(t("the number has an exponent of more than {0} digits", maxExponentDigits), this.at);
    if (!Number.isFinite(Number(found))) this.note("overflow", t("{0} is beyond the range of a double and reads as Infinity", shorten(found)));
    return new JsonNumber(found);
  }

  private array(): JsonValue[] {
    const items: JsonValue[] = [];
    this.at++;
    this.blanks();
    if (this.take("]")) return items;
    for (;;) {
      this.blanks();
      if (this.text[this.at] === "]") throw new Failure(t("a comma before the closing bracket; remove it"), this.at);
      this.path.push(items.length);
      items.push(this.value());
      this.path.pop();
      this.blanks();
      if (this.take("]")) return items;
      if (!this.take(",")) throw new Failure(this.unexpected(t(", or ]")), this.at);
    }
  }

  private object(): JsonObject {
    const object: JsonObject = new Map();
    this.at++;
    this.blanks();
    if (this.take("}")) return object;
    for (;;) {
      this.blanks();
      if (this.text[this.at] === "}") throw new Failure(t("a comma before the closing bracket; remove it"), this.at);
      if (this.text[this.at] !== '"') throw new Failure(this.unexpected(t("a key in double quotes")), this.at);
      this.path.push("");
      const key = this.string();
      this.path[this.path.length - 1] = key;
      if (object.has(key)) this.note("duplicate-key", t("duplicate key \"{0}\"; the last value is used", this.place()));
      this.blanks();
      if (!this.take(":")) throw new Failure(this.unexpected(t(": after the key")), this.at);
      this.blanks();
      object.set(key, this.value());
      this.path.pop();
      this.blanks();
      if (this.take("}")) return object;
      if (!this.take(",")) throw new Failure(this.unexpected(t(", or }")), this.at);
    }
  }

  private string(): string {
    this.at++;
    let result = "";
    for (;;) {
      plainPattern.lastIndex = this.at;
      result += plainPattern.exec(this.text)?.[0] ?? "";
      this.at = plainPattern.lastIndex;
      const unit = this.text[this.at];
      if (unit === '"') break;
      if (unit === undefined) throw new Failure(t("the row ends in the middle of a string; it may have been cut off"), this.at);
      if (unit !== "\\") throw new Failure(t("the control character {0} in a string; write it as an escape", show(unit)), this.at);
      result += this.escape();
    }
    this.at++;
    if (loneSurrogate.test(result)) this.noteSurrogates(result);
    return result;
  }

  private escape(): string {
    const letter = this.text[this.at + 1] ?? "";
    const simple = Object.hasOwn(simpleEscapes, letter) ? simpleEscapes[letter] : undefined;
    if (simple !== undefined) {
      this.at += 2;
      return simple;
    }
    const digits = this.text.slice(this.at + 2, this.at + 6);
    if (letter === "u" && hexPattern.test(digits)) {
      this.at += 6;
      return String.fromCharCode(Number.parseInt(digits, 16));
    }
    if (letter === "") throw new Failure(t("the row ends in the middle of a string; it may have been cut off"), this.at);
    throw new Failure(letter === "u" ? t("{0} needs four hexadecimal digits", "\\u") : t("{0} is no JSON escape", `\\${letter}`), this.at);
  }

  private noteSurrogates(value: string): void {
    const units = unpairedSurrogates(value);
    this.note("unpaired-surrogate", units === 1 ? t("unpaired surrogate in \"{0}\" (1 code unit); U+FFFD is used in its place", this.place()) : t("unpaired surrogate in \"{0}\" ({1} code units); U+FFFD is used in its place", this.place(), units));
  }

  private take(unit: string): boolean {
    if (this.text[this.at] !== unit) return false;
    this.at++;
    return true;
  }

  private unexpected(wanted: string): string {
    const unit = this.text[this.at];
    if (unit === "\ufeff") return t("a byte order mark in the middle of the file (from joining files?); remove it");
    return unit === undefined ? t("the row ends where {0} is expected; it may have been cut off", wanted) : t("{0} where {1} is expected", show(unit), wanted);
  }

  private place(): string {
    return this.path.reduce<string>((path, step) => (typeof step === "number" ? `${path}[${step}]` : path === "" ? step : `${path}.${step}`), "");
  }

  private note(code: JsonNoteCode, message: string): void {
    this.notes.push({ code, path: this.place(), message });
  }
}

/** How many UTF-16 units of the text are surrogates without their partner. */
export function unpairedSurrogates(text: string): number {
  return text.match(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g)?.length ?? 0;
}

function show(unit: string): string {
  const code = unit.charCodeAt(0);
  return code < 32 || code === 127 ? `U+${code.toString(16).toUpperCase().padStart(4, "0")}` : `"${unit}"`;
}

function shorten(text: string): string {
  return text.length <= 24 ? text : `${text.slice(0, 20)}…`;
}
