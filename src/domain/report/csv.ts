/** One cell: a number, or a text that no spreadsheet may take for a formula. */
export type CsvCell = string | number | null;

/**
 * One line of RFC 4180, CRLF included. A text that starts like a formula (`=`, `+`, `-`, `@`, a tab or a line break) gets
 * an apostrophe, so that a token or a prompt is never computed by the spreadsheet that opens it; numbers are left as they
 * are. What is not a number (NaN, the infinities) is written as that word, an unknown as nothing.
 */
export function csvLine(cells: readonly CsvCell[]): string {
  return `${cells.map(csvCell).join(",")}\r\n`;
}

function csvCell(cell: CsvCell): string {
  if (cell === null) return "";
  if (typeof cell === "number") return String(cell);
  const safe = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
