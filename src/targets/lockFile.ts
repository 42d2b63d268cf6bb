import { randomBytes } from "node:crypto";
import { link, open, readFile, rm, stat, utimes } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isAlive, thisProcess, type ProcessIdentity } from "../storage/runs/processIdentity.ts";
import { diskError } from "./local.ts";

/** Who holds a lock, and what for. */
export interface LockOwner extends ProcessIdentity {
  run: string;
  t: number;
}

/** How long a lock of another machine, whose processes we cannot see, is believed after its last sign of life. */
const foreignMs = 120_000;
const beatMs = 10_000;

/**
 * One attempt to take the lock file `path`, whose folder exists: the function that releases it, or who holds it; null when
 * it was in the way a moment ago and should be tried again. A lock whose owner died is taken over.
 */
export async function tryLock(path: string, run: string): Promise<(() => Promise<void>) | LockOwner | null> {
  const content: LockOwner = { run, ...thisProcess(), t: Date.now() / 1000 };
  if (await create(path, JSON.stringify(content))) return hold(path, run);
  const owner = await readLock(path);
  if (owner === null) return null; // released a moment ago
  if (!(await isStale(path, owner))) return owner;
  await removeStale(path);
  return null;
}

/** The living owner of a lock file; null when there is none. */
export async function lockOwner(path: string): Promise<LockOwner | null> {
  const owner = await readLock(path);
  return owner === null || (await isStale(path, owner)) ? null : owner;
}

/** The file appears with its whole content or not at all: written aside, then linked to its name. */
async function create(path: string, text: string): Promise<boolean> {
  const aside = join(dirname(path), `.lock-new-${process.pid}-${randomBytes(4).toString("hex")}`);
  try {
    const handle = await open(aside, "wx");
    await handle.writeFile(text).finally(() => handle.close());
    await link(aside, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw diskError(path, error);
  } finally {
    await rm(aside, { force: true });
  }
}

function hold(path: string, run: string): () => Promise<void> {
  const beat = setInterval(() => void utimes(path, new Date(), new Date()).catch(() => {}), beatMs);
  beat.unref();
  return async () => {
    clearInterval(beat);
    const owner = await readLock(path);
    if (owner?.run === run) await rm(path, { force: true });
  };
}

async function readLock(path: string): Promise<LockOwner | null> {
  try {
    const value = JSON.parse(await readFile(path, "utf8")) as LockOwner;
    return { ...value, boot: value.boot ?? "" };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    // No lock of ours is ever half written: this one was damaged by something else, and has no owner.
    return { run: "an unknown run", host: thisProcess().host, boot: "damaged", pid: 0, start: 0, t: 0 };
  }
}

async function isStale(path: string, owner: LockOwner): Promise<boolean> {
  const alive = isAlive(owner);
  if (alive !== undefined) return !alive;
  const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: 0 }));
  return Date.now() - mtimeMs > foreignMs;
}

/**
 * Removes a stale lock. Only the holder of `<lock>.takeover` may: between looking and removing, nobody else can have put a
 * living lock in its place. The takeover is held for microseconds; one that is seconds old was left by a crash.
 */
async function removeStale(path: string): Promise<void> {
  const takeover = `${path}.takeover`;
  if (!(await create(takeover, ""))) {
    const { mtimeMs } = await stat(takeover).catch(() => ({ mtimeMs: Date.now() }));
    if (Date.now() - mtimeMs > beatMs) await rm(takeover, { force: true });
    await new Promise((resolve) => setTimeout(resolve, 5 + Math.random() * 20));
    return;
  }
  try {
    const owner = await readLock(path);
    if (owner !== null && (await isStale(path, owner))) await rm(path, { force: true });
  } finally {
    await rm(takeover, { force: true });
  }
}
