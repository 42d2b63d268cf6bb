import { t } from "../../util/l10n.ts";
import { parseJson, type JsonValue } from "./jsonText.ts";
import { firstInvalidUtf8 } from "./utf8.ts";

/** Something wrong with one row (or, with line 0, with the file as a whole). */
export interface RowProblem {
  /** Physical line, counted from 1 by LF; 0 for the file. */
  line: number;
  /** Counted from 1 in UTF-16 units, as editors count. */
  column: number;
  /** Byte offset in the (unpacked) file of the place, or of the row where the place has none. */
  offset: number;
  /** Errors make the row unusable; warnings and infos do not. */
  severity: "error" | "warning" | "info";
  code: string;
  message: string;
}

/** Where a row begins. `column` is not 1 only for elements of a JSON array. */
export interface RowPlace {
  line: number;
  offset: number;
  column?: number;
}

export interface ReadRow {
  /** Undefined where the row is no JSON. */
  value: JsonValue | undefined;
  /** The row as text; bytes that are no UTF-8 are U+FFFD. */
  text: string;
  problems: RowProblem[];
}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Reads one row thoroughly: its value and everything odd about its text. `ended` is false for a last line without LF. */
export function readRow(bytes: Uint8Array, place: RowPlace, ended = true): ReadRow {
  const text = decoder.decode(bytes);
  const problems: RowProblem[] = [];
  const at = { line: place.line, column: place.column ?? 1, offset: place.offset };
  const invalid = text.includes("\ufffd") ? firstInvalidUtf8(bytes) : -1;
  if (invalid !== -1) {
    const byte = (bytes[invalid] ?? 0).toString(16).toUpperCase().padStart(2, "0");
    const column = at.column + decoder.decode(bytes.subarray(0, invalid)).length;
    problems.push({ line: at.line, column, offset: at.offset + invalid, severity: "warning", code: "invalid-utf8", message: t("invalid UTF-8, byte 0x{0} at file offset {1}; U+FFFD is shown in its place", byte, at.offset + invalid) });
  }
  const result = parseJson(text);
  if (!result.ok) {
    const { error } = result;
    const offset = at.offset + (invalid === -1 ? new TextEncoder().encode(text.slice(0, error.index)).length : 0);
    const column = error.line === 1 ? at.column + error.column - 1 : error.column;
    const message = ended ? error.message : t("{0}; the last line has no end, the file may still be being written", error.message);
    problems.push({ line: at.line + error.line - 1, column, offset, severity: "error", code: "bad-json", message });
    return { value: undefined, text, problems };
  }
  for (const note of result.notes) problems.push({ ...at, severity: "warning", code: note.code, message: note.message });
  if (!(result.value instanceof Map)) problems.push({ ...at, severity: "error", code: "not-an-object", message: t("the row is {0}, not an object", kindOf(result.value)) });
  return { value: result.value, text, problems };
}

/** The kind of a JSON value in words, with its article. */
export function kindOf(value: JsonValue): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return t("an array");
  if (value instanceof Map) return t("an object");
  return typeof value === "string" ? t("a string") : typeof value === "boolean" ? t("a Boolean") : t("a number");
}
