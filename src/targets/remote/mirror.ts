import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open, readFile, rename, rm, stat, truncate, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { emptyMirror, parseMirrorFile } from "../../domain/run/remoteFiles.ts";
import type { MirrorFile, StationFrame } from "../../protocol/remote.ts";
import { AppError, messageOf } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { diskError } from "../local.ts";
import { localPath, makeFolder, setAside, writeAt } from "./mirrorPaths.ts";

/**
 * The local copy of a run folder that is on another machine. Frames of its station are applied byte for byte; mirror.json is
 * written behind the data, so that a crash between the two only has a piece sent again. Bytes go to their own place, never
 * to "the end": two holders that do not know of each other write the same bytes to the same places.
 */

export interface MirrorOptions {
  /** Seconds since 1970. */
  now?: () => number;
  /** Shortest time between two writings of mirror.json, in ms. */
  everyMs?: number;
  /** Whether this process still holds the run's lease; asked before mirror.json is written. */
  holds?: () => Promise<boolean>;
}

/** A sign of life alone is written no more often than this, in ms: what it says is only when the target was last heard. */
const lazyMs = 10_000;

/** These are this machine's own, whatever the target has of the same name. */
const ours: ReadonlySet<string> = new Set(["run.json", "remote.json", "remote-plan.json", "mirror.json"]);

type Incoming = { mark: string; size: number };

export class Mirror {
  readonly dir: string;
  /** Names that the target sent and that cannot be files of a run folder here: nothing was written for them. */
  readonly refused = new Set<string>();
  private readonly state: MirrorFile;
  private readonly now: () => number;
  private readonly everyMs: number;
  private readonly holds: () => Promise<boolean>;
  private readonly incoming = new Map<string, Incoming>();
  private readonly folders = new Set<string>();
  private timer: NodeJS.Timeout | null = null;
  private due = Infinity;
  private written = -Infinity;
  private writing: Promise<void> = Promise.resolve();
  private trouble: unknown = null;

  private constructor(dir: string, state: MirrorFile, { now, everyMs, holds }: MirrorOptions) {
    this.dir = dir;
    this.state = state;
    this.now = now ?? (() => Date.now() / 1000);
    this.everyMs = everyMs ?? 250;
    this.holds = holds ?? (() => Promise.resolve(true));
  }

  /** Opens the copy in `dir` and takes it over: what is on disk beyond what mirror.json vouches for is cut off, to be sent again. */
  static async open(dir: string, options: MirrorOptions = {}): Promise<Mirror> {
    const text = await readFile(join(dir, "mirror.json"), "utf8").catch(() => "");
    const state = parseMirrorFile(text) ?? emptyMirror();
    const mirror = new Mirror(dir, { ...state, epoch: state.epoch + 1 }, options);
    await mirror.trustDisk();
    await mirror.flush();
    return mirror;
  }

  get file(): Readonly<MirrorFile> {
    return this.state;
  }

  /** What the target need not send again. */
  known(): MirrorFile["files"] {
    return structuredClone(this.state.files);
  }

  /**
   * Takes in one frame. When it resolves the bytes are in their files. AppError("disk-full" | "not-writable") when they
   * could not be written, and "bad-input" for a frame that does not fit: the copy is as before, and following anew goes on from there.
   */
  async apply(frame: StationFrame): Promise<void> {
    if (this.trouble !== null) await this.flush(); // a full disk is told where frames come from, so that no more are asked for
    switch (frame.kind) {
      case "probe": {
        const { probe, attempt } = this.state;
        const fresh = probe?.state !== frame.probe.state || attempt !== frame.attempt || probe.cancel !== frame.probe.cancel;
        this.state.probe = frame.probe;
        if (attempt !== frame.attempt) Object.assign(this.state, { attempt: frame.attempt, complete: false });
        // The scheduler was asked before this was known; only an end of the same attempt is for ever.
        if (fresh && (attempt !== frame.attempt || this.state.word?.state !== "ended")) this.state.word = null;
        return this.heard(fresh ? this.everyMs : lazyMs);
      }
      case "piece":
        if (frame.mark.startsWith("g:")) await this.grow(frame);
        else await this.whole(frame);
        return this.heard(this.everyMs);
      case "restart":
        await this.restart(frame.file, frame.mark);
        return this.heard(this.everyMs);
      case "caught-up":
        return this.heard(lazyMs);
      case "end":
        return this.heard(this.everyMs);
    }
  }

