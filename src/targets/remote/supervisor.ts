import { basename, dirname, join } from "node:path";
import { readFile, stat } from "node:fs/promises";
import { isComplete, newestAttempt, parseMirrorFile, parseRemoteFile } from "../../domain/run/remoteFiles.ts";
import { folderGone } from "../../domain/run/remoteStatus.ts";
import type { RemoteAttempt, RemoteFile, RemoteSettings } from "../../protocol/remote.ts";
import { AppError, messageOf } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import type { Log } from "../../util/log.ts";
import { lockStage } from "../stageLock.ts";
import { Backoff, systemClock, type Clock } from "./backoff.ts";
import { askWord, FollowSession, usualAskMs, type SessionParts } from "./followSession.ts";
import { jobOfKin } from "./arrayKin.ts";
import { takeLease, type Lease } from "./lease.ts";
import { Mirror } from "./mirror.ts";
import type { RemoteTarget } from "./port.ts";
import { reachOf } from "./reachError.ts";
import { readPlan, readRemote, withAttempt, writeRemote } from "./remoteFolder.ts";
import { isTrouble } from "./stationErrors.ts";

export interface SupervisorParts {
  /** Local run folder. */
  dir: string;
  /** Makes or finds the machine; no connection is needed for that. */
  target: (settings: RemoteSettings) => Promise<RemoteTarget>;
  log: Log;
  clock?: Clock;
  /** Shortest time between two questions to a scheduler, in ms. */
  askMs?: number;
  /** Only until it was heard how things are now, or that nobody answers. */
  once?: boolean;
  /** What stands in the way on this machine (a full disk), as a sentence; null: nothing does any more. */
  onTrouble?: (message: string | null) => void;
}

/** How a supervision ended: nothing more will come; the local folder was removed; it was only to look once; it was stopped. */
export type Supervised = "complete" | "gone" | "once" | "stopped";

/** Between two tries to get the lease that another window has, and between two looks at a start that is under way. */
const leaseMs = 5_000;
const startMs = 1_000;
/** After an end, until the scheduler has put the job away. */
const settleMs = 2_000;
const mostWaitMs = 60_000;
/** Before a file is copied again that was not what the target has. */
const differsMs = 30_000;

/**
 * Looks after one run on another machine until nothing more will come of it: holds the lease, follows, comes back after
 * cuts, finds submissions whose answer was lost, asks the scheduler where the run's machine has no word, closes an attempt
 * whose agent died. Everything it knows is in the run folder, so that any window or machine can go on.
 */
export class Supervisor {
  private readonly parts: SupervisorParts;
  private readonly clock: Clock;
  private readonly backoff: Backoff;
  private readonly askMs: number;
  private wake = new AbortController();
  private trouble: string | null = null;
  /** When it was first heard that there is no job of a submission, or that the scheduler forgot one. */
  private missingSince: number | null = null;
  private waits = 0;
  /** The attempt that has ended and is here, while its scheduler has not put the job away: it may be started again. */
  private rest: { attempt: number; restarts: number; queued: boolean; since: number } | null = null;

  constructor(parts: SupervisorParts) {
    this.parts = parts;
    this.clock = parts.clock ?? systemClock;
    this.backoff = new Backoff(this.clock.random);
    this.askMs = parts.askMs ?? usualAskMs;
  }

  /** Tries again at once, whatever it waits for. */
  poke(): void {
    this.backoff.reset();
    this.wake.abort();
  }

  async run(signal: AbortSignal): Promise<Supervised> {
    while (!signal.aborted) {
      try {
        const lease = await takeLease(this.parts.dir);
        if (!("release" in lease)) {
          if (this.parts.once === true) return "once";
          if (await this.completeElsewhere()) return "complete";
          await this.pause(leaseMs, signal);
          continue;
        }
        try {
          const end = await this.hold(lease, signal);
          if (end !== null) return end;
        } finally {
          await lease.release();
        }
      } catch (error) {
        if (!(await exists(this.parts.dir))) return "gone";
        this.stuck(messageOf(error));
        if (this.parts.once === true) return "once";
        await this.pause(this.backoff.next(null), signal);
      }
    }
    return "stopped";
  }

