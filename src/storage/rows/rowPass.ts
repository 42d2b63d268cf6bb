import { setImmediate } from "node:timers/promises";
import { parseJson } from "../../domain/rows/jsonText.ts";
import type { RowProblem } from "../../domain/rows/readRow.ts";
import { RowScanner } from "../../domain/rows/rowScanner.ts";
import { AppError } from "../../util/errors.ts";
import { inEnglish, t } from "../../util/l10n.ts";
import { decodeUtf8, LineSplitter } from "../../util/lines.ts";
import { ArrayElements, resplit, type ArrayElement } from "./arrayElements.ts";
import { LineIndexer, maxRowBytes } from "./lineIndexer.ts";
import { RowHasher, type ProblemCounts } from "./rowHasher.ts";
import { PageBuilder, type RowPage, type RowTotals } from "./rowPages.ts";
import { foreignForm, openRowSource, type FileNote, type RowSource } from "./rowSource.ts";

/** A part of a file, indexed. */
export interface RowBatch {
  pages: RowPage[];
  problems: RowProblem[];
  counts: ProblemCounts;
  totals: RowTotals;
}

export interface PassOptions {
  turns: boolean;
  signal?: AbortSignal | undefined;
  maxUnpacked?: number | undefined;
  /** Takes what was indexed since the last call; awaited, so memory stays bounded. */
  onBatch(batch: RowBatch, bytes: number): void | Promise<void>;
}

export interface PassResult {
  /** After the last LF. */
  end: { offset: number; line: number };
  /** A last row without LF. */
  tail: RowBatch | null;
  notes: FileNote[];
  shape: "lines" | "array";
  packed: "plain" | "gzip";
}

/** Between two breaths of the event loop; a few milliseconds of work. */
const sliceBytes = 1024 * 1024;
const batchBytes = 16 * 1024 * 1024;

/** What a file begins with, as far as it decides how the file is read. */
export interface FileHead {
  packed: "plain" | "gzip";
  shape: "lines" | "array";
  /** Length of the byte order mark. */
  skip: number;
  foreign: string | null;
}

/** Looks at the beginning of a file. */
export async function readHead(path: string, limit?: number): Promise<FileHead> {
  const source = openRowSource(path, 0, limit);
  try {
    const first = await fill(source, Buffer.alloc(64 * 1024));
    const skip = first[0] === 0xef && first[1] === 0xbb && first[2] === 0xbf ? 3 : 0;
    const foreign = inEnglish(() => foreignForm(first)); // it is kept in the index
    const shape = foreign === null && (await isArray(first.subarray(skip), source)) ? "array" : "lines";
    return { packed: source.kind, shape, skip, foreign };
  } finally {
    source.close();
  }
}

/** Indexes a file from a line start to its end, in this thread, with a breath every few milliseconds. */
export async function indexPass(path: string, from: { offset: number; line: number }, head: FileHead, options: PassOptions): Promise<PassResult> {
  const source = openRowSource(path, head.packed === "plain" ? from.offset : 0, options.maxUnpacked);
  const notes: FileNote[] = head.skip > 0 ? [{ severity: "info", code: "bom", message: "UTF-8 BOM at the start of the file; it is skipped" }] : [];
  try {
    if (head.foreign !== null) {
      notes.push({ severity: "error", code: "foreign-form", message: `this is ${head.foreign}` });
      return { end: { ...from }, tail: null, notes, shape: "lines", packed: head.packed };
    }
    const read = head.shape === "array" ? indexArray : indexLines;
    const { end, tail } = await read(source, from, head.skip, options, notes);
    return { end, tail, notes: [...notes, ...source.notes], shape: head.shape, packed: head.packed };
  } finally {
    source.close();
  }
}

/** Throws AppError("cancelled") once the signal is given. */
export function throwIfCancelled(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw new AppError("cancelled", t("Indexing was cancelled; the index is as it was before."));
}

