import { closeSync, mkdirSync, openSync, rmSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { LineReader } from "../../src/storage/datasets/lineReader.ts";
import { openDataset } from "../../src/storage/datasets/openDataset.ts";
import type { BenchResult } from "./rowIndex.bench.ts";

const fileBytes = 1024 ** 3;
const screen = 64;

/** First rows, full index, random rows and a search of a 1 GB file, with the process's memory while it is open. */
export async function bench(): Promise<BenchResult[]> {
  const dir = join(import.meta.dirname, "../../.cache/dataset-bench");
  const path = join(dir, "large.jsonl");
  mkdirSync(dir, { recursive: true });
  try {
    const rows = writeRows(path);
    const before = memory();
    const began = performance.now();
    const reader = (await openDataset(path, { spillDir: dir })) as LineReader;
    let first = 0;
    while (first < screen) {
      first = 0;
      for await (const _ of reader.rowsFrom(0, 1024 * 1024)) if (++first === screen) break;
      if (first < screen) await new Promise((wake) => setTimeout(wake, 1));
    }
    const firstMs = performance.now() - began;
    let peak = memory();
    while (!reader.status().complete) {
      await new Promise((wake) => setTimeout(wake, 50));
      peak = Math.max(peak, memory());
    }
    const indexMs = performance.now() - began;
    if (reader.status().rows !== rows) throw new Error(`${reader.status().rows} rows were found, ${rows} were written.`);
    const jumps: number[] = [];
    for (let i = 0; i < 200; i++) {
      const at = Math.floor((rows * ((i * 7919) % 1000)) / 1000);
      const start = performance.now();
      let seen = 0;
      for await (const row of reader.rowsFrom(at, 1024 * 1024)) {
        if (seen === 0 && row.row !== at) throw new Error(`row ${at} came out as ${row.row}`);
        if (++seen === screen) break;
      }
      jumps.push(performance.now() - start);
      peak = Math.max(peak, memory());
    }
    jumps.sort((a, b) => a - b);
    const start = performance.now();
    const found = await reader.find({ text: `"id":${rows - 1},`, matchCase: false, from: 0, direction: 1 }, { signal: new AbortController().signal, onProgress: () => (peak = Math.max(peak, memory())) });
    if (found !== rows - 1) throw new Error(`the last row was found at ${found}`);
    const findMs = performance.now() - start;
    const { indexBytes } = reader;
    reader.dispose();
    const mb = statSync(path).size / 1e6;
    return [
      { name: `dataset: first ${screen} rows of 1 GB`, value: round(firstMs), unit: "ms", target: "≤ 1000" },
      { name: "dataset: full index", value: round(mb / (indexMs / 1000)), unit: "MB/s" },
      { name: `dataset: ${screen} rows anywhere, 95 of 100`, value: round(jumps[Math.floor(jumps.length * 0.95)] ?? 0), unit: "ms" },
      { name: "dataset: search to the last row", value: round(mb / (findMs / 1000)), unit: "MB/s" },
      { name: `dataset: index of ${rows} rows`, value: round(indexBytes / 1000), unit: "kB" },
      { name: "dataset: memory above the start, peak", value: round((peak - before) / 1e6), unit: "MB", target: "≤ 300" },
    ];
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function memory(): number {
  return process.memoryUsage().rss;
}

function round(value: number): number {
  return Number(value.toPrecision(3));
}

/** Rows of about 1 kB; returns how many. */
function writeRows(path: string): number {
  const words = "the quick brown fox jumps over a lazy dog and then explains why gradient clipping mattered".split(" ");
  const fd = openSync(path, "w");
  let [bytes, rows] = [0, 0];
  while (bytes < fileBytes) {
    let text = "";
    for (const end = rows + 2000; rows < end; rows++) {
      const body = Array.from({ length: 110 + (rows % 90) }, (_, i) => words[(rows * 31 + i * 17) % words.length]).join(" ");
      text += `${JSON.stringify({ id: rows, messages: [{ role: "user", content: body }, { role: "assistant", content: `so ${rows}` }] })}\n`;
    }
    bytes += writeSync(fd, text);
  }
  closeSync(fd);
  return rows;
}