  /** null: the lease is somebody else's now. */
  private async hold(lease: Lease, signal: AbortSignal): Promise<Supervised | null> {
    const mirror = await Mirror.open(this.parts.dir, { now: this.clock.now, holds: lease.holds });
    try {
      while (!signal.aborted) {
        const remote = await readRemote(this.parts.dir);
        if (remote === null) return "gone";
        if (isComplete(remote, mirror.file)) return "complete";
        if (!(await lease.holds())) return null;
        const wait = await this.step(remote, mirror, lease, signal).catch((error: unknown) => this.failed(error, mirror, signal));
        if (mirror.refused.size > 0) this.parts.log.warn(`${remote.address} has files in ${remote.dir} whose names cannot be used here; they were left out: ${[...mirror.refused].join(", ")}`);
        mirror.refused.clear();
        if (wait === "once" || (this.parts.once === true && wait !== 0)) return "once";
        if (!isComplete(remote, mirror.file)) await this.pause(wait, signal);
      }
      return "stopped";
    } finally {
      await mirror.close();
    }
  }

  /** One thing that has to be done for the run now. Resolves with how long to wait before the next, in ms. */
  private async step(remote: RemoteFile, mirror: Mirror, lease: Lease, signal: AbortSignal): Promise<number | "once"> {
    const asked = newestAttempt(remote);
    if (asked === null) return startMs;
    if (asked.state !== "submitted") return this.submission(remote, asked, mirror, signal);
    // What was heard of an older attempt says nothing about the one that was asked for since.
    if (asked.attempt > mirror.file.attempt) mirror.note({ attempt: asked.attempt, probe: null, word: null, complete: false });
    const target = await this.parts.target(remote.settings);
    const session = new FollowSession({
      ...{ remote, target, mirror, lease, clock: this.clock, log: this.parts.log, once: this.parts.once === true, askMs: this.askMs },
      news: this.newsOf(remote),
      found: (attempt, nonce) => this.noteFound(asked, attempt, nonce),
    } satisfies SessionParts);
    if (await this.stillQueued(remote, target, mirror, signal)) return this.slower();
    const resting = await this.atRest(remote, target, mirror, signal);
    if (resting !== null) return resting;
    const why = await session.run(signal).catch((error: unknown) => {
      // A cut after something came is the first of its row; a full disk here is not mended by what came before it.
      if (session.heard && reachOf(error) !== null) this.well();
      throw error;
    });
    if (session.heard) this.well();
    switch (why) {
      case "end":
        return this.atEnd(remote, target, mirror, signal);
      case "over":
        return this.atLoss(remote, target, mirror, signal);
      case "waiting":
        return this.askMs;
      case "once":
        return "once";
      case "differs":
        return differsMs;
      default:
        return session.heard ? 0 : this.backoff.next(null);
    }
  }

  /** A job in a queue writes nothing: only its scheduler is asked, and no connection is kept. */
  private async stillQueued(remote: RemoteFile, target: RemoteTarget, mirror: Mirror, signal: AbortSignal): Promise<boolean> {
    const { probe, word } = mirror.file;
    if (remote.kind === "ssh" || (word !== null && word.state !== "queued") || (probe !== null && (probe.state === "running" || probe.state === "orphan"))) return false;
    if (word === null && mirror.file.heard !== null && probe !== null && probe.state !== "absent") return false;
    const now = await askWord({ remote, target, mirror, clock: this.clock, log: this.parts.log }, signal);
    this.well();
    // What an attempt before this wait left behind is copied first: the follow ends by itself when it is here.
    return now?.state === "queued" && word?.state === "queued";
  }

  /** A start that is under way, or whose answer was lost. Under the stage's lock, so that no launcher is at it meanwhile. */
  private async submission(remote: RemoteFile, asked: RemoteAttempt, mirror: Mirror, signal: AbortSignal): Promise<number> {
    const release = await this.stageLock();
    if (release === null) return startMs;
    try {
      const fresh = await readRemote(this.parts.dir);
      const now = fresh === null ? null : newestAttempt(fresh);
      if (fresh === null || now === null || now.attempt !== asked.attempt || now.state !== asked.state) return 0;
      const kin = await jobOfKin(this.parts.dir, now);
      if (asked.state === "prepared" && kin === null) {
        // Who prepared it is gone, and nothing was ever asked of the target.
        if (mirror.file.word?.state !== "not-found") mirror.note({ word: { state: "not-found", reason: null } });
        return this.askMs;
      }
      const target = await this.parts.target(remote.settings);
      const job = kin ?? (await target.find(fresh, asked.attempt, signal)) ?? (await this.askAgain(target, asked, signal));
      if (job === null) return this.askMs;
      await writeRemote(this.parts.dir, withAttempt(fresh, { ...asked, state: "submitted", job }));
      this.parts.log.info(`The start of ${this.parts.dir} whose answer was lost is job ${job.id} on ${remote.address}.`);
      mirror.note({ heard: this.clock.now(), unreachable: null, word: null });
      this.well();
      return 0;
    } finally {
      await release();
    }
  }

