import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { runsFolder, type RunListing, type RunRecord, type RunStore, type UnreadableRun } from "./runStore.ts";
import { RunFolder } from "./runFolder.ts";
import { watchRuns } from "./runWatch.ts";

export interface FolderRunStoreOptions {
  /** Seconds since 1970; for tests. */
  now?: () => number;
  /** How often the folders are looked at while watched, in ms. */
  pollMs?: number;
}

const concurrency = 16;
/** A run that is over is looked at again only with every fifth poll: there may be hundreds, and they change when somebody resumes them. */
const overPolls = 5;

/** The runs of a pipeline, read from their folders. The folders are the truth; what is kept here only spares re-reading. */
export class FolderRunStore implements RunStore {
  private readonly now: () => number;
  private readonly pollMs: number;
  private readonly folders = new Map<string, RunFolder>();
  private readonly watches = new Set<() => void>();

  constructor(options: FolderRunStoreOptions = {}) {
    this.now = options.now ?? (() => Date.now() / 1000);
    this.pollMs = options.pollMs ?? 1000;
  }

  list(root: string): Promise<RunListing> {
    return this.look(root, 0);
  }

  private async look(root: string, patience: number): Promise<RunListing> {
    const parent = runsFolder(root);
    const dirs = (await foldersIn(parent)).map((name) => join(parent, name));
    const [there, prefix] = [new Set(dirs), join(parent, "/")];
    for (const dir of this.folders.keys()) if (dir.startsWith(prefix) && !there.has(dir)) this.folders.delete(dir);
    const found = await mapLimited(dirs, concurrency, (dir) => this.folder(dir).read(this.now(), patience));
    const runs: RunRecord[] = [];
    const unreadable: UnreadableRun[] = [];
    for (const one of found) {
      if (one === null) continue;
      if ("state" in one) runs.push(one);
      else unreadable.push(one);
    }
    runs.sort((a, b) => b.spec.created - a.spec.created || (a.id < b.id ? 1 : -1));
    return { runs, unreadable };
  }

  watch(root: string, onChange: () => void): () => void {
    const stop = watchRuns(runsFolder(root), () => this.look(root, overPolls * this.pollMs), onChange, this.pollMs);
    const once = (): void => {
      this.watches.delete(once);
      stop();
    };
    this.watches.add(once);
    return once;
  }

  dispose(): void {
    for (const stop of [...this.watches]) stop();
    this.folders.clear();
  }

  private folder(dir: string): RunFolder {
    const known = this.folders.get(dir) ?? new RunFolder(dir);
    this.folders.set(dir, known);
    return known;
  }
}

async function foldersIn(parent: string): Promise<string[]> {
  try {
    const entries = await readdir(parent, { withFileTypes: true });
    return entries.filter((entry) => (entry.isDirectory() || entry.isSymbolicLink()) && !entry.name.startsWith(".")).map((entry) => entry.name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** `Promise.all` with at most `limit` at work. */
async function mapLimited<T, R>(items: readonly T[], limit: number, work: (item: T) => Promise<R>): Promise<R[]> {
  const results = new Array<R>(items.length);
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < items.length) {
      const index = next;
      next += 1;
      results[index] = await work(items[index] as T);
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  return results;
}
