import type { FileHandle } from "node:fs/promises";
import { parquetMetadataAsync, parquetReadObjects, parquetSchema, type AsyncBuffer, type ColumnMetaData, type FileMetaData, type SchemaTree } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { toDisposable, type Disposable } from "../../util/disposable.ts";
import { AppError, messageOf } from "../../util/errors.ts";
import { stampOf } from "./byteFeed.ts";
import type { DatasetReader, DatasetRow, DatasetStatus, FindOptions, FindRequest } from "./datasetReader.ts";
import { Throttle, watchDataset } from "./fileWatch.ts";
import { rowJson, timeParsers } from "./parquetJson.ts";
import { ColumnPages, type PagedColumn, type PageLocation } from "./parquetPages.ts";
import { TextMatcher } from "./textMatcher.ts";

/** Unpacked bytes that are decoded at a time, about, and JSON text that is kept. */
const windowBytes = 2 * 1024 * 1024;
const keptBytes = 12 * 1024 * 1024;
const mostRows = 512;
/** Pages are unpacked as a whole: more bytes of them at a time are refused, so that memory stays bounded. */
const mostPageBytes = 256 * 1024 * 1024;
/** A column of a row group with no more bytes and values is read as a whole. A few bytes can stand for a million values. */
const smallColumn = { bytes: 1024 * 1024, values: 8192 };

/** A Parquet file, read by windows of rows: only the pages of the window. Where the file has no index of them, it is made on the way. */
export class ParquetReader implements DatasetReader {
  readonly kind = "parquet";
  readonly path: string;
  private readonly file: FileHandle;
  private readonly buffer: AsyncBuffer;
  private readonly metadata: FileMetaData;
  private readonly pageLimit: number;
  /** Where pages are, by row group and column, for columns that the file has no page index of. */
  private readonly pages = new Map<ColumnMetaData, ColumnPages>();
  private readonly windowRows: number;
  private readonly rowCount: number;
  private readonly stamp: string | undefined;
  private readonly watch: Disposable;
  private readonly listeners = new Set<() => void>();
  private readonly throttle = new Throttle(() => this.listeners.forEach((run) => run()));
  /** Rows as JSON text, by window; the one used last is at the end. */
  private readonly windows = new Map<number, Buffer[]>();
  private readonly loading = new Map<number, Promise<Buffer[]>>();
  private kept = 0;
  private changed = false;
  private disposed = false;

  private constructor(path: string, file: FileHandle, buffer: AsyncBuffer, metadata: FileMetaData, pageLimit: number) {
    this.pageLimit = pageLimit;
    this.path = path;
    this.file = file;
    this.buffer = buffer;
    this.metadata = metadata;
    this.rowCount = Number(metadata.num_rows);
    const bytes = metadata.row_groups.reduce((sum, group) => sum + Number(group.total_byte_size), 0);
    this.windowRows = Math.max(1, Math.min(mostRows, Math.floor(windowBytes / Math.max(1, bytes / Math.max(1, this.rowCount)))));
    this.stamp = stampOf(path)?.stamp;
    this.watch = watchDataset(path, () => {
      if (this.changed || stampOf(path)?.stamp === this.stamp) return;
      this.changed = true;
      this.throttle.now();
    });
  }

  /** Takes the file over when it succeeds. AppError("bad-input"). */
  static async open(path: string, file: FileHandle, pageLimit = mostPageBytes): Promise<ParquetReader> {
    const { size } = await file.stat();
    const buffer: AsyncBuffer = {
      byteLength: size,
      async slice(start, end = size) {
        const [from, to] = [start < 0 ? Math.max(0, size + start) : start, end < 0 ? size + end : Math.min(end, size)];
        // A fresh buffer of its own: the decoder keeps views of it.
        const target = new ArrayBuffer(Math.max(0, to - from));
        for (let at = 0; at < target.byteLength; ) {
          const { bytesRead } = await file.read(new Uint8Array(target), at, target.byteLength - at, from + at);
          if (bytesRead === 0) throw new Error(`the file ends at byte ${from + at}`);
          at += bytesRead;
        }
        return target;
      },
    };
    try {
      return new ParquetReader(path, file, buffer, await parquetMetadataAsync(buffer), pageLimit);
    } catch (error) {
      throw new AppError("bad-input", `${path} is not a whole Parquet file (${messageOf(error)}): it may have been cut, or is still being written.`, { cause: error });
    }
  }

  status(): DatasetStatus {
    const { byteLength } = this.buffer;
    return { rows: this.rowCount, complete: true, done: byteLength, total: byteLength, notes: [], changed: this.changed };
  }

  onDidChange(run: () => void): Disposable {
    this.listeners.add(run);
    return toDisposable(() => this.listeners.delete(run));
  }

  async *rowsFrom(first: number, limit: number, signal?: AbortSignal): AsyncGenerator<DatasetRow> {
    for (let row = first; row < this.rowCount; ) {
      signal?.throwIfAborted();
      const rows = await this.window(Math.floor(row / this.windowRows));
      for (const text of rows.slice(row % this.windowRows)) {
        yield { row, line: row + 1, offset: 0, length: text.length, bytes: text.subarray(0, limit), cut: text.length > limit, ended: true };
        row++;
      }
      if (rows.length < this.windowRows && row < this.rowCount) throw new AppError("bad-input", `${this.path} holds fewer rows than it says: row ${row + 1} is missing.`);
    }
  }

  async rowOfLine(line: number): Promise<number | null> {
    return line >= 1 && line <= this.rowCount ? line - 1 : null;
  }

