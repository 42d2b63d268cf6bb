import { newestAttempt } from "../../domain/run/remoteFiles.ts";
import type { JobRef, RemoteFile, SchedulerWord, StationFrame } from "../../protocol/remote.ts";
import { AppError, messageOf } from "../../util/errors.ts";
import type { Log } from "../../util/log.ts";
import type { Clock } from "./backoff.ts";
import type { Lease } from "./lease.ts";
import type { Mirror } from "./mirror.ts";
import type { RemoteTarget } from "./port.ts";

/** Between two looks at what a follow is doing, and how long between two of them tells that the machine slept. */
const tickMs = 2_000;
const sleptMs = 30_000;
/** Every so many of these looks the files are looked at: whether the lease is still ours, and whether another attempt was asked for. */
const filesEvery = 3;
/** A follow without a frame: the scheduler is asked, then it is begun anew. The first frame may take longer: a Python has to start there. */
const quietMs = 15_000;
const silentMs = 30_000;
const firstFrameMs = 90_000;
/** Between two questions to a scheduler, where nothing else is said. */
export const usualAskMs = 10_000;

/** Why a follow was ended from here. */
export type Stopped = "slept" | "silent" | "lease" | "news" | "waiting" | "over" | "once" | "differs";

export interface SessionParts {
  remote: RemoteFile;
  target: RemoteTarget;
  mirror: Mirror;
  lease: Lease;
  clock: Clock;
  log: Log;
  /** Only until everything that is there now is here. */
  once: boolean;
  /** Shortest time between two questions to the scheduler. */
  askMs: number;
  /** Whether remote.json says something new. */
  news: () => Promise<boolean>;
  /** The target has an attempt that nobody asked for here. */
  found: (attempt: number, nonce: string) => Promise<void>;
}

/** One connection that follows a run, with what has to be asked of the scheduler meanwhile. */
export class FollowSession {
  private readonly parts: SessionParts;
  private readonly stop = new AbortController();
  private stopped: Stopped | null = null;
  /** Everything that was there at the end is here, byte for byte. */
  private end: Extract<StationFrame, { kind: "end" }> | null = null;
  private frames = 0;
  private caughtUp = 0;
  private applying = false;
  private lastFrame: number;
  private beat: { count: number; attempt: number; since: number } | null = null;
  private asked = -Infinity;
  private foundAttempt = 0;

  constructor(parts: SessionParts) {
    this.parts = parts;
    this.lastFrame = parts.clock.monotonic();
  }

  /** Something came, so the connection works. */
  get heard(): boolean {
    return this.frames > 0;
  }

  /**
   * Follows until the run's end ("end"), until it was stopped from here, or until the target's own limit (null). Throws what
   * cut it: ReachError, or what stood in the way of writing here.
   */
  async run(signal: AbortSignal): Promise<"end" | Stopped | null> {
    const { remote, target, mirror } = this.parts;
    const minding = new AbortController();
    const both = AbortSignal.any([signal, this.stop.signal]);
    const minded = this.mind(AbortSignal.any([both, minding.signal]));
    try {
      await target.follow(remote, mirror.known(), (frame) => this.take(frame), both);
    } catch (error) {
      // A follow that was stopped from here says so; anything else is told.
      if (this.stopped === null || (!AppError.is(error, "cancelled") && !AppError.is(error, "unreachable"))) throw error;
    } finally {
      minding.abort();
      await minded;
    }
    if (this.end === null) return this.stopped;
    const different = this.end.sums === undefined ? [] : await mirror.differing(this.end.sums);
    if (different.length === 0) return "end";
    this.parts.log.warn(`The copy of ${different.join(", ")} in ${mirror.dir} was not what ${remote.address} has; it is copied again.`);
    return "differs";
  }

  private async take(frame: StationFrame): Promise<void> {
    if (this.stopped !== null) return;
    const { mirror, clock } = this.parts;
    this.applying = true;
    try {
      await mirror.apply(frame);
    } finally {
      this.applying = false;
      this.lastFrame = clock.monotonic();
    }
    this.frames += 1;
    if (frame.kind === "end") this.end = frame;
    if (frame.kind === "caught-up") this.caughtUp += 1;
    if (frame.kind === "probe") {
      const count = frame.probe.beat ?? 0;
      if (this.beat?.count !== count || this.beat.attempt !== frame.attempt) this.beat = { count, attempt: frame.attempt, since: this.lastFrame };
    }
    if (frame.kind === "caught-up" && this.parts.once) this.halt("once");
  }