  /** Submits once more, but only when the target has said twice, some time apart, that it knows of no such job. */
  private async askAgain(target: RemoteTarget, asked: RemoteAttempt, signal: AbortSignal): ReturnType<RemoteTarget["find"]> {
    const now = this.clock.monotonic();
    this.missingSince ??= now;
    if (now - this.missingSince < this.askMs * 0.9) return null;
    this.missingSince = null;
    const plan = await readPlan(this.parts.dir);
    if (plan.attempt !== asked.attempt || plan.attemptSpec.nonce !== asked.nonce) throw new AppError("run-unreadable", t("How attempt {0} of {1} was asked for is not known here: start the stage again.", asked.attempt, plan.id));
    this.parts.log.info(`${target.address} knows of no job for ${this.parts.dir}: it is submitted again.`);
    await target.prepare(plan, () => {}, signal);
    return target.submit(plan, signal);
  }

  /** The attempt has ended and everything is here. A job that its scheduler may start again is not over. */
  private async atEnd(remote: RemoteFile, target: RemoteTarget, mirror: Mirror, signal: AbortSignal): Promise<number> {
    const word = remote.kind === "ssh" ? null : await askWord({ remote, target, mirror, clock: this.clock, log: this.parts.log }, signal);
    if (word === null || word.state === "ended" || word.state === "not-found") return this.complete(mirror);
    this.rest = { attempt: mirror.file.attempt, restarts: word.restarts ?? 0, queued: word.state === "queued", since: this.clock.monotonic() };
    return this.slower(settleMs);
  }

  /** How long to wait for the scheduler to put the job away, without following anew what is here already; null: follow. */
  private async atRest(remote: RemoteFile, target: RemoteTarget, mirror: Mirror, signal: AbortSignal): Promise<number | null> {
    const { rest } = this;
    this.rest = null;
    if (rest === null || rest.attempt !== mirror.file.attempt) return null;
    const word = await askWord({ remote, target, mirror, clock: this.clock, log: this.parts.log }, signal);
    if (word === null || word.state === "ended" || word.state === "not-found") return this.complete(mirror);
    const again = word.state !== "queued" && (rest.queued || (word.restarts ?? 0) !== rest.restarts || this.clock.monotonic() - rest.since > mostWaitMs);
    if (again) return null;
    this.rest = { ...rest, queued: word.state === "queued" };
    return this.slower(settleMs);
  }

  /** The target says that nothing of the attempt lives, and there is no exit.json. */
  private async atLoss(remote: RemoteFile, target: RemoteTarget, mirror: Mirror, signal: AbortSignal): Promise<number> {
    const { probe, word, attempt } = mirror.file;
    if (word?.state === "not-found") {
      // A scheduler that was just started again may not know its jobs yet.
      const now = this.clock.monotonic();
      this.missingSince ??= now;
      if (now - this.missingSince < this.askMs * 0.9) return this.askMs;
      this.missingSince = null;
    }
    if (probe === null || !probe.state.startsWith("lost:")) return (await this.hasBegun(remote, target, mirror, signal)) ? 0 : this.complete(mirror);
    const closed = await target.reap(remote, attempt, signal);
    mirror.note({ probe: closed, heard: this.clock.now() });
    if (closed.state === "exited") return 0; // what reaping wrote is copied, and then it is over
    return this.complete(mirror);
  }

  /** Whether there is something to copy after all: a job may begin and end between the last look at its folder and its scheduler's word. */
  private async hasBegun(remote: RemoteFile, target: RemoteTarget, mirror: Mirror, signal: AbortSignal): Promise<boolean> {
    const attempt = Math.max(mirror.file.attempt, newestAttempt(remote)?.attempt ?? 1);
    const probe = await target.probe(remote, attempt, signal).catch((error: unknown) => {
      if (isTrouble(error, "no-run") || isTrouble(error, "no-runner")) return null;
      throw error;
    });
    if (probe === null || probe.state === "absent" || probe.state === "claimed") return false;
    mirror.note({ attempt, probe, heard: this.clock.now() });
    return true;
  }

