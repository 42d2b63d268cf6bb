import { Worker } from "node:worker_threads";
import { AppError, messageOf } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import type { WorkerReply, WorkerTask } from "./rowIndexWorker.ts";
import type { RowBatch } from "./rowPass.ts";

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

/** Threads are kept this long after their last part: the next file then finds them warm. */
const idleMs = 20_000;

/** Threads that index parts of files. They start with the first part, and never keep the process alive. */
export class WorkerPool {
  readonly threads: number;
  readonly partBytes: number;
  readonly minBytes: number;
  private readonly url: URL;
  private workers: PartWorker[] = [];
  private idle: NodeJS.Timeout | undefined;

  constructor({ url, threads, minBytes = parallelFrom, partBytes = 16 * 1024 * 1024 }: WorkerSetup) {
    this.url = url;
    this.threads = Math.max(1, threads);
    this.minBytes = minBytes;
    this.partBytes = partBytes;
  }

  /** Indexes one part in the thread that has least to do. Throws AppError("bad-input" | "internal"). */
  async run(task: WorkerTask): Promise<RowBatch> {
    clearTimeout(this.idle);
    this.workers = this.workers.filter((worker) => !worker.failed);
    while (this.workers.length < this.threads) this.workers.push(new PartWorker(this.url));
    const worker = this.workers.reduce((best, other) => (other.load < best.load ? other : best));
    try {
      return await worker.run(task);
    } finally {
      clearTimeout(this.idle);
      this.idle = setTimeout(() => this.dispose(), idleMs).unref();
    }
  }

  /** Ends the threads; the next part starts new ones. */
  dispose(): void {
    clearTimeout(this.idle);
    for (const worker of this.workers.splice(0)) void worker.stop();
  }
}

/** One thread that indexes parts in the order in which they were given. */
class PartWorker {
  private readonly worker: Worker;
  private readonly queue: { resolve(batch: RowBatch): void; reject(error: Error): void }[] = [];
  private failure: Error | null = null;

  get load(): number {
    return this.failure === null ? this.queue.length : Infinity;
  }

  get failed(): boolean {
    return this.failure !== null;
  }

  constructor(url: URL) {
    this.worker = new Worker(url);
    this.worker.unref();
    this.worker.on("message", (reply: WorkerReply) => {
      const waiter = this.queue.shift();
      if ("batch" in reply) waiter?.resolve(reply.batch);
      else waiter?.reject(new AppError("bad-input", t("The file cannot be indexed: {0}.", reply.error)));
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
    this.failure ??= new AppError("internal", t("The indexing thread failed: {0}", messageOf(error)), { cause: error });
    for (const waiter of this.queue.splice(0)) waiter.reject(this.failure);
  }
}
