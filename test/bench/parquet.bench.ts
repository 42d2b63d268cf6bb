import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { openDataset } from "../../src/storage/datasets/openDataset.ts";
import type { BenchResult } from "./rowIndex.bench.ts";

const screen = 64;
/** Two files, to see whether memory grows with them. Unpacked, a row has about 1.8 kB. */
const sizes = [75_000, 300_000];

/** Conversations in one row group without a page index, as pyarrow writes them by default. */
const writer = `
import sys
import pyarrow as pa, pyarrow.parquet as pq
words = "the quick brown fox jumps over a lazy dog and then explains why gradient clipping mattered".split()
def part(first, count):
    body = [" ".join(f"{words[(i * 31 + j * 17) % 15]}{(i * 7 + j * 13) % 1000}" for j in range(60 + i % 90)) for i in range(first, first + count)]
    turns = [[{"role": "user", "content": text}, {"role": "assistant", "content": f"so {first + at}"}] for at, text in enumerate(body)]
    return pa.table({"id": pa.array(range(first, first + count)), "text": pa.array(body), "messages": pa.array(turns)})
rows = int(sys.argv[2])
pq.write_table(pa.concat_tables([part(first, 25_000) for first in range(0, rows, 25_000)]), sys.argv[1], compression="snappy", row_group_size=rows)
`;

/**
 * First rows, rows anywhere, a search over everything, and memory of Parquet files whose row group is as large as the file.
 * Each file has a process of its own: memory of one must not stand in the figures of the other. `python`: one with pyarrow.
 */
export async function bench(python: string): Promise<BenchResult[]> {
  const dir = join(import.meta.dirname, "../../.cache/parquet-bench");
  mkdirSync(dir, { recursive: true });
  try {
    return sizes.flatMap((rows) => {
      const path = join(dir, `${rows}.parquet`);
      try {
        execFileSync(python, ["-c", writer, path, String(rows)], { stdio: ["ignore", "ignore", "pipe"] });
      } catch {
        console.error(`bench: Parquet is not measured: ${existsSync(python) ? "pyarrow is missing" : `there is no ${python}`}.`);
        return [];
      }
      const text = execFileSync(process.execPath, ["-e", `import(process.argv[1]).then(async (m) => console.log(JSON.stringify(await m.measure(process.argv[2], Number(process.argv[3])))))`, import.meta.url, path, String(rows)], { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
      rmSync(path);
      return JSON.parse(text.trim().split("\n").at(-1) as string) as BenchResult[];
    });
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** One file, in this process. */
export async function measure(path: string, rows: number): Promise<BenchResult[]> {
  const base = process.memoryUsage().rss;
  let peak = base;
  const look = (): void => void (peak = Math.max(peak, process.memoryUsage().rss));
  const began = performance.now();
  const reader = await openDataset(path, { spillDir: dirname(path) });
  const jump = async (at: number): Promise<number> => {
    const start = performance.now();
    let seen = 0;
    for await (const row of reader.rowsFrom(at, 1024 * 1024)) {
      if (seen === 0 && (JSON.parse(Buffer.from(row.bytes).toString()) as { id: number }).id !== at) throw new Error(`row ${at} came out as another`);
      look();
      if (++seen === screen) break;
    }
    return performance.now() - start;
  };
  await jump(0);
  const first = performance.now() - began;
  const end = await jump(rows - screen);
  const jumps: number[] = [];
  for (let i = 0; i < 100; i++) jumps.push(await jump((i * 7919 * 37) % (rows - screen)));
  jumps.sort((a, b) => a - b);
  const jumped = peak;
  const [start, cpu] = [performance.now(), process.cpuUsage()];
  const found = await reader.find({ text: `"id": ${rows - 1},`, matchCase: false, from: 0, direction: 1 }, { signal: new AbortController().signal, onProgress: look });
  if (found !== rows - 1) throw new Error(`the last row was found at ${found}`);
  const seconds = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  reader.dispose();
  const name = `parquet, ${Math.round(statSync(path).size / 1e6)} MB`;
  return [
    { name: `${name}: first ${screen} rows`, value: round(first), unit: "ms", target: "≤ 1000" },
    { name: `${name}: the last rows, its pages gone through once`, value: round(end), unit: "ms" },
    { name: `${name}: ${screen} rows anywhere, median of 100`, value: round(jumps[50] ?? NaN), unit: "ms" },
    { name: `${name}: memory above the start after 100 jumps, peak`, value: round((jumped - base) / 1e6), unit: "MB", target: "≤ 300" },
    { name: `${name}: search to the last row`, value: round(seconds), unit: "s" },
    { name: `${name}: the same in processor time`, value: round((user + system) / 1e6), unit: "s" },
    { name: `${name}: memory above the start after the search, peak`, value: round((peak - base) / 1e6), unit: "MB", target: "≤ 300" },
  ];
}

function round(value: number): number {
  return Number(value.toPrecision(3));
}
