import { canonicalText, rowHashes } from "../../domain/rows/canonical.ts";
import type { JsonValue } from "../../domain/rows/jsonText.ts";
import { readRow, type RowPlace, type RowProblem } from "../../domain/rows/readRow.ts";
import { rowFormat, rowFormats } from "../../domain/rows/rowFormat.ts";
import type { RowScanner } from "../../domain/rows/rowScanner.ts";
import { formatCode } from "../../domain/rows/topKeys.ts";
import { TurnWriter } from "../../domain/rows/turnWriter.ts";
import { unreadableCode, type PageBuilder } from "./rowPages.ts";
import { sha256Hex, sha256Latin1 } from "./sha256.ts";

/** Problems that are kept with their place; beyond that they are only counted. */
export const keptProblems = 1000;

export interface ProblemCounts {
  error: number;
  warning: number;
  info: number;
}

/** Turns rows that lie in a scanner's bytes into entries of pages. */
export class RowHasher {
  readonly scanner: RowScanner;
  private problems: RowProblem[] = [];
  private counts: ProblemCounts = { error: 0, warning: 0, info: 0 };
  private readonly pages: PageBuilder;
  private readonly turns: boolean;
  private readonly writer: TurnWriter;
  private lastKeys = -1;
  private lastFormat = 0;

  constructor(scanner: RowScanner, pages: PageBuilder, turns: boolean) {
    this.scanner = scanner;
    this.pages = pages;
    this.turns = turns;
    this.writer = new TurnWriter(scanner);
  }

  /** Adds a row that is one whole line, in `bytes[start, end)` of the scanner. `valid`: known to be UTF-8. */
  addLine(start: number, end: number, line: number, offset: number, valid: boolean): void {
    const { scanner } = this;
    if (!valid || !scanner.scan(start, end) || scanner.notes !== 0 || scanner.first !== 123) return this.add(start, end, { line, offset }, valid, true);
    const code = this.formatOf(scanner.keys);
    this.pages.add(line, offset, end - start, code, sha256Latin1(scanner.bytes.subarray(scanner.start, scanner.end)));
    if (this.turns) this.addTurns(code);
  }

  /** The same for any row: an element of an array, a last line without its end, a row with something odd about it. */
  add(start: number, end: number, place: RowPlace, valid: boolean, ended: boolean, lastLine?: number): void {
    const { scanner } = this;
    if (!valid || !scanner.scan(start, end)) return this.addSlowly(start, end, place, ended, lastLine);
    const canonical = scanner.bytes.subarray(scanner.start, scanner.end);
    const code = formatCode(scanner.first, scanner.keys);
    this.pages.add(place.line, place.offset, end - start, code, sha256Latin1(canonical), lastLine);
    if (scanner.notes !== 0 || scanner.first !== 123) this.note(readRow(scanner.bytes.slice(start, end), place, ended).problems);
    if (this.turns) this.addTurns(code);
  }

  /** Adds a row that is too long to be read. */
  addTooLong(place: RowPlace, length: number, limit: number): void {
    this.pages.add(place.line, place.offset, length, unreadableCode, "");
    const message = `the row has ${length} bytes, more than the ${limit} that are read; split it`;
    this.note([{ line: place.line, column: 1, offset: place.offset, severity: "error", code: "too-long", message }]);
  }

  /** The problems found since the last call; `counts` counts also those that were not kept. */
  takeProblems(): { problems: RowProblem[]; counts: ProblemCounts } {
    const { problems, counts } = this;
    this.problems = [];
    this.counts = { error: 0, warning: 0, info: 0 };
    return { problems, counts };
  }

  private addSlowly(start: number, end: number, place: RowPlace, ended: boolean, lastLine?: number): void {
    const { value, problems } = readRow(this.scanner.bytes.slice(start, end), place, ended);
    if (value === undefined) this.pages.add(place.line, place.offset, end - start, unreadableCode, "", lastLine);
    else {
      this.pages.add(place.line, place.offset, end - start, rowFormats.indexOf(rowFormat(value)), sha256Latin1(canonicalText(value)), lastLine);
      if (this.turns) this.addTurnsOf(value);
    }
    this.note(problems);
  }

  /** `formatCode` of an object; neighbours mostly have the same keys. */
  private formatOf(keys: number): number {
    if (keys !== this.lastKeys) {
      this.lastKeys = keys;
      this.lastFormat = formatCode(123, keys);
    }
    return this.lastFormat;
  }

  private addTurns(code: number): void {
    const { scanner } = this;
    let [prompt, answer] = ["", ""];
    const written = this.writer.write(
      rowFormats[code] ?? "unknown",
      (bytes) => (prompt = bytes === null ? "" : sha256Latin1(bytes)),
      (bytes) => (answer = bytes === null ? "" : sha256Latin1(bytes)),
    );
    if (written) return this.pages.addTurns(prompt, answer);
    const { value } = readRow(scanner.bytes.slice(scanner.start, scanner.end), { line: 0, offset: 0 });
    if (value !== undefined) this.addTurnsOf(value);
  }

  private addTurnsOf(value: JsonValue): void {
    const { prompt, answer } = rowHashes(value, sha256Hex);
    this.pages.addTurns(latin1(prompt), latin1(answer));
  }

  private note(problems: readonly RowProblem[]): void {
    for (const problem of problems) {
      this.counts[problem.severity]++;
      if (this.problems.length < keptProblems) this.problems.push(problem);
    }
  }
}

function latin1(hex: string | null): string {
  return hex === null ? "" : Buffer.from(hex, "hex").toString("latin1");
}
