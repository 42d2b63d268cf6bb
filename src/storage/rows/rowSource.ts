import { createReadStream, closeSync, openSync, readSync, fstatSync } from "node:fs";
import { constants, createGunzip } from "node:zlib";
import { AppError, messageOf } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { UnpackedSource } from "./unpackedSource.ts";

/** Something odd about a file as a whole. */
export interface FileNote {
  severity: "error" | "warning" | "info";
  code: string;
  message: string;
}

/** The (unpacked) bytes of a dataset file, front to back. */
export interface RowSource {
  readonly kind: "plain" | "gzip";
  /** Complete when `read` has returned 0. */
  readonly notes: FileNote[];
  /** Bytes of the file itself that have been read, for progress. */
  readonly consumed: number;
  /** Fills the buffer from its start; 0 at the end. A number where no waiting was needed. */
  read(target: Buffer): number | Promise<number>;
  close(): void;
}

/** A gzip file of a few MB can unpack to more than the machine has. `row_bytes.py` has the same limit. */
export const maxUnpacked = 64 * 1024 ** 3;

const foreign: readonly [magic: string, what: () => string][] = [
  ["\x28\xb5\x2f\xfd", () => t("a zstd file; unpack it with `zstd -d` or pack it as gzip")],
  ["PAR1", () => t("a Parquet file; convert it to JSON Lines, for instance with `datasets.Dataset.from_parquet(...).to_json(...)`")],
  ["PK\x03\x04", () => t("a ZIP archive; unpack it")],
  ["BZh", () => t("a bzip2 file; unpack it or pack it as gzip")],
  ["\xfd7zXZ", () => t("an xz file; unpack it or pack it as gzip")],
  ["\xff\xfe", () => t("UTF-16 text; save it as UTF-8")],
  ["\xfe\xff", () => t("UTF-16 text; save it as UTF-8")],
];

/** What a file is, by its first bytes, whatever its name: a sentence for a form that is not read, else null. */
export function foreignForm(head: Uint8Array): string | null {
  const text = Buffer.from(head.buffer, head.byteOffset, head.length).toString("latin1", 0, 8);
  return foreign.find(([magic]) => text.startsWith(magic))?.[1]() ?? null;
}

/** Opens a dataset file at a byte offset (0 for gzip). Throws AppError("not-found"). */
export function openRowSource(path: string, offset = 0, limit = maxUnpacked): RowSource {
  let fd: number;
  try {
    fd = openSync(path, "r");
    if (fstatSync(fd).isDirectory()) throw new Error("it is a folder");
  } catch (error) {
    throw new AppError("not-found", t("The dataset file {0} cannot be read: {1}.", path, messageOf(error)), { cause: error });
  }
  const head = Buffer.alloc(2);
  readSync(fd, head, 0, 2, 0);
  if (head[0] !== 0x1f || head[1] !== 0x8b) return new PlainSource(fd, offset);
  closeSync(fd);
  return new GzipSource(path, limit);
}

class PlainSource implements RowSource {
  readonly kind = "plain";
  readonly notes: FileNote[] = [];
  consumed: number;
  private readonly fd: number;

  constructor(fd: number, offset: number) {
    this.fd = fd;
    this.consumed = offset;
  }

  read(target: Buffer): number {
    const count = readSync(this.fd, target, 0, target.length, this.consumed);
    this.consumed += count;
    return count;
  }

  close(): void {
    closeSync(this.fd);
  }
}

class GzipSource extends UnpackedSource {
  readonly kind = "gzip";
  private readonly path: string;
  private readonly file;
  // Without the sync flush, what was unpacked of an archive that ends early would be lost with the error.
  private readonly unpacker = createGunzip({ finishFlush: constants.Z_SYNC_FLUSH });
  private readonly chunks: AsyncIterator<Buffer>;

  constructor(path: string, limit: number) {
    super(limit);
    this.path = path;
    this.file = createReadStream(path);
    this.file.on("error", (error) => this.unpacker.destroy(error));
    this.chunks = this.file.pipe(this.unpacker)[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  }

  get consumed(): number {
    return this.file.bytesRead;
  }

  close(): void {
    this.file.destroy();
    this.unpacker.destroy();
  }

  protected unpack(): Promise<IteratorResult<Buffer>> {
    return this.chunks.next();
  }

  protected async finish(): Promise<void> {
    this.ended = true;
    if (await endsProperly(this.path, this.total)) return;
    this.notes.push({ severity: "error", code: "archive-cut", message: "the archive ends early; the rows up to there are read" });
  }

  protected damage(reason: string): string {
    return `the gzip archive is damaged (${reason}); the rows before the damage are read`;
  }
}

/** Whether the length that a gzip file ends with is the one unpacked; in doubt (several members) it is unpacked again, strictly. */
async function endsProperly(path: string, total: number): Promise<boolean> {
  const fd = openSync(path, "r");
  try {
    const tail = Buffer.alloc(4);
    const size = fstatSync(fd).size;
    if (size >= 18 && readSync(fd, tail, 0, 4, size - 4) === 4 && tail.readUInt32LE() === total % 2 ** 32) return true;
  } finally {
    closeSync(fd);
  }
  return new Promise((resolve) => {
    const strict = createReadStream(path).pipe(createGunzip());
    strict.on("error", () => resolve(false)).on("end", () => resolve(true)).resume();
  });
}
