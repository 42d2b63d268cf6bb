import type { FileHandle } from "node:fs/promises";
import { parquetMetadataAsync, parquetReadObjects, parquetSchema, readOffsetIndex, type AsyncBuffer, type ColumnChunk, type ColumnMetaData, type FileMetaData, type RowGroup, type SchemaTree } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { AppError, messageOf } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { stampOf } from "./byteFeed.ts";
import type { DatasetReader, DatasetRow, DatasetStatus, FindOptions, FindRequest } from "./datasetReader.ts";
import { cutRows, PageCache, type CutColumn } from "./parquetCut.ts";
import { rowJson, timeParsers } from "./parquetJson.ts";
import { ColumnPages, type PageLocation } from "./parquetPages.ts";
import { ReaderEnd } from "./readerEnd.ts";
import { TextMatcher } from "./textMatcher.ts";

/** Unpacked bytes that are decoded at a time, about, and JSON text that is kept. */
const windowBytes = 512 * 1024;
const keptBytes = 4 * 1024 * 1024;
const mostRows = 512;
/** Pages are unpacked as a whole: more bytes of them at a time are refused, so that memory stays bounded. */
const mostPageBytes = 256 * 1024 * 1024;
/** A column of a row group with no more bytes and values is read as a whole. A few bytes can stand for a million values. */
const smallColumn = { bytes: 1024 * 1024, values: 8192 };

/** Values of fixed width, in bytes; 0: each begins with its length. */
const widths: Partial<Record<ColumnMetaData["type"], number>> = { BYTE_ARRAY: 0, INT32: 4, INT64: 8, INT96: 12, FLOAT: 4, DOUBLE: 8 };

/** What the decoder is given for a window: the file's own metadata, with columns of which only the rows of the window are left. */
interface Plan {
  file: AsyncBuffer;
  metadata: FileMetaData;
  pageLocationsByGroup: Record<string, PageLocation[]>[];
}

/** A Parquet file, read by windows of rows: only the pages of the window. Where the file has no index of them, it is made on the way. */
export class ParquetReader extends ReaderEnd implements DatasetReader {
  readonly kind = "parquet";
  private readonly buffer: AsyncBuffer;
  private readonly metadata: FileMetaData;
  private readonly pageLimit: number;
  /** Where pages are, by row group and column, for columns that the file has no page index of. */
  private readonly pages = new Map<ColumnMetaData, ColumnPages>();
  private readonly windowRows: number;
  private readonly rowCount: number;
  private readonly stamp: string | undefined;
  /** From the file's own page indexes. */
  private readonly indexes = new Map<ColumnMetaData, PageLocation[]>();
  private readonly cache = new PageCache();
  /** Rows as JSON text, by window; the one used last is at the end. */
  private readonly windows = new Map<number, Buffer[]>();
  private readonly loading = new Map<number, Promise<Buffer[]>>();
  private kept = 0;