  /** Remembers what was heard apart from the files. */
  note(change: Partial<Pick<MirrorFile, "word" | "unreachable" | "complete" | "attempt" | "probe" | "heard">>): void {
    Object.assign(this.state, change);
    this.schedule(this.everyMs);
  }

  /** The files that do not hold what the target says of them at the end; they are set aside and will be sent anew. */
  async differing(sums: Record<string, { size: number; sha256: string }>): Promise<string[]> {
    const different: string[] = [];
    for (const [file, { size, sha256 }] of Object.entries(sums)) {
      const path = this.pathOf(file);
      if (path === null) continue;
      if (this.state.files[file]?.size === size && (await hashOf(path, size)) === sha256) continue;
      await setAside(path);
      delete this.state.files[file];
      different.push(file);
    }
    if (different.length > 0) this.schedule(this.everyMs);
    return different;
  }

  /** Has the disk keep what was copied, so that a power cut after this takes nothing of it. */
  async settle(): Promise<void> {
    for (const file of Object.keys(this.state.files)) {
      const path = this.pathOf(file);
      const handle = path === null ? null : await open(path, "r+").catch(() => null);
      if (path === null || handle === null) continue;
      await handle.datasync().catch((error: unknown) => { throw diskError(path, error); }).finally(() => handle.close());
    }
  }

  /** Writes mirror.json now. AppError("cancelled") when another process has the lease meanwhile. */
  flush(): Promise<void> {
    const next = this.writing.then(() => this.write());
    this.writing = next.catch(() => undefined);
    return next;
  }

  /** Writes what is still unwritten and stops. */
  async close(): Promise<void> {
    const unwritten = this.due !== Infinity || this.trouble !== null;
    if (this.timer !== null) clearTimeout(this.timer);
    if (unwritten) await this.flush().catch(() => {});
    await this.writing;
    if (this.timer !== null) clearTimeout(this.timer);
  }

  private heard(ms: number): void {
    this.state.heard = this.now();
    if (this.state.unreachable !== null) {
      this.state.unreachable = null;
      ms = this.everyMs;
    }
    this.schedule(ms);
  }

  /** Bytes of a file that only grows. */
  private async grow({ file, offset, data, mark }: Extract<StationFrame, { kind: "piece" }>): Promise<void> {
    const path = await this.place(file);
    if (path === null) return void (this.state.files[file] = { size: offset + byteLength(data), mark });
    const known = this.state.files[file];
    // Nobody vouches for a file that is here already: it is kept beside the one that comes now.
    if (known === undefined && offset === 0) await setAside(path);
    const size = known?.size ?? 0;
    if (offset > size) throw misfit(file, t("bytes {0} to {1} are missing", size, offset));
    let bytes = Buffer.from(data, "base64");
    let from = offset;
    if (offset < size) {
      const again = bytes.subarray(0, size - offset);
      if (!again.equals(await readAt(path, offset, again.length))) {
        await setAside(path);
        delete this.state.files[file];
        throw misfit(file, t("what was sent again is not what was sent before"));
      }
      [bytes, from] = [bytes.subarray(again.length), size];
    }
    if ((bytes.length > 0 || known === undefined) && !(await writeAt(this.dir, path, bytes, from))) {
      await setAside(path);
      delete this.state.files[file];
      throw misfit(file, t("it was cut or removed here"));
    }
    this.state.files[file] = { size: from + bytes.length, mark };
  }

