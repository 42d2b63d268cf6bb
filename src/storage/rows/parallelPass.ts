import { closeSync, openSync, readSync } from "node:fs";
import type { WorkerPool } from "./workerPool.ts";
import { throwIfCancelled, type PassOptions, type RowBatch } from "./rowPass.ts";

/**
 * Indexes the first parts of a large plain file in worker threads and hands them out in order. Returns where the last
 * part ends: the rest, at most one part, is left to `indexPass`.
 */
export async function parallelPass(path: string, from: { offset: number; line: number }, size: number, pool: WorkerPool, options: PassOptions): Promise<{ offset: number; line: number }> {
  const fd = openSync(path, "r");
  const waiting: { end: number; batch: Promise<RowBatch> }[] = [];
  let [next, line, end] = [from.offset, from.line, from.offset];
  try {
    for (;;) {
      while (waiting.length < 2 * pool.threads) {
        const stop = next + pool.partBytes < size ? lineStart(fd, next + pool.partBytes) : null;
        if (stop === null) break;
        waiting.push({ end: stop, batch: pool.run({ path, start: next, end: stop, turns: options.turns }) });
        next = stop;
      }
      const part = waiting.shift();
      if (part === undefined) return { offset: end, line };
      const batch = await abortable(part.batch, options.signal);
      shiftLines(batch, line);
      line += batch.totals.lines;
      end = part.end;
      await options.onBatch(batch, end);
    }
  } finally {
    closeSync(fd);
    // After a failure the parts under way are still worked off, and nobody asks for them.
    for (const { batch } of waiting) batch.catch(() => {});
  }
}

async function abortable<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  throwIfCancelled(signal);
  if (signal === undefined) return work;
  let stop = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => {
      try {
        throwIfCancelled(signal);
      } catch (error) {
        reject(error as Error);
      }
    };
    signal.addEventListener("abort", stop);
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

function shiftLines(batch: RowBatch, line: number): void {
  for (const page of batch.pages) for (let i = 0; i < page.rows; i++) page.lines[i] = (page.lines[i] as number) + line;
  for (const problem of batch.problems) problem.line += line;
}

/** The first line start at or after an offset; null: there is none, the last line begins before it. */
function lineStart(fd: number, offset: number): number | null {
  const buffer = Buffer.alloc(64 * 1024);
  for (let at = offset - 1; ; ) {
    const count = readSync(fd, buffer, 0, buffer.length, at);
    if (count === 0) return null;
    const found = buffer.subarray(0, count).indexOf(10);
    if (found !== -1) return at + found + 1;
    at += count;
  }
}