  async find({ text, matchCase, from, direction }: FindRequest, { signal, onProgress }: FindOptions): Promise<number | null> {
    const matcher = new TextMatcher(text, matchCase);
    const size = this.windowRows;
    for (let at = Math.floor(from / size); at >= 0 && at * size < this.rowCount; at += direction) {
      signal.throwIfAborted();
      const rows = await this.window(at);
      const [low, high] = direction === 1 ? [Math.max(0, from - at * size), rows.length - 1] : [0, Math.min(rows.length - 1, from - at * size)];
      for (let i = direction === 1 ? low : high; i >= low && i <= high; i += direction) if (matcher.first(rows[i] as Buffer) >= 0) return at * size + i;
      onProgress?.(Math.abs(at * size - from) / Math.max(1, direction === 1 ? this.rowCount - from : from));
      // Decoding runs without a pause: let the editor breathe between windows.
      await new Promise((resolve) => setImmediate(resolve));
    }
    return null;
  }

  dispose(): void {
    if (this.disposed) return;
    this.disposed = true;
    this.watch.dispose();
    this.throttle.dispose();
    this.listeners.clear();
    this.windows.clear();
    void Promise.allSettled(this.loading.values()).then(() => this.file.close()).catch(() => {});
  }

  private async window(index: number): Promise<Buffer[]> {
    if (this.disposed) throw new Error(`${this.path} was closed.`);
    const known = this.windows.get(index);
    if (known !== undefined) {
      this.windows.delete(index);
      this.windows.set(index, known);
      return known;
    }
    let loading = this.loading.get(index);
    if (loading === undefined) {
      loading = this.load(index).finally(() => this.loading.delete(index));
      this.loading.set(index, loading);
    }
    return loading;
  }

  private async load(index: number): Promise<Buffer[]> {
    const rowStart = index * this.windowRows;
    const rowEnd = Math.min(this.rowCount, rowStart + this.windowRows);
    let rows: Buffer[];
    try {
      // The option is hyparquet's own way from its planner to its readers; only its types do not know it.
      const pageLocationsByGroup = await this.locate(rowStart, rowEnd);
      const options = { file: this.buffer, metadata: this.metadata, rowStart, rowEnd, compressors, utf8: false, useOffsetIndex: true, parsers: timeParsers, pageLocationsByGroup };
      const read = await parquetReadObjects(options);
      rows = read.map((row) => Buffer.from(rowJson(row), "utf8"));
    } catch (error) {
      throw new AppError("bad-input", `Rows ${rowStart + 1} to ${rowEnd} of ${this.path} cannot be read: ${messageOf(error)}.`, { cause: error });
    }
    this.windows.set(index, rows);
    this.kept += sizeOf(rows);
    for (const [oldest, texts] of this.windows) {
      if (this.kept <= keptBytes || oldest === index) break;
      this.windows.delete(oldest);
      this.kept -= sizeOf(texts);
    }
    return rows;
  }

  /** By row group and column path: where the pages of these rows are, for the columns that have no page index. */
  private async locate(rowStart: number, rowEnd: number): Promise<Record<string, PageLocation[]>[]> {
    const found: Record<string, PageLocation[]>[] = [];
    let [first, bytes] = [0, 0];
    for (const [at, group] of this.metadata.row_groups.entries()) {
      const [from, to] = [Math.max(0, rowStart - first), Math.min(rowEnd - first, Number(group.num_rows))];
      first += Number(group.num_rows);
      if (from >= to) continue;
      const known: Record<string, PageLocation[]> = {};
      for (const { offset_index_offset: index, meta_data: about } of group.columns) {
        if (index !== undefined || about === undefined) continue;
        const size = Number(about.total_uncompressed_size);
        if ((size <= smallColumn.bytes && Number(about.num_values) <= smallColumn.values) || to - from === Number(group.num_rows)) {
          bytes += size;
          continue;
        }
        const pages = this.pages.get(about) ?? new ColumnPages((from, to) => this.buffer.slice(from, to), pagedColumn(this.metadata, about));
        this.pages.set(about, pages);
        await pages.upTo(to);
        bytes += pages.bytesOf(from, to);
        if (pages.locations.length > 0) known[about.path_in_schema.join(".")] = pages.locations;
      }
      found[at] = known;
    }
    if (bytes > this.pageLimit) throw new Error(`their pages have ${bytes} bytes, which would have to be unpacked as a whole; write the file with smaller pages (data_page_size) and row groups (row_group_size)`);
    return found;
  }
}

function pagedColumn(metadata: FileMetaData, { codec, path_in_schema: path, dictionary_page_offset: dictionary, data_page_offset: data, total_compressed_size: size }: ColumnMetaData): PagedColumn {
  const start = Number(dictionary || data);
  let [node, repetition]: [SchemaTree | undefined, number] = [parquetSchema(metadata), 0];
  for (const name of path) {
    node = node?.children.find(({ element }) => element.name === name);
    if (node?.element.repetition_type === "REPEATED") repetition++;
  }
  return {
    start,
    end: start + Number(size),
    repetition,
    unpack(bytes, length) {
      if (codec === "UNCOMPRESSED") return bytes;
      const decompress = compressors[codec];
      if (decompress === undefined) throw new Error(`pages packed with ${codec} are not read`);
      return decompress(bytes, length);
    },
  };
}

function sizeOf(rows: readonly Buffer[]): number {
  return rows.reduce((sum, { length }) => sum + length + 64, 0);
}
