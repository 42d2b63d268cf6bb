import { createHash } from "node:crypto";
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { memoryRowIndex } from "../../src/storage/rows/memoryRowIndex.ts";
import type { WorkerSetup } from "../../src/storage/rows/workerPool.ts";
import type { RowIndex } from "../../src/storage/rows/rowIndex.ts";
import { loadSqlite } from "../../src/storage/sqliteDriver.ts";
import { sqliteRowIndex } from "../../src/storage/rows/sqliteRowIndex.ts";

export interface BenchResult {
  name: string;
  value: number;
  unit: string;
  target?: string;
  /** Throughput against a plain SHA-256 pass over the same file in the same run. */
  ratio?: number;
}

const fileBytes = 128 * 1024 * 1024;
const rounds = 5;
const words = "the quick brown fox jumps over a lazy dog and then explains why gradient clipping mattered in that run".split(" ");

/** Indexing MB/s for rows of 200 B, 1 kB and 4 kB, against a plain SHA-256 pass; best of five interleaved rounds. */
export async function bench(): Promise<BenchResult[]> {
  const dir = mkdtempSync(join(tmpdir(), "seesaw-bench-"));
  const workers: WorkerSetup = { url: new URL("../../src/storage/rows/rowIndexWorker.ts", import.meta.url), threads: Math.min(4, availableParallelism()) };
  const driver = await loadSqlite();
  let databases = 0;
  const makers: [string, boolean, () => RowIndex][] = [
    [`SQLite, ${workers.threads} threads`, false, () => sqliteRowIndex(join(dir, `${databases++}.sqlite`), driver, { workers })],
    ["memory, this thread", false, () => memoryRowIndex()],
    [`SQLite, ${workers.threads} threads, with prompt and answer hashes`, true, () => sqliteRowIndex(join(dir, `${databases++}.sqlite`), driver, { workers })],
  ];
  const results: BenchResult[] = [];
  try {
    for (const size of [200, 1000, 4000]) {
      const path = join(dir, `rows-${size}.jsonl`);
      const bytes = writeRows(path, size);
      let plain = Infinity;
      const best = makers.map(() => Infinity);
      // Kept over the rounds, so that the threads are warm, as they are from the second file on.
      const indexes = makers.map(([, , make]) => make());
      for (let round = 0; round < rounds; round++) {
        plain = Math.min(plain, await time(() => plainPass(path)));
        for (const [i, [, turns]] of makers.entries()) {
          best[i] = Math.min(best[i] as number, await time(() => indexes[i]?.update(path, { turns })));
          await indexes[i]?.forget(path);
        }
      }
      for (const index of indexes) index.dispose();
      results.push({ name: `plain SHA-256 pass, ${size} B rows`, value: speed(bytes, plain), unit: "MB/s" });
      for (const [i, [name]] of makers.entries()) {
        const ms = best[i] as number;
        results.push({ name: `index, ${size} B rows, ${name}`, value: speed(bytes, ms), unit: "MB/s", ratio: Number((plain / ms).toFixed(2)), ...(i === 0 ? { target: "ratio ≥ 0.5" } : {}) });
      }
      rmSync(path);
    }
  } finally {
    rmSync(dir, { recursive: true });
  }
  return results;
}

/** Chat rows as Python's json.dumps writes them, about one line feed in twelve words. */
function writeRows(path: string, size: number): number {
  let seed = size;
  const below = (limit: number): number => {
    seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
    return (seed >> 8) % limit;
  };
  const text = (length: number): string => {
    let result = "";
    while (result.length < length) result += (below(12) === 0 ? "\\n" : " ") + (words[below(words.length)] ?? "");
    return result.slice(1, length).replace(/\\$/, "");
  };
  const fd = openSync(path, "w");
  let [written, block] = [0, ""];
  for (let i = 0; written < fileBytes; i++) {
    const half = Math.floor((size - 96) / 2);
    block += `{"messages": [{"role": "user", "content": "${text(half)} ${i}"}, {"role": "assistant", "content": "${text(half)}"}]}\n`;
    if (block.length < 1024 * 1024) continue;
    written += writeSync(fd, block);
    block = "";
  }
  closeSync(fd);
  return written;
}

function plainPass(path: string): string {
  const hash = createHash("sha256");
  const buffer = Buffer.alloc(1024 * 1024);
  const fd = openSync(path, "r");
  for (let count = readSync(fd, buffer); count > 0; count = readSync(fd, buffer)) hash.update(buffer.subarray(0, count));
  closeSync(fd);
  return hash.digest("hex");
}

async function time(run: () => unknown): Promise<number> {
  const start = performance.now();
  await run();
  return performance.now() - start;
}

function speed(bytes: number, ms: number): number {
  return Math.round(bytes / 1000 / ms);
}

if (process.argv[1] !== undefined && import.meta.url.endsWith(process.argv[1].replaceAll("\\", "/").split("/").at(-1) ?? "-")) {
  for (const { name, value, unit, ratio, target } of await bench()) console.log(`${name}: ${value} ${unit}${ratio === undefined ? "" : `, ${ratio} of the plain pass`}${target === undefined ? "" : ` (target ${target})`}`);
}
