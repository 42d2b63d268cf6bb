import { statSync } from "node:fs";
import type { RowProblem } from "../../domain/rows/readRow.ts";
import { rowFormats } from "../../domain/rows/rowFormat.ts";
import { AppError, messageOf } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { prefixFingerprint } from "./fileFingerprint.ts";
import type { FileRecord, PageStore, SegmentInfo } from "./pageStore.ts";
import { parallelPass } from "./parallelPass.ts";
import type { FileSummary, HashKind, IndexedRow, RowIndex, RowLocation, UpdateOptions } from "./rowIndex.ts";
import { keptProblems, type ProblemCounts } from "./rowHasher.ts";
import { addTotals, emptyTotals, hexAt, unreadableCode, type RowPage } from "./rowPages.ts";
import { indexPass, readHead, type PassResult, type RowBatch } from "./rowPass.ts";
import { WorkerPool, type WorkerSetup } from "./workerPool.ts";

/** A file that was appended to more often than this is indexed anew, so that its pages are full again. */
const maxSegments = 64;

/** The row index over any page store. */
export class PagedRowIndex implements RowIndex {
  private readonly store: PageStore;
  private readonly workers: WorkerPool | null;
  private readonly running = new Map<string, Promise<unknown>>();

  constructor(store: PageStore, workers: WorkerSetup | null) {
    this.store = store;
    this.workers = workers === null ? null : new WorkerPool(workers);
  }

  async update(path: string, options: UpdateOptions = {}): Promise<FileSummary> {
    // One at a time for each file: the second then finds nothing to do.
    const before = this.running.get(path) ?? Promise.resolve();
    const work = before.catch(() => {}).then(() => this.bringUpToDate(path, options));
    this.running.set(path, work);
    try {
      return await work;
    } finally {
      if (this.running.get(path) === work) this.running.delete(path);
    }
  }

  summary(path: string): FileSummary | null {
    const record = this.store.load(path);
    return record === null ? null : summaryOf(record, "unchanged");
  }

  row(path: string, line: number): IndexedRow | null {
    return this.rows(path, line, line)[0] ?? null;
  }

  rows(path: string, first: number, last: number): IndexedRow[] {
    const record = this.store.load(path);
    const rows: IndexedRow[] = [];
    for (const { id, pages } of record === null ? [] : segmentsOf(record)) {
      for (const [i, info] of pages.entries()) {
        if (info.lastLine < first || info.firstLine > last) continue;
        const page = this.store.page(id, i);
        if (page !== null) collectRows(rows, page, first, last);
      }
    }
    return rows;
  }

  problems(path: string, first = 0, last = Number.MAX_SAFE_INTEGER): RowProblem[] {
    const record = this.store.load(path);
    if (record === null) return [];
    return segmentsOf(record)
      .flatMap(({ id }) => this.store.problems(id, first, last, keptProblems))
      .slice(0, keptProblems);
  }

  places(hashes: readonly string[], kind: HashKind = "full", path?: string): Map<string, RowLocation[]> {
    const found = new Map<string, RowLocation[]>(hashes.map((hash) => [hash, []]));
    const heads = new Set(hashes.map((hash) => Number.parseInt(hash.slice(0, 8), 16)));
    const [width, shift] = kind === "full" ? [32, 0] : [64, kind === "prompt" ? 0 : 32];
    for (const file of path === undefined ? this.store.paths() : [path]) {
      const record = this.store.load(file);
      for (const { id, pages } of record === null ? [] : segmentsOf(record)) {
        for (const i of pages.keys()) {
          const bytes = this.store.hashes(id, i, kind === "full" ? "full" : "turns");
          if (bytes === null) continue;
          const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
          for (let row = 0, at = shift; at < bytes.length; row++, at += width) {
            if (!heads.has(view.getUint32(at))) continue;
            const places = found.get(hexAt(bytes, at) ?? "");
            const page = places === undefined ? null : this.store.page(id, i);
            if (page !== null) places?.push({ path: file, line: page.lines[row] as number, offset: page.offsets[row] as number });
          }
        }
      }
    }
    return found;
  }

  paths(): string[] {
    return this.store.paths();
  }

  forget(path: string): Promise<void> {
    return this.store.forget(path);
  }

  dispose(): void {
    this.workers?.dispose();
    this.store.dispose();
  }

  private async bringUpToDate(path: string, options: UpdateOptions): Promise<FileSummary> {
    for (let attempt = 0; attempt < 5; attempt++) {
      const { size, mtimeMs } = statOf(path);
      const record = this.store.load(path);
      const turns = options.turns === true || record?.hasTurns === true;
      const keep = record !== null && record.hasTurns === turns && isPrefix(path, record, size);
      if (keep && record.size === size && record.mtimeMs === mtimeMs) return summaryOf(record, "unchanged");
      // A file of the same length with another time was written anew, not appended to.
      const append = keep && size > record.size && record.packed === "plain" && record.shape === "lines" && record.segments.length < maxSegments && record.end.offset > 0;
      const revision = record?.revision ?? 0;
      const next = { ...(await this.index(path, append ? record : emptyRecord(path, turns), size, options)), size, mtimeMs, revision: revision + 1 };
      const old = [...(append || record === null ? [] : record.segments), ...(record?.tail ? [record.tail] : [])];
      if (await this.store.commit(next, revision)) {
        await this.store.drop(old.map(({ id }) => id));
        return summaryOf(next, append ? "appended" : "rebuilt");
      }
      await this.store.drop(segmentsOf(next).filter((segment) => !record || !segmentsOf(record).includes(segment)).map(({ id }) => id));
    }
    throw new AppError("index-unusable", t("The index of {0} is being written by other windows all the time; try again.", path));
  }

