import type { ReachReason } from "../../protocol/remote.ts";
import { sleep } from "../sleep.ts";

/** Time as a supervisor sees it; tests bring their own. */
export interface Clock {
  /** Seconds since 1970. */
  now(): number;
  /** Milliseconds that nobody sets back. */
  monotonic(): number;
  /** Resolves after `ms`, or at once when `signal` fires. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** From 0 to 1. */
  random(): number;
}

export const systemClock: Clock = {
  now: () => Date.now() / 1000,
  monotonic: () => performance.now(),
  sleep,
  random: Math.random,
};

const firstMs = 1_000;
const mostMs = 30_000;
/** Refusals are counted by some machines, which lock out who comes too often: there it is tried again only rarely, or when asked to. */
const refusedMs = 300_000;
const refusals: ReadonlySet<ReachReason> = new Set(["login", "refused", "host-key", "expired"]);

/** How long to wait before the next try: 1 s, doubled up to 30 s, each shortened by chance, so that many runs do not come together. */
export class Backoff {
  private readonly random: () => number;
  private tries = 0;

  constructor(random: () => number) {
    this.random = random;
  }

  /** Milliseconds until the next try. */
  next(reason: ReachReason | null): number {
    const most = reason !== null && refusals.has(reason) ? refusedMs : mostMs;
    const full = Math.min(most, firstMs * 2 ** this.tries);
    this.tries += 1;
    return full * (0.5 + this.random() / 2);
  }

  reset(): void {
    this.tries = 0;
  }
}
