import { closeSync, cpSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parsePipeline } from "../../src/domain/pipeline/pipeline.ts";
import { buildChain } from "../../src/domain/run/chain.ts";
import { TraceCache } from "../../src/host/drift/traceCache.ts";
import { RowReader } from "../../src/host/rows/rowReader.ts";
import { rowLenses, rowMarks } from "../../src/host/rows/rowWords.ts";
import type { PipelineView } from "../../src/host/workspaceModel.ts";
import { FolderRunStore } from "../../src/storage/runs/folderRunStore.ts";
import { LedgerReader } from "../../src/storage/runs/ledgers.ts";
import { loadSqlite } from "../../src/storage/sqliteDriver.ts";
import { SqliteTraceStore } from "../../src/storage/traces/sqliteTraceStore.ts";
import { silentLog } from "../../src/util/log.ts";
import { recordRuns } from "../vscode/recordRuns.ts";
import type { BenchResult } from "./rowIndex.bench.ts";

const fileBytes = 50_000_000;
/** Lines on a screen, with the margin that lenses are made for. */
const screen = 60 + 2 * 40;
const sample = fileURLToPath(new URL("../../media/sample", import.meta.url));

/** Lenses and marks of one screen of a 50 MB train file, and of a probe file: the first look, and screens never seen before. */
export async function bench(): Promise<BenchResult[]> {
  const root = mkdtempSync(join(tmpdir(), "seesaw-bench-rows-"));
  const cache = new TraceCache();
  try {
    cpSync(join(sample, "data"), join(root, "data"), { recursive: true });
    cpSync(join(sample, "replay"), join(root, "replay"), { recursive: true, filter: (source) => !source.includes(".seesaw") });
    const train = join(root, "data", "math.train.jsonl");
    const lines = grow(train);
    recordRuns({ root: join(root, "replay"), stages: ["math", "search", "tool"] });
    const file = join(root, "replay", "seesaw.yaml");
    const { pipeline } = parsePipeline(readFileSync(file, "utf8"), file);
    if (pipeline === null) throw new Error("the sample's pipeline has errors");
    const runs = new FolderRunStore();
    const listing = await runs.list(pipeline.root);
    runs.dispose();
    const views: PipelineView[] = [{ uri: { fsPath: file } as PipelineView["uri"], label: "bench", pipeline, shown: pipeline, diagnostics: [], listing, chain: buildChain(pipeline, listing.runs) }];
    const ledgers = new LedgerReader();
    const traces = new SqliteTraceStore(await loadSqlite());
    const reader = new RowReader({ views: () => views, traces: () => Promise.resolve(cache.over(traces)), ledgers: (folders) => ledgers.read(folders) }, silentLog);
    const look = async (path: string, rows: readonly string[], first: number): Promise<number> => {
      const document = { fileName: path, lineCount: rows.length, version: 1, lineAt: (line: number) => ({ text: rows[line] ?? "" }) };
      const start = performance.now();
      const found = await reader.rows(document, [{ first, last: first + screen - 1 }], { calm: true });
      if (found === null) throw new Error(`nothing is known about ${path}`);
      const lenses = found.rows.flatMap(({ row }) => rowLenses(row, found.knowledge));
      const probes = found.rows.flatMap(({ row }) => found.knowledge.probes.get(row.hashes.full) ?? []);
      const marks = reader.worstTokens(found.knowledge, probes).map((token, index) => rowMarks(probes[index] as (typeof probes)[0], token));
      const ms = performance.now() - start;
      if (lenses.length < found.rows.length || marks.length !== probes.length) throw new Error("a row says nothing");
      return ms;
    };
    const firstTrain = await look(train, lines, 0);
    const screens: number[] = [];
    for (let i = 1; i <= 100; i++) screens.push(await look(train, lines, Math.floor((lines.length - screen) * (i / 101))));
    const probeFile = join(root, "data", "math.probe.jsonl");
    const probes = readFileSync(probeFile, "utf8").trimEnd().split("\n");
    const firstProbes = await look(probeFile, probes, 0);
    screens.sort((a, b) => a - b);
    return [
      { name: "rows: first screen of a 50 MB file, buffers read", value: round(firstTrain), unit: "ms" },
      { name: "rows: another screen of it, median", value: round(screens[50] ?? 0), unit: "ms" },
      { name: "rows: another screen of it, 95 of 100", value: round(screens[95] ?? 0), unit: "ms", target: "≤ 50" },
      { name: "rows: first screen of 64 probes under four checkpoints, traces read", value: round(firstProbes), unit: "ms" },
      { name: "rows: the same screen again", value: round(await look(probeFile, probes, 0)), unit: "ms", target: "≤ 50" },
    ];
  } finally {
    cache.dispose();
    rmSync(root, { recursive: true, force: true });
  }
}

/** Adds rows like those of the sample until the file has 50 MB, as VS Code still opens it. */
function grow(path: string): string[] {
  const lines = readFileSync(path, "utf8").trimEnd().split("\n");
  let bytes = lines.reduce((sum, line) => sum + line.length + 1, 0);
  const fd = openSync(path, "a");
  for (let i = 0; bytes < fileBytes; i++) {
    const a = 10 + (i % 900);
    const row = JSON.stringify({ id: `more-${i}`, messages: [{ role: "user", content: `What is ${a} + ${i}?` }, { role: "assistant", content: `so ${a + i}` }], reward: (i % 10) / 10 });
    writeSync(fd, `${row}\n`);
    lines.push(row);
    bytes += row.length + 1;
  }
  closeSync(fd);
  return lines;
}

function round(ms: number): number {
  return Number(ms.toFixed(1));
}

if (process.argv[1] !== undefined && import.meta.url.endsWith(process.argv[1].replaceAll("\\", "/").split("/").at(-1) ?? "-")) {
  for (const { name, value, unit, target } of await bench()) console.log(`${name}: ${value} ${unit}${target === undefined ? "" : ` (target ${target})`}`);
}