  /** Indexes what `base` does not cover, into new segments. */
  private async index(path: string, base: FileRecord, size: number, options: UpdateOptions): Promise<FileRecord> {
    const written: number[] = [];
    const record: FileRecord = { ...base, totals: copyTotals(base), problems: { ...base.problems }, segments: [...base.segments], tail: null, tailTotals: emptyTotals(), tailProblems: noProblems() };
    const segment: SegmentInfo = { id: await this.store.newSegment(), pages: [] };
    written.push(segment.id);
    try {
      const onBatch = async (batch: RowBatch, bytes: number): Promise<void> => {
        await this.write(segment, batch);
        addTotals(record.totals, batch.totals);
        addProblems(record.problems, batch.counts);
        options.onProgress?.({ bytes, total: size, rows: record.totals.rows });
      };
      const result = await this.pass(path, base.end, size, { turns: base.hasTurns, signal: options.signal, onBatch });
      if (segment.pages.length > 0 || result.notes.length > 0 || base.segments.length === 0) record.segments.push(segment);
      if (result.tail !== null) {
        record.tail = { id: await this.store.newSegment(), pages: [] };
        written.push(record.tail.id);
        await this.write(record.tail, result.tail);
        record.tailTotals = { ...result.tail.totals, lines: 1 };
        record.tailProblems = result.tail.counts;
      }
      const notes = base.end.offset > 0 ? base.notes : result.notes;
      return { ...record, end: result.end, prefix: prefixOf(path, result), notes, shape: result.shape, packed: result.packed };
    } catch (error) {
      await this.store.drop(written).catch(() => {}); // the first error is the one to tell
      throw error;
    }
  }

  private async pass(path: string, from: { offset: number; line: number }, size: number, options: Parameters<typeof indexPass>[3]): Promise<PassResult> {
    const head = from.offset > 0 ? { packed: "plain" as const, shape: "lines" as const, skip: 0, foreign: null } : await readHead(path);
    const { workers } = this;
    if (workers === null || head.packed !== "plain" || head.shape !== "lines" || head.foreign !== null || size - from.offset < workers.minBytes) return indexPass(path, from, head, options);
    const start = { offset: Math.max(from.offset, head.skip), line: from.line };
    return indexPass(path, await parallelPass(path, start, size, workers, options), head, options);
  }

  private async write(segment: SegmentInfo, { pages, problems }: RowBatch): Promise<void> {
    await this.store.write(segment.id, segment.pages.length, pages, problems);
    for (const page of pages) {
      const last = page.rows - 1;
      segment.pages.push({ firstLine: page.lines[0] as number, lastLine: (page.lastLines ?? page.lines)[last] as number, rows: page.rows });
    }
  }
}

function collectRows(rows: IndexedRow[], page: RowPage, first: number, last: number): void {
  for (let i = 0; i < page.rows; i++) {
    const line = page.lines[i] as number;
    const lastLine = page.lastLines?.[i] ?? line;
    if (lastLine < first) continue;
    if (line > last) return;
    const code = page.formats[i] as number;
    rows.push({
      line,
      lastLine,
      offset: page.offsets[i] as number,
      length: page.lengths[i] as number,
      full: hexAt(page.hashes, i * 32),
      prompt: page.turns === null ? undefined : hexAt(page.turns, i * 64),
      answer: page.turns === null ? undefined : hexAt(page.turns, i * 64 + 32),
      format: code === unreadableCode ? null : (rowFormats[code] ?? null),
    });
  }
}

function summaryOf(record: FileRecord, how: FileSummary["how"]): FileSummary {
  const totals = copyTotals(record);
  addTotals(totals, record.tailTotals);
  const problems = { ...record.problems };
  addProblems(problems, record.tailProblems);
  return {
    path: record.path,
    rows: totals.rows,
    unreadable: totals.unreadable,
    lines: totals.lines,
    bytes: record.size,
    formats: totals.formats,
    problems,
    notes: record.notes,
    shape: record.shape,
    packed: record.packed,
    openEnd: record.tail !== null,
    hasTurns: record.hasTurns,
    how,
  };
}

function segmentsOf(record: FileRecord): SegmentInfo[] {
  return record.tail === null ? record.segments : [...record.segments, record.tail];
}

function copyTotals(record: FileRecord): FileRecord["totals"] {
  return { ...record.totals, formats: { ...record.totals.formats } };
}

function noProblems(): ProblemCounts {
  return { error: 0, warning: 0, info: 0 };
}

function addProblems(counts: ProblemCounts, more: ProblemCounts): void {
  counts.error += more.error;
  counts.warning += more.warning;
  counts.info += more.info;
}

function emptyRecord(path: string, hasTurns: boolean): FileRecord {
  const empty = { totals: emptyTotals(), tailTotals: emptyTotals(), problems: noProblems(), tailProblems: noProblems() };
  return { path, revision: 0, size: 0, mtimeMs: 0, end: { offset: 0, line: 1 }, prefix: "", segments: [], tail: null, ...empty, notes: [], shape: "lines", packed: "plain", hasTurns };
}

function statOf(path: string): { size: number; mtimeMs: number } {
  try {
    return statSync(path);
  } catch (error) {
    throw new AppError("not-found", t("The dataset file {0} cannot be read: {1}.", path, messageOf(error)), { cause: error });
  }
}

function isPrefix(path: string, record: FileRecord, size: number): boolean {
  const length = record.packed === "plain" ? record.end.offset : record.size;
  return size >= length && record.prefix === prefixFingerprint(path, length);
}

function prefixOf(path: string, result: PassResult): string {
  return prefixFingerprint(path, result.packed === "plain" ? result.end.offset : statOf(path).size);
}
