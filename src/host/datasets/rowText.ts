import { canonicalText } from "../../domain/rows/canonical.ts";
import { formatBytes } from "../../domain/format.ts";
import { JsonNumber, type JsonValue } from "../../domain/rows/jsonText.ts";
import { readRow, type RowProblem } from "../../domain/rows/readRow.ts";
import { printable, rowPreview, showInvisible } from "../../domain/rows/rowPreview.ts";
import { toTurns } from "../../domain/rows/turns.ts";
import type { DatasetRow } from "../../storage/datasets/datasetReader.ts";
import { t } from "../../util/l10n.ts";
import { decodeUtf8, previewOf } from "../../util/lines.ts";

/** Characters of a row that the list shows at most. */
const previewLength = 400;

/** A row as the list shows it, and its value where it could be read. */
export interface ReadLine {
  preview: string;
  problem: string | null;
  value: JsonValue | undefined;
}

/** One line for the list: what the row is about, or what is wrong with it. */
export function readLine(row: DatasetRow): ReadLine {
  if (row.cut) return { preview: showInvisible(printable(previewOf(row, previewLength))), problem: t("the row has {0}: it is shown by its beginning, and not compared with buffers and probes", formatBytes(row.length)), value: undefined };
  const { value, text, problems } = readRow(row.bytes, { line: row.line, offset: row.offset }, row.ended);
  const bad = problems.find(({ severity }) => severity === "error");
  if (value === undefined) return { preview: showInvisible(printable(text.slice(0, previewLength))), problem: bad === undefined ? null : problemText(bad), value };
  return { preview: rowPreview(value, previewLength), problem: bad === undefined ? null : problemText(bad), value };
}

/** The row for the detail pane: its problems, its turns, and indented JSON. */
export function readDetail(row: DatasetRow): { problems: string[]; turns: { role: string; text: string }[]; text: string; value: JsonValue | undefined } {
  if (row.cut) return { problems: [], turns: [], text: printable(decodeUtf8(row.bytes).replace(/\ufffd+$/, "")), value: undefined };
  const { value, text, problems } = readRow(row.bytes, { line: row.line, offset: row.offset }, row.ended);
  if (value === undefined) return { problems: problems.map(problemText), turns: [], text: printable(text), value };
  const turns = toTurns(value).map((turn) => ({
    role: turn.role || "?",
    text: printable([typeof turn.text === "string" ? turn.text : turn.text === null ? "" : canonicalText(turn.text), turn.toolCalls === null ? "" : prettyJson(turn.toolCalls)].filter((part) => part !== "").join("\n")),
  }));
  return { problems: problems.map(problemText), turns, text: printable(prettyJson(value)), value };
}

function problemText({ line, column, message }: RowProblem): string {
  return t("line {0}, column {1}: {2}", line, column, message);
}

/** Indented JSON; numbers as they were written. The reader's limit on depth bounds the recursion. */
export function prettyJson(value: JsonValue, indent = ""): string {
  if (value instanceof JsonNumber) return value.text;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const inner = `${indent}  `;
  if (Array.isArray(value)) return value.length === 0 ? "[]" : `[\n${value.map((item) => inner + prettyJson(item, inner)).join(",\n")}\n${indent}]`;
  if (value.size === 0) return "{}";
  return `{\n${[...value].map(([key, item]) => `${inner}${JSON.stringify(key)}: ${prettyJson(item, inner)}`).join(",\n")}\n${indent}}`;
}
