import { statSync } from "node:fs";
import { columnsOf, probeAt, promptsOf } from "../../domain/drift/traceData.ts";
import type { TraceReader, TraceStore, TraceSummaryRow } from "../../storage/traces/traceStore.ts";

interface Entry {
  reader: TraceReader;
  /** Changes when the file is written anew. */
  stamp: string;
  users: number;
  summary: TraceSummaryRow[] | null;
}

/** More traces, or more bytes of them in memory, are not kept open. A probe set of eight checkpoints takes eight. */
const mostTraces = 24;
const mostBytes = 256e6;
/** Nobody looks any more: the files are let go, so that a run folder can be deleted on every system. */
const idleMs = 30_000;

/**
 * Keeps the traces open that were read last, with what was read of them: moving from prompt to prompt reads the same files
 * again and again. A file that was written anew is opened anew; one that cannot be looked at is left to the store behind.
 */
export class TraceCache {
  private readonly entries = new Map<string, Entry>();
  private readonly limits: { traces: number; bytes: number; idleMs: number };
  private idle: NodeJS.Timeout | undefined;

  constructor(limits: Partial<TraceCache["limits"]> = {}) {
    this.limits = { traces: mostTraces, bytes: mostBytes, idleMs, ...limits };
  }

  /** The same store, through the cache. */
  over(store: TraceStore): TraceStore {
    return { open: (path) => this.open(path, store) };
  }

  /** Closes what is kept; what is in use is closed by its user. */
  dispose(): void {
    clearTimeout(this.idle);
    for (const path of [...this.entries.keys()]) this.drop(path);
  }

  private open(path: string, store: TraceStore): TraceReader {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat === undefined) return store.open(path);
    const stamp = `${stat.mtimeMs} ${stat.size} ${stat.ino}`;
    const known = this.entries.get(path);
    if (known !== undefined && known.stamp !== stamp) this.drop(path);
    const entry = this.entries.get(path) ?? { reader: store.open(path), stamp, users: 0, summary: null };
    // Last in the map is used last.
    this.entries.delete(path);
    this.entries.set(path, entry);
    entry.users += 1;
    this.trim();
    this.restart();
    return this.lease(path, entry);
  }

  /** What a user sees: closing it gives it back. */
  private lease(path: string, entry: Entry): TraceReader {
    const { reader } = entry;
    let open = true;
    return {
      path: reader.path,
      meta: reader.meta,
      segments: reader.segments,
      probes: () => reader.probes(),
      columns: () => columnsOf(reader),
      readAhead: async (pause) => reader.readAhead?.(pause),
      probe: (row) => probeAt(reader, row),
      prompts: (rows) => promptsOf(reader, rows),
      tokens: (row) => reader.tokens(row),
      tokenBytes: (id) => reader.tokenBytes(id),
      summary: () => (entry.summary ??= reader.summary()),
      close: () => {
        if (!open) return;
        open = false;
        entry.users -= 1;
        if (entry.users === 0 && this.entries.get(path) !== entry) reader.close();
      },
    };
  }

  private trim(): void {
    const total = (): number => [...this.entries.values()].reduce((sum, { reader }) => sum + (reader.heldBytes ?? 0), 0);
    for (const [path, { users }] of [...this.entries]) {
      if (this.entries.size <= this.limits.traces && total() <= this.limits.bytes) return;
      if (users === 0) this.drop(path);
    }
  }

  private drop(path: string): void {
    const entry = this.entries.get(path);
    this.entries.delete(path);
    if (entry?.users === 0) entry.reader.close();
  }

  private restart(): void {
    clearTimeout(this.idle);
    this.idle = setTimeout(() => this.dispose(), this.limits.idleMs);
    this.idle.unref();
  }
}
