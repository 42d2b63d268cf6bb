import assert from "node:assert/strict";
import { appendFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { open as openFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync, zstdCompressSync } from "node:zlib";
import type { DatasetReader, DatasetRow, OpenDatasetOptions } from "../../../../src/storage/datasets/datasetReader.ts";
import { openDataset } from "../../../../src/storage/datasets/openDataset.ts";
import { parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { rowJson, timeParsers } from "../../../../src/storage/datasets/parquetJson.ts";
import { packedLevels, readHybrid } from "../../../../src/storage/datasets/parquetLevels.ts";
import { rowStarts } from "../../../../src/storage/datasets/parquetPages.ts";
import { ParquetReader } from "../../../../src/storage/datasets/parquetReader.ts";
import { AppError } from "../../../../src/util/errors.ts";

const dir = mkdtempSync(join(tmpdir(), "seesaw-datasets-"));
const spillDir = join(dir, "spill");
const fixtures = join(dirname(fileURLToPath(import.meta.url)), "../../../fixtures/datasets");
const open: DatasetReader[] = [];
after(() => {
  for (const reader of open) reader.dispose();
  rmSync(dir, { recursive: true, force: true });
});

let files = 0;
function write(content: string | Uint8Array, ending = "jsonl"): string {
  const path = join(dir, `${files++}.${ending}`);
  writeFileSync(path, content);
  return path;
}

async function reader(path: string, options: Partial<OpenDatasetOptions> = {}): Promise<DatasetReader> {
  const opened = await openDataset(path, { spillDir, ...options });
  open.push(opened);
  return opened;
}

async function until(what: string, look: () => boolean): Promise<void> {
  for (const deadline = Date.now() + 15_000; !look(); await new Promise((wake) => setTimeout(wake, 20))) {
    if (Date.now() > deadline) assert.fail(`${what}: not within 15 s`);
  }
}

/** Opened and looked through to the end. */
async function whole(path: string, options: Partial<OpenDatasetOptions> = {}): Promise<DatasetReader> {
  const opened = await reader(path, options);
  await until("the whole file", () => opened.status().complete);
  return opened;
}

async function rows(opened: DatasetReader, first = 0, count = Infinity, limit = 1 << 20): Promise<DatasetRow[]> {
  const found: DatasetRow[] = [];
  for await (const row of opened.rowsFrom(first, limit)) {
    found.push(row);
    if (found.length >= count) break;
  }
  return found;
}

const text = (row: DatasetRow | undefined): string => Buffer.from(row?.bytes ?? []).toString();
const find = (opened: DatasetReader, what: string, from: number, direction: 1 | -1 = 1, matchCase = false): Promise<number | null> => opened.find({ text: what, from, direction, matchCase }, { signal: new AbortController().signal });
/** Rows of unlike length, so that anchors stand at odd places. */
const line = (i: number): string => JSON.stringify({ id: i, text: `row ${i} ${"x".repeat((i * 37) % 900)}` });
const many = Array.from({ length: 5000 }, (_, i) => line(i));

test("lines end at LF only; CR, a byte order mark and blank lines are not part of rows", async () => {
  const opened = await whole(write('\ufeff{"a":1}\r\n\r\n  \n{"a":"x\u2028y"}\n{"a":3}\r{"b":4}\n\n{"last":true}'));
  const found = await rows(opened);
  assert.equal(opened.status().rows, 4);
  assert.deepEqual(found.map(text), ['{"a":1}', '{"a":"x\u2028y"}', '{"a":3}\r{"b":4}', '{"last":true}']);
  assert.deepEqual(found.map((row) => row.line), [1, 4, 5, 7]);
  assert.deepEqual(found.map((row) => row.offset), [3, 17, 31, 48]);
  assert.deepEqual(found.map((row) => row.ended), [true, true, true, false]);
  assert.deepEqual(opened.status().notes.map(({ code }) => code), ["bom"]);
  assert.equal(await opened.rowOfLine(5), 2);
  assert.equal(await opened.rowOfLine(2), 1, "a blank line leads to the row after it");
  assert.equal(await opened.rowOfLine(99), null);
});

test("every row is found from wherever one starts", async () => {
  const opened = await whole(write(`${many.join("\n")}\n`));
  assert.equal(opened.status().rows, many.length);
  for (const first of [0, 1, 255, 256, 257, 4095, 4999]) {
    const [row] = await rows(opened, first, 1);
    assert.deepEqual([row?.row, row?.line, text(row)], [first, first + 1, many[first]]);
    assert.equal(await opened.rowOfLine(first + 1), first);
  }
  assert.deepEqual((await rows(opened, 4990)).map(text), many.slice(4990));
  assert.deepEqual(await rows(opened, 5000), []);
});

test("the index takes at most 8 bytes for 64 rows", async () => {
  const opened = await whole(write("{}\n".repeat(2_000_000)));
  assert.equal(opened.status().rows, 2_000_000);
  const { indexBytes } = opened as unknown as { indexBytes: number };
  // The table doubles as it grows: half of it may be empty.
  assert.ok(indexBytes / 2 <= (2_000_000 / 64) * 8, `${indexBytes}`);
  assert.equal((await rows(opened, 1_999_999))[0]?.offset, 1_999_999 * 3);
});

test("a huge row is cut where asked, and its length is known", async () => {
  const huge = JSON.stringify({ text: "y".repeat(3_000_000) });
  const opened = await whole(write(`{"a":1}\n${huge}\n{"b":2}\n`));
  const [, cut, next] = await rows(opened, 0, 3, 1000);
  assert.deepEqual([cut?.cut, cut?.bytes.length, cut?.length], [true, 1000, huge.length]);
  assert.equal(text(next), '{"b":2}');
  assert.equal(text((await rows(opened, 1, 1, 10_000_000))[0]), huge);
});

test("an empty file, and one of blank lines, have no rows", async () => {
  for (const content of ["", "\n\n \r\n", "\ufeff"]) {
    const opened = await whole(write(content));
    assert.equal(opened.status().rows, 0);
    assert.deepEqual(await rows(opened), []);
    assert.equal(await find(opened, "x", 0), null);
  }
});

test("what is appended while the file is open is read on; a last line without its end grows", async () => {
  const path = write('{"a":1}\n{"b":');
  const opened = await whole(path);
  assert.equal(opened.status().rows, 2);
  appendFileSync(path, '2}\n{"c":3}\n');
  await until("the new row", () => opened.status().rows === 3 && opened.status().complete);
  assert.deepEqual((await rows(opened)).map(text), ['{"a":1}', '{"b":2}', '{"c":3}']);
  assert.equal(opened.status().changed, false);
});

test("a file that was written anew, or is gone, is said to have changed", async () => {
  const path = write('{"a":1}\n{"b":2}\n');
  const opened = await whole(path);
  let calls = 0;
  opened.onDidChange(() => calls++);
  writeFileSync(path, '{"z":1}\n{"b":2}\n{"c":3}\n');
  utimesSync(path, new Date(), new Date(Date.now() + 5000));
  await until("the change", () => opened.status().changed);
  assert.ok(calls > 0);
  const gone = write("{}\n");
  const other = await whole(gone);
  rmSync(gone);
  await until("that it is gone", () => other.status().changed);
});

for (const [kind, pack] of [["gzip", gzipSync], ["zstd", zstdCompressSync]] as const) {
  const ending = kind === "gzip" ? "jsonl.gz" : "jsonl.zst";
  test(`${kind}: rows, search, and nothing left behind`, async () => {
    const opened = await whole(write(pack(`${many.join("\n")}\n`), ending));
    assert.equal(opened.kind, kind);
    assert.equal(opened.status().rows, many.length);
    assert.deepEqual((await rows(opened, 4000, 50)).map(text), many.slice(4000, 4050));
    assert.equal(await find(opened, "row 4321 ", 0), 4321);
    assert.deepEqual(opened.status().notes, []);
    opened.dispose();
    await until("the spill file is gone", () => readdirSync(spillDir).length === 0);
  });

  test(`${kind}: several archives one after the other are one file`, async () => {
    const opened = await whole(write(Buffer.concat([pack('{"a":1}\n'), pack('{"b":2}\n')]), ending));
    assert.deepEqual((await rows(opened)).map(text), ['{"a":1}', '{"b":2}']);
    const parts = Array.from({ length: 10 }, (_, i) => pack(`${many.slice(i * 500, i * 500 + 500).join("\n")}\n`));
    assert.deepEqual((await rows(await whole(write(Buffer.concat(parts), ending)))).map(text), many);
    assert.deepEqual(opened.status().notes, []);
  });

  test(`${kind}: an archive that ends early gives the rows before its end, and says so`, async () => {
    const packed = pack(Buffer.from(Array.from({ length: 60_000 }, (_, i) => JSON.stringify({ i, r: Math.sin(i) })).join("\n")));
    const opened = await whole(write(packed.subarray(0, Math.floor(packed.length / 2)), ending));
    assert.ok(opened.status().rows > 1000 && opened.status().rows < 60_000, `${opened.status().rows}`);
    assert.match(opened.status().notes[0]?.code ?? "", /^archive-(cut|damaged)$/);
    assert.equal(text((await rows(opened, 1000, 1))[0]), JSON.stringify({ i: 1000, r: Math.sin(1000) }));
  });

  test(`${kind}: damage in the middle keeps what is before it`, async () => {
    const packed = Buffer.from(pack(Buffer.from(Array.from({ length: 200_000 }, (_, i) => JSON.stringify({ i, r: Math.sin(i) })).join("\n"))));
    packed.fill(0x55, Math.floor(packed.length / 2), Math.floor(packed.length / 2) + 5000);
    const opened = await whole(write(packed, ending));
    assert.ok(opened.status().rows > 0);
    assert.equal(opened.status().notes[0]?.severity, "error");
  });

  test(`${kind}: an archive stops at the limit, and where the disk is full`, async () => {
    const path = write(pack("0123456789\n".repeat(1000)), ending);
    const limited = await whole(path, { spillLimit: 1100 });
    assert.equal(limited.status().rows, 100);
    assert.deepEqual(limited.status().notes.map(({ code }) => code), ["archive-too-large"]);
    const full = await whole(path, { keepFree: Number.MAX_SAFE_INTEGER });
    assert.equal(full.status().rows, 0);
    assert.deepEqual(full.status().notes.map(({ code }) => code), ["disk-full"]);
  });
}

test("spill files of processes that ended are removed, those of living ones stay", async () => {
  const [dead, living, other] = ["999999999-00ff.spill", `${process.pid}-00ff.spill`, "note.txt"].map((name) => join(spillDir, name)) as [string, string, string];
  for (const path of [dead, living, other]) writeFileSync(path, "x");
  await whole(write(gzipSync("{}\n"), "jsonl.gz"));
  assert.deepEqual([dead, living, other].map((path) => existsSync(path)), [false, true, true]);
  for (const path of [living, other]) rmSync(path);
});

test("search: next, previous, both cases, and the ways JSON writes a text", async () => {
  const content = ['{"t":"Gradient"}', '{"t":"gradient clipping"}', '{"t":"\\u4f60\\u597d \\u00e9"}', '{"t":"你好"}', '{"t":"say \\"hi\\"\\nthere"}', '{"t":"a/b"}', '{"t":"a\\/b"}', '{"t":"N"}', '{"t":"end"}'];
  const opened = await whole(write(`${content.join("\n")}\n`));
  assert.equal(await find(opened, "gradient", 0), 0);
  assert.equal(await find(opened, "gradient", 0, 1, true), 1);
  assert.equal(await find(opened, "gradient", 8, -1), 1);
  assert.equal(await find(opened, "gradient", 0, -1), 0);
  assert.equal(await find(opened, "gradient", 2), null);
  assert.equal(await find(opened, "你好", 0), 2);
  assert.equal(await find(opened, "你好", 3), 3);
  assert.equal(await find(opened, 'say "hi"\nthere', 0), 4);
  assert.equal(await find(opened, "a/b", 0), 5);
  assert.equal(await find(opened, "a/b", 6), 6);
  assert.equal(await find(opened, "\n", 0), 4, "the letter of an escape is no letter");
  assert.equal(await find(opened, ".*", 0), null, "plain text, no pattern");
  assert.equal(await find(opened, '"t":"END"', 0), 8, "a piece of the JSON itself");
});

test("search goes over the borders of what is read at once, in both directions", async () => {
  const filler = Array.from({ length: 9000 }, (_, i) => JSON.stringify({ i, t: "z".repeat(990) }));
  filler[4194] = JSON.stringify({ i: 4194, t: `${"z".repeat(480)}needle${"z".repeat(480)}` });
  const opened = await whole(write(`${filler.join("\n")}\n`));
  assert.ok(statSync(opened.path).size > 2 * 4 * 1024 * 1024);
  assert.equal(await find(opened, "needle", 0), 4194);
  assert.equal(await find(opened, "needle", 8999, -1), 4194);
  assert.equal(await find(opened, "needle", 4195), null);
  // The border itself: a match may begin in one read and end in the next.
  const cut = Buffer.alloc(4 * 1024 * 1024 + 100, 0x20);
  cut.write("needle", 4 * 1024 * 1024 - 3);
  cut.write("x", 0);
  const bordered = await whole(write(cut));
  assert.equal(await find(bordered, "needle", 0), 0);
});

test("a search is cancelled by its signal", async () => {
  const opened = await whole(write(`${many.join("\n")}\n`));
  const cancel = new AbortController();
  cancel.abort(new Error("stopped"));
  await assert.rejects(opened.find({ text: "nowhere", from: 0, direction: 1, matchCase: true }, { signal: cancel.signal }), /stopped/);
});

test("Parquet: nested rows by windows, search, and the end", async () => {
  for (const name of ["chat.snappy.parquet", "chat.zstd.parquet"]) {
    const opened = await reader(join(fixtures, name));
    assert.deepEqual([opened.kind, opened.status().rows, opened.status().complete], ["parquet", 300, true]);
    const found = await rows(opened, 99, 3);
    assert.deepEqual(found.map(({ row, line: number }) => [row, number]), [[99, 100], [100, 101], [101, 102]]);
    assert.deepEqual(JSON.parse(text(found[1])), { messages: [{ role: "user", content: "what is 100+100?" }, { role: "assistant", content: "so 200" }], id: 100 });
    assert.equal((await rows(opened)).length, 300);
    assert.equal(await find(opened, "SO 598", 0), 299);
    assert.equal(await find(opened, "what is 1+1", 299, -1), 1);
    assert.equal(await opened.rowOfLine(300), 299);
    assert.equal(await opened.rowOfLine(301), null);
  }
});

test("Parquet: integers keep every digit, times their precision, bytes are shown as such, in every compression", async () => {
  for (const codec of ["gzip", "brotli", "lz4", "none"]) {
    const found = (await rows(await reader(join(fixtures, `kinds.${codec}.parquet`)))).map(text);
    assert.equal(found.length, 3);
    assert.match(found[0]!, /"big": 9007199254740993, "text": "a\u2028b", "binary": \{"\$bytes": 120, "base64": "AAH\//);
    assert.match(found[0]!, /"micros": "2023-11-14T22:13:20.123456Z", "day": "2022-01-08", "float": 0.1, "flag": true, "list": \[1, 2\], "struct": \{"x": 1, "y": \["p"\]\}\}$/);
    assert.match(found[1]!, /"big": -9223372036854775808, "text": "line\\nbreak \\"q\\"", "binary": "plain text".*"float": NaN/);
    assert.equal(found[2], '{"big": null, "text": "", "binary": null, "micros": null, "day": null, "float": -Infinity, "flag": null, "list": null, "struct": null}');
  }
});

test("Parquet: pages that are too large to be unpacked are refused with what to do", async () => {
  const path = join(fixtures, "chat.snappy.parquet");
  const opened = await ParquetReader.open(path, await openFile(path), 1000);
  open.push(opened);
  await assert.rejects(rows(opened, 200), /Rows 1 to 300 .* their pages have \d+ bytes.*data_page_size.*row_group_size/);
});

test("Parquet without a page index: only the pages of a window are read, and every row is the right one", async () => {
  // One row group of 12,000 rows in a dozen pages a column: flat ones with nulls, and lists of up to three turns.
  const path = join(fixtures, "paged.snappy.parquet");
  const file = await openFile(path);
  let read = 0;
  const counted = new Proxy(file, { get: (target, name) => (name === "read" ? async (...args: Parameters<typeof file.read>) => {
    const result = await target.read(...args);
    read += result.bytesRead;
    return result;
  } : typeof target[name as "fd"] === "function" ? (target[name as "close"] as () => unknown).bind(target) : target[name as "fd"]) });
  const opened = await ParquetReader.open(path, counted);
  open.push(opened);
  const { size } = await file.stat();
  // Once the pages of the lists were gone through, up to the last row, only those of the window are read.
  for (const [at, most] of [[0, 0.3], [11_990, 1], [6_234, 0.3], [1_000, 0.3]] as const) {
    read = 0;
    const found = await rows(opened, at, 10);
    assert.ok(read < size * most, `${read} of ${size} bytes were read for row ${at}`);
    for (const [index, row] of found.entries()) {
      const i = at + index;
      const turns = Array.from({ length: i % 4 }, (_, turn) => ({ role: turn % 2 === 0 ? "user" : "assistant", content: `${i} says ${turn}` }));
      assert.deepEqual(JSON.parse(text(row)), { id: i, text: i % 10 === 3 ? null : `text of row ${i}`, messages: i % 7 === 5 ? null : turns });
    }
    assert.equal(found.length, 10);
  }
  assert.equal(await find(opened, "text of row 11999", 9_000), 11_999);
});

test("Parquet: rows cut out of their pages are those of the whole file, for every kind of value and list", async () => {
  // Two row groups with a page index: dictionaries that end early, nulls, lists in lists, maps and structs in pages of some rows.
  for (const name of ["kinds.paged.parquet", "paged.snappy.parquet"]) {
    const path = join(fixtures, name);
    const bytes = new Uint8Array(readFileSync(path));
    const whole = (await parquetReadObjects({ file: bytes.buffer, compressors, utf8: false, parsers: timeParsers })).map(rowJson);
    for (const limit of [1, 77, 512]) {
      const opened = await reader(path);
      (opened as unknown as { windowRows: number }).windowRows = limit;
      for (const at of [0, 899, 333, 1_150]) assert.deepEqual((await rows(opened, at, 50)).map(text), whole.slice(at, at + 50), `${name}: ${at} by ${limit}`);
    }
  }
});

test("Parquet: levels and places are read in runs and in packed bits of any width, and written so that they are read again", () => {
  for (const width of [1, 2, 3, 5]) {
    const values = Uint8Array.from({ length: 101 }, (_, i) => (i * 7) % 2 ** width);
    const again = new Uint8Array(101);
    readHybrid(packedLevels([values.subarray(0, 30), values.subarray(30)], width), 4, width, again);
    assert.deepEqual(again, values);
  }
  const places = new Uint32Array(9);
  // A run of three times 0x01020304, then eight packed values of 32 bits of which six are wanted.
  const packed = Buffer.alloc(32);
  for (let i = 0; i < 8; i++) packed.writeUInt32LE(0xfffffff0 + i, i * 4);
  readHybrid(Buffer.concat([Uint8Array.of(6, 4, 3, 2, 1, 3), packed]), 0, 32, places);
  assert.deepEqual([...places], [0x01020304, 0x01020304, 0x01020304, ...Array.from({ length: 6 }, (_, i) => 0xfffffff0 + i)]);
  assert.throws(() => readHybrid(Uint8Array.of(3), 0, 3, new Uint8Array(8)), /damaged/);
});

test("Parquet: repetition levels say where rows begin, in runs and in packed bits", () => {
  const runs = Uint8Array.of(0, 0, 0, 0, 2 << 1, 1, 3 << 1, 0);
  assert.deepEqual(rowStarts(runs, 5, 1), { rows: 3, begins: false });
  // Eight values of one bit, 0 1 1 0 0 1 0 0, of which six are there.
  const packed = Uint8Array.of(0, 0, 0, 0, 3, 0b0010_0110);
  assert.deepEqual(rowStarts(packed, 6, 1), { rows: 3, begins: true });
  // Two bits: 0 2 1 0.
  assert.deepEqual(rowStarts(Uint8Array.of(0, 0, 0, 0, 3, 0b0001_1000, 0), 4, 2), { rows: 2, begins: true });
  assert.throws(() => rowStarts(Uint8Array.of(0, 0, 0, 0, 3), 4, 2), /damaged/);
});

test("a cut or damaged Parquet file, a folder, a missing file and foreign forms are said in a sentence", async () => {
  const bytes = readFileSync(join(fixtures, "chat.snappy.parquet"));
  const refused = async (path: string, message: RegExp): Promise<void> => {
    await assert.rejects(openDataset(path, { spillDir }), (error) => AppError.is(error) && message.test(error.message));
  };
  await refused(write(bytes.subarray(0, 4000), "parquet"), /not a whole Parquet file .*: it may have been cut/);
  await refused(write("PAR1", "parquet"), /not a whole Parquet file/);
  await refused(write("{}\n", "parquet"), /is no Parquet file/);
  await refused(join(dir, "missing.jsonl"), /cannot be read/);
  await refused(dir, /is a folder/);
  await refused(write(Buffer.from("\xff\xfea\x00b\x00", "latin1")), /UTF-16/);
  const damaged = Buffer.from(bytes);
  damaged.fill(0x55, 100, 1500);
  const opened = await reader(write(damaged, "parquet"));
  await assert.rejects(rows(opened), /Rows 1 to 300 of .* cannot be read/);
});

test("a reader that was closed refuses further reading, and closing twice does no harm", async () => {
  const opened = await whole(write(`${many.join("\n")}\n`));
  opened.dispose();
  opened.dispose();
  await assert.rejects(rows(opened), /was closed/);
});
