import { levelWidth, packedLevels, readHybrid, varint } from "./parquetLevels.ts";
import { numberIn, pageKinds, readHeader, type PagedColumn, type PageLocation, type Slice } from "./parquetPages.ts";
import type { ThriftFields } from "./thriftFields.ts";

/** What must be known of a column to cut rows out of its pages. */
export interface CutColumn extends PagedColumn {
  /** How deep a value may be missing. */
  definition: number;
  /** Bytes of a value; 0: it begins with its length. */
  width: number;
}

/** The beginnings of values in bytes. */
interface Values {
  bytes: Uint8Array;
  /** One more than there are values. */
  starts: Uint32Array;
}

interface DataPage {
  count: number;
  repetition: Uint8Array | null;
  definition: Uint8Array | null;
  values: Values;
  /** Places in `values`, where that is a dictionary. */
  places: Uint32Array | null;
}

/** Unpacked pages that are kept, of all columns of a file. */
const keptBytes = 8 * 1024 * 1024;

/** The pages used last. Without them every window of a search would unpack its pages again. */
export class PageCache {
  private readonly pages = new Map<string, { value: unknown; bytes: number }>();
  private bytes = 0;

  async get<T>(key: string, make: () => Promise<{ value: T; bytes: number }>): Promise<T> {
    const known = this.pages.get(key) ?? (await make());
    if (this.pages.delete(key)) this.bytes -= known.bytes;
    this.pages.set(key, known);
    this.bytes += known.bytes;
    for (const [oldest, { bytes }] of this.pages) {
      if (this.bytes <= keptBytes || oldest === key) break;
      this.pages.delete(oldest);
      this.bytes -= bytes;
    }
    return known.value as T;
  }

  clear(): void {
    this.pages.clear();
    this.bytes = 0;
  }
}

const [plain, plainDictionary, rle, dictionary] = [0, 2, 3, 8];

/**
 * Rows cut out of the pages of a column chunk, as one plain page of their own. A page of a few bytes can stand for a million
 * rows, and the decoder makes several lists of each: it gets the rows of a window and no others.
 * Null: the pages are written in a way that cannot be cut.
 */
export async function cutRows(slice: Slice, cache: PageCache, column: CutColumn, locations: readonly PageLocation[], from: number, to: number): Promise<Uint8Array | null> {
  const [repetition, definition, values]: [Uint8Array[], Uint8Array[], Uint8Array[]] = [[], [], []];
  let count = 0;
  for (const [place, location] of locations.entries()) {
    const next = locations[place + 1];
    let row = Number(location.first_row_index);
    if (row >= to) break;
    if (next !== undefined && Number(next.first_row_index) <= from) continue;
    const pages = await cache.get(`${location.offset} ${location.compressed_page_size}`, () => pagesAt(slice, cache, column, location));
    if (pages === null) return null;
    for (const page of pages) {
      const [first, last, after] = placesOf(page, row, from, to);
      row = after;
      if (first >= last) continue;
      count += last - first;
      if (page.repetition !== null) repetition.push(page.repetition.subarray(first, last));
      if (page.definition !== null) definition.push(page.definition.subarray(first, last));
      const begin = stored(page, column, 0, first);
      pushValues(page, begin, begin + stored(page, column, first, last), values);
    }
  }
  const levels = [...(column.repetition > 0 ? [packedLevels(repetition, levelWidth(column.repetition))] : []), ...(column.definition > 0 ? [packedLevels(definition, levelWidth(column.definition))] : [])];
  const body = Buffer.concat([...levels, ...values]);
  return Buffer.concat([pageHeader(count, body.length), body]);
}

/** Where the rows are in a page whose first row is `row`, or follows the one before it; and the row after the page. */
function placesOf({ count, repetition }: DataPage, row: number, from: number, to: number): [first: number, last: number, after: number] {
  if (repetition === null) return [Math.max(0, Math.min(count, from - row)), Math.max(0, Math.min(count, to - row)), row + count];
  // Counts the rows that began: a page that goes on with a row belongs to the one before.
  let [first, last] = [count, count];
  let begun = row;
  for (let at = 0; at < count; at++) {
    if (repetition[at] === 0) begun++;
    if (first === count && begun > from) first = at;
    if (begun > to) {
      last = at;
      break;
    }
  }
  for (let at = last + 1; at < count; at++) if (repetition[at] === 0) begun++;
  return [first, last, begun];
}

/** How many values are there for these levels. */
function stored({ definition }: DataPage, column: CutColumn, from: number, to: number): number {
  if (definition === null) return to - from;
  let count = 0;
  for (let at = from; at < to; at++) if (definition[at] === column.definition) count++;
  return count;
}

function pushValues({ values: { bytes, starts }, places }: DataPage, from: number, to: number, into: Uint8Array[]): void {
  if (places === null) {
    into.push(bytes.subarray(starts[from], starts[to]));
    return;
  }
  for (let at = from; at < to; at++) {
    const place = places[at] as number;
    const [start, end] = [starts[place], starts[place + 1]];
    if (start === undefined || end === undefined) throw new Error("a page names a value that its dictionary lacks");
    into.push(bytes.subarray(start, end));
  }
}

