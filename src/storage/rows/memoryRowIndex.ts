import type { RowProblem } from "../../domain/rows/readRow.ts";
import type { FileRecord, PageStore } from "./pageStore.ts";
import { PagedRowIndex } from "./pagedRowIndex.ts";
import type { WorkerSetup } from "./workerPool.ts";
import type { RowIndex } from "./rowIndex.ts";
import type { RowPage } from "./rowPages.ts";

/** A row index that lives as long as the process: for tests, and where SQLite cannot be loaded. */
export function memoryRowIndex(workers: WorkerSetup | null = null): RowIndex {
  return new PagedRowIndex(new MemoryPageStore(), workers);
}

class MemoryPageStore implements PageStore {
  private readonly records = new Map<string, FileRecord>();
  private readonly segments = new Map<number, { pages: RowPage[]; problems: RowProblem[] }>();
  private lastId = 0;

  load(path: string): FileRecord | null {
    return this.records.get(path) ?? null;
  }

  paths(): string[] {
    return [...this.records.keys()].sort();
  }

  async newSegment(): Promise<number> {
    this.segments.set(++this.lastId, { pages: [], problems: [] });
    return this.lastId;
  }

  async write(segment: number, firstPage: number, pages: readonly RowPage[], problems: readonly RowProblem[]): Promise<void> {
    const entry = this.segments.get(segment);
    entry?.pages.splice(firstPage, pages.length, ...pages);
    entry?.problems.push(...problems);
  }

  async commit(record: FileRecord, expectedRevision: number): Promise<boolean> {
    if ((this.records.get(record.path)?.revision ?? 0) !== expectedRevision) return false;
    this.records.set(record.path, record);
    return true;
  }

  async drop(segments: readonly number[]): Promise<void> {
    for (const id of segments) this.segments.delete(id);
  }

  page(segment: number, index: number): RowPage | null {
    return this.segments.get(segment)?.pages[index] ?? null;
  }

  hashes(segment: number, index: number, kind: "full" | "turns"): Uint8Array | null {
    const page = this.page(segment, index);
    return page === null ? null : kind === "full" ? page.hashes : page.turns;
  }

  problems(segment: number, first: number, last: number, limit: number): RowProblem[] {
    const all = this.segments.get(segment)?.problems ?? [];
    return all.filter(({ line }) => line >= first && line <= last).slice(0, limit);
  }

  async forget(path: string): Promise<void> {
    const record = this.records.get(path);
    if (record === undefined) return;
    await this.drop([...record.segments, ...(record.tail ? [record.tail] : [])].map(({ id }) => id));
    this.records.delete(path);
  }

  dispose(): void {
    this.records.clear();
    this.segments.clear();
  }
}
