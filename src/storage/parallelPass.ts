import { closeSync, openSync, readSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { AppError, messageOf } from "../util/errors.ts";
import type { WorkerReply, WorkerTask } from "./rowIndexWorker.ts";
import { throwIfCancelled, type PassOptions, type RowBatch } from "./rowPass.ts";

/** Where the worker's code is, and how many threads to use. */
export interface WorkerSetup {
  url: URL;
  threads: number;
  /** Smaller files are indexed in the calling thread. Default `parallelFrom`. */
  minBytes?: number;
  /** Bytes handed to a thread at a time. Default 16 MiB. */
  partBytes?: number;
}

/** Files from this size on are worth the start of threads. */
export const parallelFrom = 48 * 1024 * 1024;

/**
 * Indexes the first parts of a large plain file in worker threads and hands them out in order. Returns where the last
 * part ends: the rest, at most one part, is left to `indexPass`.
 */
export async function parallelPass(path: string, from: { offset: number; line: number }, size: number, setup: WorkerSetup, options: PassOptions): Promise<{ offset: number; line: number }> {
  const fd = openSync(path, "r");
  const { partBytes = 16 * 1024 * 1024 } = setup;
  const workers = Array.from({ length: setup.threads }, () => new PartWorker(setup.url));
  const waiting: { end: number; batch: Promise<RowBatch> }[] = [];
  const free = [...workers];
  let [next, line, end] = [from.offset, from.line, from.offset];
  try {
    for (;;) {
      while (free.length > 0 || waiting.length < 2 * setup.threads) {
        const stop = next + partBytes < size ? lineStart(fd, next + partBytes) : null;
        if (stop === null) break;
        const worker = free.shift() ?? workers[waiting.length % workers.length];
        if (worker === undefined) break;
        waiting.push({ end: stop, batch: worker.run({ path, start: next, end: stop, turns: options.turns }) });
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
    for (const { batch } of waiting) batch.catch(() => {});
    await Promise.all(workers.map((worker) => worker.stop()));
  }
}

/** One thread that indexes parts in the order in which they were given. */
class PartWorker {
  private readonly worker: Worker;
  private readonly queue: { resolve(batch: RowBatch): void; reject(error: Error): void }[] = [];
  private failure: Error | null = null;

  constructor(url: URL) {
    this.worker = new Worker(url);
    this.worker.unref();
    this.worker.on("message", (reply: WorkerReply) => {
      const waiter = this.queue.shift();
      if ("batch" in reply) waiter?.resolve(reply.batch);
      else waiter?.reject(new AppError("bad-input", `The file cannot be indexed: ${reply.error}.`));
    });
    this.worker.on("error", (error) => this.fail(error));
    this.worker.on("exit", () => this.fail(new Error("the indexing thread ended")));
  }

  run(task: WorkerTask): Promise<RowBatch> {
    if (this.failure !== null) return Promise.reject(this.failure);
    return new Promise((resolve, reject) => {
      this.queue.push({ resolve, reject });
      this.worker.postMessage(task);
    });
  }

  async stop(): Promise<void> {
    await this.worker.terminate();
  }

  private fail(error: unknown): void {
    this.failure ??= new AppError("internal", `The indexing thread failed: ${messageOf(error)}`, { cause: error });
    for (const waiter of this.queue.splice(0)) waiter.reject(this.failure);
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