async function pagesAt(slice: Slice, cache: PageCache, column: CutColumn, { offset, compressed_page_size: size }: PageLocation): Promise<{ value: DataPage[] | null; bytes: number }> {
  const packed = new Uint8Array(await slice(Number(offset), Number(offset) + size));
  const [pages, sizes]: [DataPage[], number[]] = [[], []];
  for (let at = 0; at < packed.length; ) {
    const { fields, end } = await readHeader((from, to) => packed.slice(from, to).buffer, at, packed.length);
    const [kind, length] = [numberIn(fields, 1), numberIn(fields, 3)];
    at = end + length;
    if (kind !== pageKinds.data && kind !== pageKinds.dataV2) continue;
    const page = await dataPage(slice, cache, column, fields, packed.subarray(end, at));
    if (page === null) return { value: null, bytes: 64 };
    pages.push(page);
    sizes.push(page.values.bytes.length + page.values.starts.length * 4 + page.count * 2 + (page.places?.length ?? 0) * 4);
  }
  return { value: pages, bytes: sizes.reduce((sum, bytes) => sum + bytes, 64) };
}

async function dataPage(slice: Slice, cache: PageCache, column: CutColumn, fields: ThriftFields, packed: Uint8Array): Promise<DataPage | null> {
  const second = numberIn(fields, 1) === pageKinds.dataV2;
  const about = second ? fields[8] : fields[5];
  const [count, encoding] = [numberIn(about, 1), numberIn(about, second ? 4 : 2)];
  if (encoding !== plain && encoding !== plainDictionary && encoding !== dictionary) return null;
  let [bytes, at, repetition, definition]: [Uint8Array, number, Uint8Array | null, Uint8Array | null] = [packed, 0, null, null];
  if (second) {
    const [missing, lists] = [numberIn(about, 5), numberIn(about, 6)];
    repetition = column.repetition > 0 ? levels(packed, 0, column.repetition, count) : null;
    definition = column.definition > 0 ? levels(packed, lists, column.definition, count) : null;
    const body = packed.subarray(lists + missing);
    const isPacked = typeof about !== "object" || about[7] !== 0;
    bytes = isPacked && body.length > 0 ? column.unpack(body, numberIn(fields, 2) - lists - missing) : body;
  } else {
    bytes = column.unpack(packed, numberIn(fields, 2));
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const next = (most: number): Uint8Array | null => {
      if (most === 0) return null;
      const read = levels(bytes, at + 4, most, count);
      at += 4 + view.getUint32(at, true);
      return read;
    };
    [repetition, definition] = [next(column.repetition), next(column.definition)];
  }
  const page: DataPage = { count, repetition, definition, values: { bytes, starts: new Uint32Array(0) }, places: null };
  const present = stored(page, column, 0, count);
  if (encoding === plain) return { ...page, values: valuesIn(bytes, at, present, column.width) };
  const values = await cache.get(`dictionary ${column.start}`, () => dictionaryOf(slice, column));
  const places = new Uint32Array(present);
  const width = bytes[at] ?? 0;
  if (width > 0) readHybrid(bytes, at + 1, width, places);
  return { ...page, values, places };
}

function levels(bytes: Uint8Array, at: number, most: number, count: number): Uint8Array {
  const read = new Uint8Array(count);
  readHybrid(bytes, at, levelWidth(most), read);
  return read;
}

async function dictionaryOf(slice: Slice, column: CutColumn): Promise<{ value: Values; bytes: number }> {
  const { fields, end } = await readHeader(slice, column.start, column.end);
  if (numberIn(fields, 1) !== pageKinds.dictionary) throw new Error("a column names a dictionary that it does not have");
  const bytes = column.unpack(new Uint8Array(await slice(end, end + numberIn(fields, 3))), numberIn(fields, 2));
  const value = valuesIn(bytes, 0, numberIn(fields[7], 1), column.width);
  return { value, bytes: bytes.length + value.starts.length * 4 };
}

function valuesIn(bytes: Uint8Array, from: number, count: number, width: number): Values {
  const starts = new Uint32Array(count + 1);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = from;
  for (let i = 0; i < count; i++) {
    starts[i] = at;
    at += width > 0 ? width : 4 + view.getUint32(at, true);
  }
  starts[count] = at;
  if (at > bytes.length) throw new Error("the values of a page are damaged");
  return { bytes, starts };
}

/** The header of a plain data page, in Thrift's compact form. */
function pageHeader(count: number, size: number): Buffer {
  const int = (value: number): number[] => [0x15, ...varint(value * 2)];
  return Buffer.from([...int(pageKinds.data), ...int(size), ...int(size), 0x2c, ...int(count), ...int(plain), ...int(rle), ...int(rle), 0, 0]);
}