  private halt(why: Stopped): void {
    this.stopped ??= why;
    this.stop.abort();
  }

  /** Looks after the follow while it runs. Never throws: what goes wrong with a question is not the end of the copy. */
  private async mind(signal: AbortSignal): Promise<void> {
    const { clock, lease, log, news } = this.parts;
    let [tick, wall] = [clock.monotonic(), clock.now()];
    for (let count = 1; !signal.aborted; count += 1) {
      await clock.sleep(tickMs, signal);
      if (signal.aborted) return;
      const [before, wallBefore] = [tick, wall];
      [tick, wall] = [clock.monotonic(), clock.now()];
      // Some systems' monotonic clock stands still while they sleep, others' does not.
      if (Math.max(tick - before, (wall - wallBefore) * 1000) > sleptMs) return this.halt("slept");
      const quiet = this.applying ? 0 : tick - this.lastFrame;
      if (quiet > (this.heard ? silentMs : firstFrameMs)) return this.halt("silent");
      try {
        if (count % filesEvery === 0 && !(await lease.holds())) return this.halt("lease");
        if (count % filesEvery === 0 && (await news())) return this.halt("news");
        await this.noteFound();
        if (this.mustAsk(tick, quiet)) await this.ask(tick, signal);
        this.judge();
      } catch (error) {
        log.debug(`${this.parts.mirror.dir}: ${messageOf(error)}`);
      }
    }
  }

  private async noteFound(): Promise<void> {
    const { mirror, remote, found } = this.parts;
    const { attempt, probe } = mirror.file;
    if (probe === null || attempt <= Math.max(this.foundAttempt, newestAttempt(remote)?.attempt ?? 0)) return;
    await found(attempt, probe.started?.nonce ?? "");
    this.foundAttempt = attempt;
  }

  private mustAsk(now: number, quiet: number): boolean {
    const { remote, mirror } = this.parts;
    if (remote.kind === "ssh" || now - this.asked < this.parts.askMs) return false;
    const { probe, word } = mirror.file;
    const over = word?.state === "ended";
    if (probe === null || probe.state === "absent" || probe.state === "claimed" || probe.state === "exited" || probe.state.startsWith("lost:")) return !over;
    return probe.state === "orphan" || quiet > quietMs || (this.beat !== null && now - this.beat.since > quietMs);
  }

  private async ask(now: number, signal: AbortSignal): Promise<void> {
    this.asked = now;
    await askWord(this.parts, signal);
  }

  /** Ends the follow where only the scheduler can bring news, or nothing will come at all. */
  private judge(): void {
    const { probe, word } = this.parts.mirror.file;
    const unborn = probe === null || probe.state === "absent" || probe.state === "claimed";
    const gone = probe?.state === "exited" || probe?.state.startsWith("lost:") === true;
    if (this.caughtUp === 0) return;
    if (word?.state === "queued" && (unborn || gone)) return this.halt("waiting");
    const ended = word?.state === "ended" || word?.state === "not-found" || this.parts.remote.kind === "ssh";
    if (ended && (probe?.state.startsWith("lost:") === true || (unborn && word !== null))) this.halt("over");
  }
}

/** Asks the scheduler and remembers its word. Null where there is no scheduler. Throws ReachError. */
export async function askWord({ remote, target, mirror, clock, log }: Pick<SessionParts, "remote" | "target" | "mirror" | "clock" | "log">, signal: AbortSignal): Promise<SchedulerWord | null> {
  const attempt = newestJob(remote)?.attempt ?? 1;
  const before = mirror.file.word;
  const word = await target.word(remote, attempt, signal);
  if (word === null) return null;
  mirror.note({ word, heard: clock.now(), unreachable: null });
  if (before?.state !== word.state || before.reason !== word.reason) log.info(`${remote.address} says of ${mirror.dir}: ${[word.state, word.end, word.reason].filter(Boolean).join(", ")}.`);
  return word;
}

/** The newest attempt that has a job; an attempt that the scheduler began by itself is of the same job as the one before. */
function newestJob(remote: RemoteFile): { attempt: number; job: JobRef } | null {
  const all = remote.attempts.flatMap(({ attempt, job }) => (job === null ? [] : [{ attempt, job }])).sort((a, b) => b.attempt - a.attempt);
  return all[0] ?? null;
}