async function indexLines(source: RowSource, from: { offset: number; line: number }, skip: number, options: PassOptions): Promise<Pick<PassResult, "end" | "tail">> {
  const indexer = new LineIndexer({ turns: options.turns, line: from.line, offset: Math.max(from.offset, skip) });
  let toSkip = source.consumed === 0 || source.kind === "gzip" ? skip : 0;
  let [slice, batch, lines] = [0, 0, from.line];
  const flush = (): RowBatch => {
    const result = { pages: indexer.pages.take(true), ...indexer.hasher.takeProblems(), totals: indexer.pages.takeTotals(indexer.line - lines) };
    lines = indexer.line;
    return result;
  };
  for (;;) {
    const target = indexer.target();
    let count = await source.read(target);
    if (count === 0) break;
    slice += count;
    batch += count;
    if (toSkip > 0) {
      const dropped = Math.min(toSkip, count);
      target.copyWithin(0, dropped, count);
      toSkip -= dropped;
      count -= dropped;
    }
    indexer.advance(count);
    if (slice < sliceBytes) continue;
    slice = 0;
    await setImmediate();
    throwIfCancelled(options.signal);
    if (batch < batchBytes) continue;
    batch = 0;
    await options.onBatch(flush(), source.consumed);
  }
  throwIfCancelled(options.signal);
  await options.onBatch(flush(), source.consumed);
  const end = { offset: indexer.offset, line: indexer.line };
  return { end, tail: indexer.finish() ? flush() : null };
}

async function indexArray(source: RowSource, _from: unknown, skip: number, options: PassOptions, notes: FileNote[]): Promise<Pick<PassResult, "end" | "tail">> {
  const pages = new PageBuilder({ turns: options.turns, lastLines: true });
  const hasher = new RowHasher(new RowScanner(64 * 1024), pages, options.turns);
  const elements = new ArrayElements(skip);
  const buffer = Buffer.alloc(sliceBytes / 4);
  let toSkip = skip;
  let lines = 1;
  const flush = async (all: boolean): Promise<void> => {
    await options.onBatch({ pages: pages.take(all), ...hasher.takeProblems(), totals: pages.takeTotals(elements.lines - lines) }, source.consumed);
    lines = elements.lines;
  };
  for (;;) {
    const count = await source.read(buffer);
    if (count === 0) break;
    for (const element of elements.push(buffer.subarray(Math.min(toSkip, count), count))) addElement(hasher, element);
    toSkip -= Math.min(toSkip, count);
    await setImmediate();
    throwIfCancelled(options.signal);
    await flush(false);
  }
  const last = elements.end();
  if (last !== null) addElement(hasher, last);
  await flush(true);
  for (const line of elements.extraCommas) notes.push({ severity: "warning", code: "array-comma", message: `line ${line}: a comma too many in the array; remove it` });
  if (!elements.closed) notes.push({ severity: "error", code: "array-open", message: "the array has no closing bracket; the file may have been cut off" });
  return { end: { offset: source.consumed, line: elements.lines }, tail: null };
}

function addElement(hasher: RowHasher, element: ArrayElement): void {
  const parts = element.lastLine > element.line && !parseJson(decodeUtf8(element.bytes)).ok ? resplit(element) : [element];
  for (const { bytes, offset, line, column, lastLine, ended } of parts) {
    const { scanner } = hasher;
    if (bytes.length > maxRowBytes) {
      hasher.addTooLong({ line, offset }, bytes.length, maxRowBytes);
      continue;
    }
    if (bytes.length + 1 >= scanner.capacity) scanner.reserve(bytes.length + 2);
    scanner.bytes.set(bytes);
    hasher.add(0, bytes.length, { line, offset, column }, true, ended, lastLine);
  }
}

/** An array begins with `[` and is not just the first of several complete rows (`rows.py` has the same rule). */
async function isArray(first: Buffer, source: RowSource): Promise<boolean> {
  if (!/^[ \t\r\n]*\[/.test(first.toString("latin1"))) return false;
  const splitter = new LineSplitter({ maxBytes: maxRowBytes });
  let row: string | null = null;
  for (let chunk = first; ; chunk = Buffer.alloc(chunkSize)) {
    if (chunk !== first) chunk = await fill(source, chunk);
    const lines = splitter.push(chunk);
    const tail = chunk.length === 0 ? splitter.end() : null;
    for (const line of tail === null ? lines : [...lines, tail]) {
      const text = decodeUtf8(line.bytes).trim();
      if (text === "") continue;
      if (row !== null) return false;
      row = text;
      const result = parseJson(text);
      if (!result.ok || line.cut) return true;
      if (!Array.isArray(result.value) || !result.value.every((item) => item instanceof Map)) return false;
    }
    if (chunk.length === 0) return row !== null;
  }
}

const chunkSize = 64 * 1024;

async function fill(source: RowSource, target: Buffer): Promise<Buffer> {
  let filled = 0;
  while (filled < target.length) {
    const count = await source.read(target.subarray(filled));
    if (count === 0) break;
    filled += count;
  }
  return target.subarray(0, filled);
}
