import { Worker } from "node:worker_threads";
import { AppError, messageOf } from "../util/errors.ts";
import { t } from "../util/l10n.ts";
import type { CheckpointScores, Scorer, ScoreRequest } from "./scorer.ts";
import type { FromScorer, ToScorer } from "./scorerWorker.ts";

interface Waiter {
  onScored(count: number): void;
  resolve(results: CheckpointScores[]): void;
  reject(error: Error): void;
}

/** The thread ends after this long without a request, and gives its memory back. */
const idleMs = 5 * 60_000;

/** A scorer in one worker thread, which starts with the first request. `url`: the worker's file. */
export class ThreadScorer implements Scorer {
  private readonly url: URL;
  private readonly idleMs: number;
  private thread: Worker | null = null;
  private readonly waiting = new Map<number, Waiter>();
  private last = 0;
  private idle: NodeJS.Timeout | undefined;
  private disposed = false;
  private ending: Promise<void> = Promise.resolve();

  constructor(url: URL, idle = idleMs) {
    this.url = url;
    this.idleMs = idle;
  }

  /** True while there is a thread. */
  get running(): boolean {
    return this.thread !== null;
  }

  /** Settles when a thread that was told to end is gone. */
  get ended(): Promise<void> {
    return this.ending;
  }

  async score(request: ScoreRequest, signal?: AbortSignal, onScored: (count: number) => void = () => {}): Promise<CheckpointScores[]> {
    if (this.disposed || signal?.aborted === true) throw new AppError("cancelled", t("Live scoring was cancelled."));
    clearTimeout(this.idle);
    const thread = (this.thread ??= this.start());
    const id = ++this.last;
    const cancel = (): void => thread.postMessage({ type: "cancel", id } satisfies ToScorer);
    try {
      return await new Promise<CheckpointScores[]>((resolve, reject) => {
        this.waiting.set(id, { onScored, resolve, reject });
        thread.ref();
        signal?.addEventListener("abort", cancel, { once: true });
        thread.postMessage({ type: "score", id, request } satisfies ToScorer);
      });
    } finally {
      signal?.removeEventListener("abort", cancel);
      if (this.waiting.size === 0 && this.thread !== null) {
        // A process that has nothing else to do does not wait for an idle thread.
        this.thread.unref();
        this.idle = setTimeout(() => this.end(), this.idleMs).unref();
      }
    }
  }

  dispose(): void {
    this.disposed = true;
    this.end();
    for (const id of [...this.waiting.keys()]) this.settle({ id, error: { reason: "cancelled", message: "Live scoring was cancelled." } });
  }

  private start(): Worker {
    const thread = new Worker(this.url);
    thread.on("message", (message: FromScorer) => this.settle(message));
    thread.on("error", (error) => this.lost(thread, error));
    thread.on("exit", () => this.lost(thread, new Error("the thread ended")));
    return thread;
  }

  /** Asks the thread to end after what it is doing: stopping it in the middle of a native call can crash the process. */
  private end(): void {
    clearTimeout(this.idle);
    const thread = this.thread;
    if (thread === null) return;
    this.thread = null;
    thread.ref();
    this.ending = new Promise((resolve) => void thread.once("exit", () => resolve()));
    for (const id of this.waiting.keys()) thread.postMessage({ type: "cancel", id } satisfies ToScorer);
    thread.postMessage({ type: "end" } satisfies ToScorer);
  }

  private settle(message: FromScorer): void {
    const waiter = this.waiting.get(message.id);
    if ("scored" in message) return waiter?.onScored(message.scored);
    this.waiting.delete(message.id);
    if ("results" in message) waiter?.resolve(message.results);
    else waiter?.reject(new AppError(message.error.reason, message.error.message));
  }

  private lost(thread: Worker, error: unknown): void {
    if (this.thread !== thread) return;
    this.thread = null;
    for (const id of [...this.waiting.keys()]) this.settle({ id, error: { reason: "internal", message: `The scoring thread failed: ${messageOf(error)}.` } });
  }
}