  /** A piece of a file that is replaced as a whole: gathered aside, and in place with the last one. */
  private async whole({ file, offset, data, mark, done }: Extract<StationFrame, { kind: "piece" }>): Promise<void> {
    const path = await this.place(file);
    const bytes = Buffer.from(data, "base64");
    const part = path === null ? null : join(dirname(path), `.${path.slice(dirname(path).length + 1)}.part`);
    if (offset === 0 && part !== null) await rm(part, { force: true });
    const come = offset === 0 ? { mark, size: 0 } : this.incoming.get(file);
    if (come === undefined || come.mark !== mark || come.size !== offset) throw misfit(file, t("its pieces are not in order"));
    if (part !== null && !(await writeAt(this.dir, part, bytes, offset))) throw misfit(file, t("it was cut or removed here"));
    const size = offset + bytes.length;
    if (!done) return void this.incoming.set(file, { mark, size });
    this.incoming.delete(file);
    if (part !== null && path !== null) await rename(part, path).catch((error: unknown) => { throw diskError(path, error); });
    this.state.files[file] = { size, mark };
  }

  /** The target's file is another one now. What was copied of the old one is kept beside it: it may be all that is left of it. */
  private async restart(file: string, mark: string): Promise<void> {
    const path = await this.place(file);
    if (path !== null && mark.startsWith("g:")) await setAside(path);
    this.incoming.delete(file);
    if (mark.startsWith("g:")) this.state.files[file] = { size: 0, mark };
    else delete this.state.files[file];
  }

  /** Where a file of the target lies here; null for one that is not taken over. */
  private pathOf(file: string): string | null {
    const path = ours.has(file) ? null : localPath(this.dir, file);
    if (path === null && !ours.has(file)) this.refused.add(file);
    return path;
  }

  /** The same, and its folder is there. */
  private async place(file: string): Promise<string | null> {
    const path = this.pathOf(file);
    if (path === null) return null;
    const folder = dirname(path);
    if (!this.folders.has(folder)) await makeFolder(this.dir, folder);
    this.folders.add(folder);
    return path;
  }

  private async trustDisk(): Promise<void> {
    for (const [file, known] of Object.entries(this.state.files)) {
      const path = this.pathOf(file);
      if (path === null) continue;
      const size = (await stat(path).catch(() => null))?.size ?? null;
      if (size === null || (!known.mark.startsWith("g:") && size !== known.size)) delete this.state.files[file];
      else if (size > known.size) await truncate(path, known.size).catch((error: unknown) => { throw diskError(path, error); });
      else known.size = size;
    }
  }

  private schedule(ms: number): void {
    const now = performance.now();
    // Many files make a long mirror.json: it is written less often then, so that following never costs more than what is followed.
    const soonest = this.written + Math.max(this.everyMs, Object.keys(this.state.files).length);
    const due = ms > this.everyMs ? now + ms : Math.max(now, soonest);
    if (due >= this.due) return;
    this.due = due;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.flush().catch(() => {}), due - now);
    this.timer.unref();
  }

  private async write(): Promise<void> {
    if (this.timer !== null) clearTimeout(this.timer);
    [this.timer, this.due] = [null, Infinity];
    const path = join(this.dir, "mirror.json");
    const temporary = join(this.dir, `.mirror.json.${process.pid}.tmp`);
    try {
      if (!(await this.holds())) throw new AppError("cancelled", t("Another window follows {0} now.", this.dir));
      const text = JSON.stringify(this.state);
      await writeFile(temporary, `${text}\n`);
      await rename(temporary, path);
      [this.trouble, this.written] = [null, performance.now()];
    } catch (error) {
      this.trouble = error;
      await rm(temporary, { force: true }).catch(() => {});
      throw AppError.is(error) ? error : diskError(path, error);
    }
  }
}

function misfit(file: string, why: string): AppError {
  return new AppError("bad-input", t("The copy of {0} does not fit what the target sent: {1}. It is asked for again.", file, why));
}

function byteLength(base64: string): number {
  return Buffer.byteLength(base64, "base64");
}

async function readAt(path: string, position: number, length: number): Promise<Buffer> {
  const file = await open(path, "r");
  try {
    const buffer = Buffer.alloc(length);
    const { bytesRead } = await file.read(buffer, 0, length, position);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

/** SHA-256 of the first `size` bytes; null when the file is shorter, longer or cannot be read. */
async function hashOf(path: string, size: number): Promise<string | null> {
  try {
    if ((await stat(path)).size !== size) return null;
    const hash = createHash("sha256");
    for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
    return hash.digest("hex");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw new AppError("not-writable", t("{0} cannot be read: {1}.", path, messageOf(error)), { cause: error });
  }
}
