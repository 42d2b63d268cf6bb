import { randomBytes } from "node:crypto";
import { createReadStream, statSync, type ReadStream } from "node:fs";
import { mkdir, open, readdir, rm, statfs, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import * as zlib from "node:zlib";
import { AppError, messageOf } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { maxUnpacked, openRowSource, type FileNote, type RowSource } from "../rows/rowSource.ts";
import { UnpackedSource } from "../rows/unpackedSource.ts";
import type { OpenDatasetOptions } from "./datasetReader.ts";

/** Brings the bytes of a dataset into a file that can be read anywhere: the file itself, or an unpacked copy of an archive. */
export interface ByteFeed {
  /** Where rows are read from. */
  readonly file: FileHandle;
  readonly notes: FileNote[];
  /** Bytes of the dataset file itself that were read. */
  readonly done: number;
  /** The next bytes, which are in `file` by then; null at the end. They are only good until the next call. */
  next(): Promise<Uint8Array | null>;
  close(): Promise<void>;
}

/** The first answer is quick, what follows is fast. */
const firstChunk = 256 * 1024;
const chunkBytes = 4 * 1024 * 1024;
/** How often the disk is asked for its free space. */
const spaceEvery = 64 * 1024 * 1024;

/** The file as it is. */
export class PlainFeed implements ByteFeed {
  readonly notes: FileNote[] = [];
  readonly file: FileHandle;
  done: number;
  private buffer = Buffer.allocUnsafe(firstChunk);

  constructor(file: FileHandle, start: number) {
    this.file = file;
    this.done = start;
  }

  async next(): Promise<Uint8Array | null> {
    const { bytesRead } = await this.file.read(this.buffer, 0, this.buffer.length, this.done);
    const chunk = this.buffer.subarray(0, bytesRead);
    this.done += bytesRead;
    if (this.buffer.length < chunkBytes && bytesRead === this.buffer.length) this.buffer = Buffer.allocUnsafe(chunkBytes);
    return bytesRead === 0 ? null : chunk;
  }

  close(): Promise<void> {
    return this.file.close();
  }
}

/** An archive, unpacked into a temporary file. That file has no name where the system allows it, so that nothing is left behind. */
export class SpillFeed implements ByteFeed {
  readonly file: FileHandle;
  private readonly source: RowSource;
  private readonly path: string;
  private readonly dir: string;
  private readonly keepFree: number;
  private readonly buffer = Buffer.allocUnsafe(1024 * 1024);
  private written = 0;
  private checked = -spaceEvery;

  private constructor(file: FileHandle, source: RowSource, path: string, dir: string, keepFree: number) {
    this.file = file;
    this.source = source;
    this.path = path;
    this.dir = dir;
    this.keepFree = keepFree;
  }

  static async open(path: string, kind: "gzip" | "zstd", { spillDir, spillLimit = maxUnpacked, keepFree = 1024 ** 3 }: OpenDatasetOptions): Promise<SpillFeed> {
    await mkdir(spillDir, { recursive: true });
    await removeLeftovers(spillDir);
    const source = kind === "gzip" ? openRowSource(path, 0, spillLimit) : new ZstdSource(path, spillLimit);
    const spill = join(spillDir, `${process.pid}-${randomBytes(6).toString("hex")}.spill`);
    try {
      const file = await open(spill, "wx+", 0o600);
      await rm(spill, { force: true }).catch(() => {});
      return new SpillFeed(file, source, spill, spillDir, keepFree);
    } catch (error) {
      source.close();
      throw new AppError("not-writable", t("{0} cannot be unpacked into {1}: {2}.", path, spillDir, messageOf(error)), { cause: error });
    }
  }

  get notes(): FileNote[] {
    return this.source.notes;
  }

  get done(): number {
    return this.source.consumed;
  }

  async next(): Promise<Uint8Array | null> {
    if (!(await this.hasRoom())) return null;
    const count = await this.source.read(this.buffer);
    if (count === 0) return null;
    try {
      for (let at = 0; at < count; ) at += (await this.file.write(this.buffer, at, count - at, this.written + at)).bytesWritten;
    } catch (error) {
      this.notes.push({ severity: "error", code: "disk-full", message: t("unpacking stopped after {0} bytes: {1}; free space on the disk of {2}", this.written, messageOf(error), this.dir) });
      return null;
    }
    this.written += count;
    return this.buffer.subarray(0, count);
  }

  async close(): Promise<void> {
    this.source.close();
    await this.file.close();
    await rm(this.path, { force: true }).catch(() => {});
  }

  private async hasRoom(): Promise<boolean> {
    if (this.written - this.checked < spaceEvery) return true;
    this.checked = this.written;
    const { bavail, bsize } = await statfs(this.dir);
    if (bavail * bsize > this.keepFree + spaceEvery) return true;
    this.notes.push({ severity: "error", code: "disk-full", message: t("unpacking stopped after {0} bytes: the disk of {1} is nearly full; free some space and reread", this.written, this.dir) });
    return false;
  }
}

/** Spill files of processes that ended without closing theirs. */
async function removeLeftovers(dir: string): Promise<void> {
  for (const name of await readdir(dir)) {
    const pid = Number(/^(\d+)-[0-9a-f]+\.spill$/.exec(name)?.[1]);
    if (pid > 0 && !isAlive(pid)) await rm(join(dir, name), { force: true }).catch(() => {});
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** The unpacked bytes of a zstd file: frame after frame, as Node's unpacker ends with the first. */
class ZstdSource extends UnpackedSource {
  readonly kind = "plain";
  private readonly path: string;
  private readonly create: typeof zlib.createZstdDecompress;
  /** Where the current frame begins. */
  private frame = 0;
  private stream: { file: ReadStream; unpacker: zlib.ZstdDecompress; chunks: AsyncIterator<Buffer> };

  constructor(path: string, limit: number) {
    super(limit);
    // VS Code before 1.101 has no zstd in its Node.
    const create = (zlib as Partial<Pick<typeof zlib, "createZstdDecompress">>).createZstdDecompress;
    if (create === undefined) throw new AppError("bad-input", t("{0} is a zstd file, and Node {1} cannot unpack it: use VS Code 1.101 or later, or unpack it with `zstd -d`.", path, process.versions.node));
    this.path = path;
    this.create = create;
    this.stream = this.open();
  }

  get consumed(): number {
    return this.frame + this.stream.unpacker.bytesWritten;
  }

  close(): void {
    this.ended = true;
    this.stream.file.destroy();
    this.stream.unpacker.destroy();
  }

  private open(): ZstdSource["stream"] {
    const file = createReadStream(this.path, { start: this.frame });
    const unpacker = this.create();
    file.on("error", (error) => unpacker.destroy(error));
    return { file, unpacker, chunks: file.pipe(unpacker)[Symbol.asyncIterator]() as AsyncIterator<Buffer> };
  }

  protected unpack(): Promise<IteratorResult<Buffer>> {
    return this.stream.chunks.next();
  }

  /** Goes on with the next frame. */
  protected finish(): void {
    const { file, unpacker } = this.stream;
    file.destroy();
    this.frame += unpacker.bytesWritten;
    if (unpacker.bytesWritten === 0 || this.frame >= statSync(this.path).size) this.ended = true;
    else if (!this.ended) this.stream = this.open();
  }

  protected damage(reason: string): string {
    return t("the zstd archive is damaged or ends early ({0}); the rows before that place are read", reason);
  }
}

/** What tells one state of a file from another. */
export function stampOf(path: string): { size: number; stamp: string } | null {
  try {
    const { size, mtimeMs, ino } = statSync(path);
    return { size, stamp: `${ino} ${size} ${mtimeMs}` };
  } catch {
    return null;
  }
}