  private constructor(path: string, file: FileHandle, buffer: AsyncBuffer, metadata: FileMetaData, pageLimit: number) {
    super(path, () => file.close());
    this.pageLimit = pageLimit;
    this.buffer = buffer;
    this.metadata = metadata;
    this.rowCount = Number(metadata.num_rows);
    const bytes = metadata.row_groups.reduce((sum, group) => sum + Number(group.total_byte_size), 0);
    this.windowRows = Math.max(1, Math.min(mostRows, Math.floor(windowBytes / Math.max(1, bytes / Math.max(1, this.rowCount)))));
    this.stamp = stampOf(path)?.stamp;
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
      throw new AppError("bad-input", t("{0} is not a whole Parquet file ({1}): it may have been cut, or is still being written.", path, messageOf(error)), { cause: error });
    }
  }

  status(): DatasetStatus {
    const { byteLength } = this.buffer;
    return { rows: this.rowCount, complete: true, done: byteLength, total: byteLength, notes: [], changed: this.changed };
  }

  async *rowsFrom(first: number, limit: number, signal?: AbortSignal): AsyncGenerator<DatasetRow> {
    for (let row = first; row < this.rowCount; ) {
      signal?.throwIfAborted();
      const rows = await this.window(Math.floor(row / this.windowRows));
      for (const text of rows.slice(row % this.windowRows)) {
        yield { row, line: row + 1, offset: 0, length: text.length, bytes: text.subarray(0, limit), cut: text.length > limit, ended: true };
        row++;
      }
      if (rows.length < this.windowRows && row < this.rowCount) throw new AppError("bad-input", t("{0} holds fewer rows than it says: row {1} is missing.", this.path, row + 1));
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

  protected look(): void {
    if (stampOf(this.path)?.stamp !== this.stamp) this.tellChanged();
  }

  protected override forget(): void {
    this.windows.clear();
    this.cache.clear();
  }

  private async window(index: number): Promise<Buffer[]> {
    this.mustBeOpen();
    const known = this.windows.get(index);
    if (known !== undefined) {
      this.windows.delete(index);
      this.windows.set(index, known);
      return known;
    }
    let loading = this.loading.get(index);
    if (loading === undefined) {
      loading = this.holding(this.load(index)).finally(() => this.loading.delete(index));
      this.loading.set(index, loading);
    }
    return loading;
  }

  private async load(index: number): Promise<Buffer[]> {
    const rowStart = index * this.windowRows;
    const rowEnd = Math.min(this.rowCount, rowStart + this.windowRows);
    let rows: Buffer[];
    try {
      // The last option is hyparquet's own way from its planner to its readers; only its types do not know it.
      const read = await parquetReadObjects({ ...(await this.plan(rowStart, rowEnd)), rowStart, rowEnd, compressors, utf8: false, useOffsetIndex: true, parsers: timeParsers });
      rows = read.map((row) => Buffer.from(rowJson(row), "utf8"));
    } catch (error) {
      throw new AppError("bad-input", t("Rows {0} to {1} of {2} cannot be read: {3}.", rowStart + 1, rowEnd, this.path, messageOf(error)), { cause: error });
    }
    if (this.disposed) return rows;
    this.windows.set(index, rows);
    this.kept += sizeOf(rows);
    for (const [oldest, texts] of this.windows) {
      if (this.kept <= keptBytes || oldest === index) break;
      this.windows.delete(oldest);
      this.kept -= sizeOf(texts);
    }
    return rows;
  }

  /** Where these rows are, for columns that are not read as a whole. */
  private async plan(rowStart: number, rowEnd: number): Promise<Plan> {
    const { byteLength } = this.buffer;
    const groups: RowGroup[] = [];
    const pageLocationsByGroup: Plan["pageLocationsByGroup"] = [];
    /** Pages that are in no file, one after the other behind its end. */
    const cut: { start: number; bytes: Uint8Array }[] = [];
    let [first, bytes, end] = [0, 0, byteLength];
    for (const [at, group] of this.metadata.row_groups.entries()) {
      const [from, to] = [Math.max(0, rowStart - first), Math.min(rowEnd - first, Number(group.num_rows))];
      first += Number(group.num_rows);
      groups.push(group);
      if (from >= to) continue;
      const known: Record<string, PageLocation[]> = {};
      const columns: ColumnChunk[] = [];
      for (const chunk of group.columns) {
        columns.push(chunk);
        const { meta_data: about } = chunk;
        if (about === undefined) continue;
        const size = Number(about.total_uncompressed_size);
        if ((size <= smallColumn.bytes && Number(about.num_values) <= smallColumn.values) || to - from === Number(group.num_rows)) {
          bytes += size;
          continue;
        }
        const column = cutColumn(this.metadata, about);
        const { locations, unpacked } = await this.pagesOf(chunk, about, column, from, to);
        bytes += unpacked;
        if (bytes > this.pageLimit) break;
        const page = column.width === null || locations.length === 0 ? null : await cutRows(this.slice, this.cache, { ...column, width: column.width }, locations, from, to);
        const path = about.path_in_schema.join(".");
        if (page !== null) {
          const { dictionary_page_offset: _, ...rest } = about;
          columns[columns.length - 1] = { ...chunk, meta_data: { ...rest, codec: "UNCOMPRESSED", data_page_offset: BigInt(end), total_compressed_size: BigInt(page.length) } };
          known[path] = [{ offset: BigInt(end), compressed_page_size: page.length, first_row_index: BigInt(from) }];
          cut.push({ start: end, bytes: page });
          end += page.length;
        } else if (locations.length > 0) known[path] = locations;
      }
      groups[at] = { ...group, columns };
      pageLocationsByGroup[at] = known;
    }
    if (bytes > this.pageLimit) throw new Error(t("their pages have {0} bytes, which would have to be unpacked as a whole; write the file with smaller pages (data_page_size) and row groups (row_group_size)", bytes));
    const file: AsyncBuffer = {
      byteLength: end,
      slice: (from, to = end) => {
        if (from < byteLength) return this.buffer.slice(from, to);
        const part = cut.find(({ start }) => start === from)?.bytes ?? new Uint8Array(0);
        // A copy of its own: the decoder keeps views of it, and looks at it from its beginning.
        return new Uint8Array(part.subarray(0, to - from)).buffer;
      },
    };
    return { file, metadata: { ...this.metadata, row_groups: groups }, pageLocationsByGroup };
  }

  private readonly slice = (from: number, to: number): ArrayBuffer | Promise<ArrayBuffer> => this.buffer.slice(from, to);

  private async pagesOf({ offset_index_offset: offset, offset_index_length: length = 0 }: ColumnChunk, about: ColumnMetaData, column: CutColumnOf, from: number, to: number): Promise<{ locations: PageLocation[]; unpacked: number }> {
    if (offset !== undefined && length > 0) {
      const known = this.indexes.get(about) ?? readOffsetIndex({ view: new DataView(await this.buffer.slice(Number(offset), Number(offset) + length)), offset: 0 }).page_locations;
      this.indexes.set(about, known);
      return { locations: known, unpacked: 0 };
    }
    const pages = this.pages.get(about) ?? new ColumnPages(this.slice, column);
    this.pages.set(about, pages);
    await pages.upTo(to);
    return { locations: pages.locations, unpacked: pages.bytesOf(from, to) };
  }
}

/** `width` null: single values cannot be told apart by their bytes. */
type CutColumnOf = Omit<CutColumn, "width"> & { width: number | null };

function cutColumn(metadata: FileMetaData, { codec, type, path_in_schema: path, dictionary_page_offset: dictionary, data_page_offset: data, total_compressed_size: size }: ColumnMetaData): CutColumnOf {
  const start = Number(dictionary || data);
  let [node, repetition, definition]: [SchemaTree | undefined, number, number] = [parquetSchema(metadata), 0, 0];
  for (const name of path) {
    node = node?.children.find(({ element }) => element.name === name);
    if (node?.element.repetition_type === "REPEATED") repetition++;
    if (node?.element.repetition_type !== "REQUIRED") definition++;
  }
  return {
    start,
    end: start + Number(size),
    repetition,
    definition,
    width: type === "FIXED_LEN_BYTE_ARRAY" ? node?.element.type_length || null : widths[type] ?? null,
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
