import { createReadStream } from "node:fs";
import { open, stat } from "node:fs/promises";
import { createGunzip } from "node:zlib";
import { bytesPerToken, dataFacts, type DataFacts, type RowLength } from "../domain/cost/dataFacts.ts";
import { LineSplitter, decodeUtf8, type Line } from "../util/lines.ts";

/** Tells how long a row is in a model's tokens; null for a row that cannot be read. */
export type LengthOf = (row: string) => RowLength | null;

/** Rows that are tokenized, and bytes of a file that are looked through: the rest of a larger one is taken to be alike. */
const sampleRows = 200;
const scanBytes = 2 ** 30;
const rowBytes = 2 ** 20;

/**
 * Lengths of a dataset file's rows: every row is counted and measured in bytes, a sample of them (the same each time) in
 * tokens. JSON Lines, plain or gzip. null for a file that is not there, or of another form.
 */
export async function readDataFacts(path: string, lengthOf: LengthOf | null, signal?: AbortSignal): Promise<DataFacts | null> {
  try {
    return await scan(path, lengthOf, signal);
  } catch {
    return null;
  }
}

async function scan(path: string, lengthOf: LengthOf | null, signal: AbortSignal | undefined): Promise<DataFacts | null> {
  const { size } = await stat(path);
  const magic = await firstBytes(path);
  if (magic.startsWith("PAR1") || magic.startsWith("\x28\xb5\x2f\xfd") || magic.trimStart().startsWith("[")) return null;
  const packed = magic.startsWith("\x1f\x8b");
  const source = createReadStream(path, { highWaterMark: 1 << 20, ...(packed ? {} : { end: scanBytes - 1 }) });
  const chunks = packed ? source.pipe(createGunzip()) : source;
  // A damaged archive ends its reading, which is what the caller is told; the file's own stream must not throw elsewhere.
  if (packed) source.on("error", (error) => chunks.destroy(error));
  const splitter = new LineSplitter({ maxBytes: rowBytes });
  const sample: Uint8Array[] = [];
  let [rows, longest, bytes] = [0, 0, 0];
  const take = (line: Line): void => {
    if (line.length === 0) return;
    rows += 1;
    longest = Math.max(longest, line.length);
    if (line.cut) return;
    // Reservoir sampling with a fixed sequence: every row is as likely, and the same file gives the same sample.
    const place = sample.length < sampleRows ? sample.length : Math.floor(fraction(rows) * rows);
    if (place < sampleRows) sample[place] = line.bytes.slice();
  };
  for await (const chunk of chunks as AsyncIterable<Buffer>) {
    if (signal?.aborted === true) return null;
    bytes += chunk.length;
    for (const line of splitter.push(chunk)) take(line);
    if (bytes >= scanBytes) break;
  }
  const tail = splitter.end();
  if (tail !== null) take(tail);
  const whole = packed || bytes >= size ? rows : Math.round(rows * (size / Math.max(1, bytes)));
  const { lengths, sampledBytes, by } = measure(sample, lengthOf);
  return dataFacts(lengths, { rows: whole, longestBytes: longest, sampledBytes }, by);
}

function measure(sample: readonly Uint8Array[], lengthOf: LengthOf | null): { lengths: RowLength[]; sampledBytes: number; by: DataFacts["by"] } {
  const counted = lengthOf === null ? [] : sample.flatMap((bytes) => lengthOf(decodeUtf8(bytes)) ?? []);
  const sum = (list: readonly Uint8Array[]): number => list.reduce((total, one) => total + one.length, 0);
  if (counted.length > 0) return { lengths: counted, sampledBytes: sum(sample) * (counted.length / sample.length), by: "tokenizer" };
  const guessed = sample.map((bytes) => ({ tokens: Math.ceil(bytes.length / bytesPerToken), prompt: Math.ceil(bytes.length / bytesPerToken / 2), hasAnswer: false }));
  return { lengths: guessed, sampledBytes: sum(sample), by: "bytes" };
}

/** A number from 0 to 1 that looks random (Knuth's multiplicative hash). */
function fraction(index: number): number {
  return (Math.imul(index, 2654435761) >>> 0) / 2 ** 32;
}

async function firstBytes(path: string): Promise<string> {
  const file = await open(path);
  try {
    const head = Buffer.alloc(16);
    const { bytesRead } = await file.read(head, 0, 16, 0);
    return head.toString("latin1", 0, bytesRead).replace(/^\xef\xbb\xbf/, "");
  } finally {
    await file.close();
  }
}
