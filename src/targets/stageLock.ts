import { link, mkdir, open, readFile, rm, stat, utimes } from "node:fs/promises";
import { dirname, join } from "node:path";
import { randomBytes } from "node:crypto";
import { AppError } from "../util/errors.ts";
import { diskError } from "./local.ts";
import { isAlive, thisProcess, type ProcessIdentity } from "../storage/runs/processIdentity.ts";

interface LockContent extends ProcessIdentity {
  run: string;
  t: number;
}

/** How long a lock of another machine, whose processes we cannot see, is believed after its last sign of life. */
const foreignMs = 120_000;
const beatMs = 10_000;

/**
 * Takes `<runsDir>/.lock-<stage>`: of any number of windows exactly one gets it. Returns the function that releases it.
 * The others get AppError("already-running") naming the run that is being started. A lock whose owner died is taken over.
 */
export async function lockStage(runsDir: string, stage: string, run: string): Promise<() => Promise<void>> {
  const path = join(runsDir, `.lock-${stage}`);
  const content: LockContent = { run, ...thisProcess(), t: Date.now() / 1000 };
  await mkdir(runsDir, { recursive: true });
  for (let tries = 0; tries < 20; tries++) {
    if (await create(path, JSON.stringify(content))) return hold(path, run);
    const owner = await readLock(path);
    if (owner === null) continue; // released a moment ago
    if (!(await isStale(path, owner))) {
      throw new AppError("already-running", `Stage \`${stage}\` is just being started as ${owner.run} by process ${owner.pid} on ${owner.host}.`);
    }
    await removeStale(path);
  }
  throw new AppError("internal", `The lock ${path} could not be taken: remove it if no other window starts this stage.`);
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

async function readLock(path: string): Promise<LockContent | null> {
  try {
    const value = JSON.parse(await readFile(path, "utf8")) as LockContent;
    return { ...value, boot: value.boot ?? "" };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    // No lock of ours is ever half written: this one was damaged by something else, and has no owner.
    return { run: "an unknown run", host: thisProcess().host, boot: "damaged", pid: 0, start: 0, t: 0 };
  }
}

async function isStale(path: string, owner: LockContent): Promise<boolean> {
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
