import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { FolderRunStore } from "./storage/runs/folderRunStore.ts";
import type { RowIndex } from "./storage/rows/rowIndex.ts";
import type { RunStore } from "./storage/runs/runStore.ts";
import type { TraceStore } from "./storage/traces/traceStore.ts";
import { FileHasher } from "./targets/hashFiles.ts";
import { Launcher } from "./targets/launcher.ts";
import { messageOf } from "./util/errors.ts";
import type { Log } from "./util/log.ts";

export interface ServiceOptions {
  log: Log;
  /** Folder of this installation: `runner/` is in it. */
  extensionDir: string;
  /** Caches live here; all of it can be deleted. */
  storageDir: string;
}

/** What the entry points work with. Everything native is loaded at its first use. */
export interface Services {
  readonly runs: RunStore;
  readonly launcher: Launcher;
  /** AppError("sqlite-missing") when no SQLite can be loaded. */
  traces(): Promise<TraceStore>;
  /** Which row of which file has which hash. In memory where SQLite or its file cannot be used. */
  rows(): Promise<RowIndex>;
  dispose(): void;
}

/** The one composition root: the command line and the extension run the same code. */
export function createServices({ log, extensionDir, storageDir }: ServiceOptions): Services {
  const runs = new FolderRunStore();
  const hasher = new FileHasher(join(storageDir, "hashes.json"));
  const launcher = new Launcher({ runnerDir: join(extensionDir, "runner"), runs, hasher, log });
  let traces: Promise<TraceStore> | null = null;
  let rows: Promise<RowIndex> | null = null;
  return {
    runs,
    launcher,
    traces: () => (traces ??= openTraces()),
    rows: () => (rows ??= openRows(storageDir, log)),
    dispose() {
      runs.dispose();
      void rows?.then((index) => index.dispose(), () => {});
    },
  };
}

async function openTraces(): Promise<TraceStore> {
  const [{ loadSqlite }, { SqliteTraceStore }] = await Promise.all([import("./storage/sqliteDriver.ts"), import("./storage/traces/sqliteTraceStore.ts")]);
  return new SqliteTraceStore(await loadSqlite());
}

/** The index is a cache: where SQLite or its file cannot be used, the same index lives in memory and nothing is lost. */
async function openRows(storageDir: string, log: Log): Promise<RowIndex> {
  const workers = rowWorkers();
  try {
    const [{ loadSqlite }, { sqliteRowIndex }] = await Promise.all([import("./storage/sqliteDriver.ts"), import("./storage/rows/sqliteRowIndex.ts")]);
    await mkdir(storageDir, { recursive: true });
    return sqliteRowIndex(join(storageDir, "rows.sqlite"), await loadSqlite(), { workers, onMessage: (message) => log.warn(message) });
  } catch (error) {
    log.warn(`The row index is kept in memory only: ${messageOf(error)}`);
    const { memoryRowIndex } = await import("./storage/rows/memoryRowIndex.ts");
    return memoryRowIndex(workers);
  }
}

/** The worker's own bundle beside this one; run from sources there is none, and large files are indexed in one thread. */
function rowWorkers(): { url: URL; threads: number } | null {
  const url = new URL("./rowIndexWorker.js", import.meta.url);
  const threads = Math.min(4, availableParallelism() - 1);
  return existsSync(fileURLToPath(url)) && threads > 0 ? { url, threads } : null;
}