  private async complete(mirror: Mirror): Promise<number> {
    await mirror.settle();
    mirror.note({ complete: true, unreachable: null });
    await mirror.flush();
    return 0;
  }

  /** What to do about an error: how long to wait. */
  private async failed(error: unknown, mirror: Mirror, signal: AbortSignal): Promise<number> {
    if (signal.aborted || !(await exists(this.parts.dir))) return 0;
    if (isTrouble(error, "no-run")) {
      mirror.note({ probe: null, word: { state: "not-found", reason: folderGone }, heard: this.clock.now(), unreachable: null });
      return this.backoff.next("other");
    }
    const reason = reachOf(error);
    if (reason !== null) {
      const before = mirror.file.unreachable;
      if (before?.reason !== reason) this.parts.log.info(`${this.parts.dir}: ${messageOf(error)}`);
      mirror.note({ unreachable: { since: before?.since ?? this.clock.now(), reason, message: messageOf(error) } });
      return this.backoff.next(reason);
    }
    if (AppError.is(error, "cancelled")) return startMs; // the lease is gone, or this window is being closed
    this.stuck(messageOf(error));
    return this.backoff.next(null);
  }

  /** Says once what stands in the way here. */
  private stuck(message: string): void {
    if (this.trouble !== message) this.parts.log.warn(`${this.parts.dir}: ${message}`);
    this.trouble = message;
    this.parts.onTrouble?.(message);
  }

  private well(): void {
    this.backoff.reset();
    this.waits = 0;
    if (this.trouble === null) return;
    this.trouble = null;
    this.parts.onTrouble?.(null);
  }

  /** Waits that become longer while nothing changes: a queue may take days. */
  private slower(from = this.askMs): number {
    const wait = Math.min(mostWaitMs, from * 1.2 ** this.waits);
    this.waits += 1;
    return wait;
  }

  private async pause(ms: number, signal: AbortSignal): Promise<void> {
    if (ms > 0) await this.clock.sleep(ms, AbortSignal.any([signal, this.wake.signal]));
    if (this.wake.signal.aborted) this.wake = new AbortController();
  }

  /** Whether another holder of the lease has brought the run to its end. */
  private async completeElsewhere(): Promise<boolean> {
    const remote = await readRemote(this.parts.dir);
    return remote !== null && isComplete(remote, parseMirrorFile(await readFile(join(this.parts.dir, "mirror.json"), "utf8").catch(() => "")));
  }

  /** The attempt that a scheduler began by itself is remembered like those that were asked for. */
  private async noteFound(base: RemoteAttempt, attempt: number, nonce: string): Promise<void> {
    const release = await this.stageLock();
    if (release === null) throw new AppError("already-running", t("The stage is just being started."));
    try {
      const remote = await readRemote(this.parts.dir);
      if (remote === null || remote.attempts.some((one) => one.attempt === attempt)) return;
      await writeRemote(this.parts.dir, withAttempt(remote, { ...base, attempt, nonce: nonce === "" ? base.nonce : nonce, asked: null }));
    } finally {
      await release();
    }
  }

  /** null while something else of this stage is being started. */
  private async stageLock(): Promise<(() => Promise<void>) | null> {
    const id = basename(this.parts.dir);
    const stage = id.replace(/-[^-]+-[^-]+$/, "");
    return lockStage(dirname(this.parts.dir), stage, id).catch((error: unknown) => {
      if (AppError.is(error, "already-running")) return null;
      throw error;
    });
  }

  /** Whether attempts were asked for since `remote` was read. */
  private newsOf(remote: RemoteFile): () => Promise<boolean> {
    const path = join(this.parts.dir, "remote.json");
    const attempt = newestAttempt(remote)?.attempt ?? 0;
    let seen: number | null = null;
    return async () => {
      const { mtimeMs } = await stat(path);
      if (mtimeMs === seen) return false;
      seen = mtimeMs;
      const newest = newestAttempt(parseRemoteFile(await readFile(path, "utf8")));
      return newest !== null && newest.attempt > attempt && newest.state !== "submitted";
    };
  }
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null)) !== null;
}
