import { mkdir, readFile, rename, stat } from "node:fs/promises";
import { join } from "node:path";
import { newQueue, parseQueue, type QueueFile, type StartingStage } from "../protocol/queueFile.ts";
import { isAlive, thisProcess } from "../storage/runs/processIdentity.ts";
import { runsFolder } from "../storage/runs/runStore.ts";
import { AppError } from "../util/errors.ts";
import { t } from "../util/l10n.ts";
import { diskError, systemWords, writeJson } from "./local.ts";
import { tryLock } from "./lockFile.ts";
import { startsElsewhere } from "./stageLock.ts";

/** How long one waits for another window to let go of the file, in ms: each holds it for a few. */
const patienceMs = 5000;
/** A start on another machine, whose processes we cannot see, is believed for so long, in seconds. */
const foreignSeconds = 600;

/** A queue file as read, and what is to be said about it; null when there is nothing to say. */
export interface QueueSeen {
  queue: QueueFile;
  problem: string | null;
}

/**
 * The queue files, one beside the runs of each pipeline. Every change is read, made and written under a lock, so that of
 * many windows none overwrites another's; readers see the file before or after a change, never in between.
 */
export class QueueStore {
  /** This machine, since it was started: what was asked for elsewhere does not start here by itself. */
  readonly here = whereOf();

  /** What waits in `root`. A file that is not what it should be is set aside under another name, and `problem` says so. */
  async read(root: string): Promise<QueueSeen> {
    const reading = await this.look(root);
    if (reading.kind === "ok") return { queue: reading.queue, problem: null };
    if (reading.kind === "newer") return { queue: newQueue(this.here), problem: newer(root, reading.version) };
    return this.locked(root, async () => {
      // Perhaps another window was faster.
      const again = await this.look(root);
      if (again.kind !== "damaged") return { queue: again.kind === "ok" ? again.queue : newQueue(this.here), problem: null };
      const aside = `queue.damaged-${new Date().toISOString().replace(/[-:.]/g, "")}.json`;
      await rename(queuePath(root), join(root, ".seesaw", aside)).catch((error: unknown) => {
        throw diskError(queuePath(root), error);
      });
      return { queue: newQueue(this.here), problem: t("The queue of {0} could not be read: {1}. It is empty now; the file is kept as {2}.", root, again.why, `.seesaw/${aside}`) };
    });
  }

  /** Changes the file. AppError("newer-schema") when a newer Seesaw wrote it; disk errors as sentences. */
  async change<T>(root: string, edit: (queue: QueueFile) => T): Promise<T> {
    return this.locked(root, async () => {
      const reading = await this.look(root);
      if (reading.kind === "newer") throw new AppError("newer-schema", newer(root, reading.version));
      if (reading.kind === "damaged") throw new AppError("bad-input", t("{0} cannot be read: {1}.", queuePath(root), reading.why));
      const before = JSON.stringify(reading.queue);
      const result = edit(reading.queue);
      if (JSON.stringify(reading.queue) !== before) await writeJson(queuePath(root), reading.queue);
      return result;
    });
  }

  /** Differs whenever the file does; for looking often. */
  async stamp(root: string): Promise<string> {
    const now = await stat(queuePath(root)).catch(() => null);
    return now === null ? "" : `${now.ino} ${now.size} ${now.mtimeMs}`;
  }

  /** Stages and chains that other processes are about to start in `root`. */
  async elsewhere(root: string): Promise<string[]> {
    return (await startsElsewhere(runsFolder(root))).map(({ what }) => what);
  }

  /** This process as the owner of a start. */
  owner(): StartingStage["owner"] {
    return thisProcess();
  }

  /** Whether the process that starts a stage still lives. */
  owns({ owner, since }: StartingStage): "this" | "other" | "gone" {
    const alive = isAlive(owner) ?? Date.now() / 1000 - since < foreignSeconds;
    return !alive ? "gone" : owner.pid === process.pid && owner.host === thisProcess().host ? "this" : "other";
  }

  private async look(root: string): Promise<ReturnType<typeof parseQueue>> {
    try {
      return parseQueue(await readFile(queuePath(root), "utf8"));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return { kind: "ok", queue: newQueue(this.here) };
      throw new AppError("bad-input", t("{0} cannot be read: {1}.", queuePath(root), systemWords(error as NodeJS.ErrnoException)), { cause: error });
    }
  }

  private async locked<T>(root: string, work: () => Promise<T>): Promise<T> {
    const path = join(root, ".seesaw", ".lock-queue");
    await mkdir(join(root, ".seesaw"), { recursive: true }).catch((error: unknown) => {
      throw diskError(join(root, ".seesaw"), error);
    });
    for (const deadline = Date.now() + patienceMs; ; ) {
      const got = await tryLock(path, `queue-${process.pid}-${Date.now()}-${Math.random()}`);
      if (typeof got === "function") return work().finally(got);
      if (Date.now() > deadline) throw new AppError("internal", t("The queue {0} is held by process {1}: close that window, or remove {2}.", queuePath(root), got?.pid ?? t("unknown"), path));
      if (got !== null) await new Promise((resolve) => setTimeout(resolve, 5 + Math.random() * 20));
    }
  }
}

export function queuePath(root: string): string {
  return join(root, ".seesaw", "queue.json");
}

function newer(root: string, version: number): string {
  return t("{0} was written by a newer Seesaw (version {1} of the file): update the extension, or remove the file to begin a new queue.", queuePath(root), version);
}

function whereOf(): string {
  const { host, boot } = thisProcess();
  return `${host} ${boot}`;
}
