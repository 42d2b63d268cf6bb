import { open, stat, type FileHandle } from "node:fs/promises";
import type { JournalEvent, UnknownEvent } from "../../protocol/journal.ts";
import type { RunState } from "../../domain/run/runState.ts";
import { parseJournalLine } from "../../domain/run/journalLine.ts";
import { emptyRunState, reduceEvents } from "../../domain/run/reduceRun.ts";

const chunkSize = 1 << 20;
/** Bytes before the offset that must be unchanged, or the file was replaced. */
const overlap = 64;

/**
 * Follows one journal by byte offset: each `read` takes in only what was appended since the last one. A last line without
 * its line feed is left for the next read. A shorter, replaced or rewritten file is read again from the start.
 */
export class JournalTail {
  private readonly path: string;
  private state: RunState = emptyRunState();
  private offset = 0;
  private inode = -1;
  private size = -1;
  private modified = -1;
  private before: Uint8Array = new Uint8Array();
  private queue: Promise<unknown> = Promise.resolve();

  constructor(path: string) {
    this.path = path;
  }

  /** The state after everything that is in the file now. Throws AppError("newer-schema"), or the file system's error. */
  read(): Promise<RunState> {
    const next = this.queue.then(() => this.readNow());
    this.queue = next.catch(() => undefined);
    return next;
  }

  private async readNow(): Promise<RunState> {
    let file: FileHandle;
    try {
      const seen = await stat(this.path);
      if (seen.ino === this.inode && seen.size === this.size && seen.mtimeMs === this.modified) return this.state;
      file = await open(this.path, "r");
    } catch (error) {
      this.reset();
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      return this.state;
    }
    try {
      const { ino, size, mtimeMs } = await file.stat();
      if (ino !== this.inode || size < this.offset || !(await this.isSameFile(file))) this.reset();
      await this.append(file, size);
      [this.inode, this.size, this.modified] = [ino, size, mtimeMs];
      return this.state;
    } catch (error) {
      this.reset();
      throw error;
    } finally {
      await file.close();
    }
  }

  private reset(): void {
    [this.state, this.offset, this.inode, this.size, this.modified, this.before] = [emptyRunState(), 0, -1, -1, -1, new Uint8Array()];
  }

  private async isSameFile(file: FileHandle): Promise<boolean> {
    const found = await readAt(file, this.offset - this.before.length, this.before.length);
    return Buffer.compare(found, this.before) === 0;
  }

  private async append(file: FileHandle, size: number): Promise<void> {
    let rest: Buffer = Buffer.alloc(0);
    let position = this.offset;
    while (position < size) {
      const piece = await readAt(file, position, Math.min(chunkSize, size - position));
      if (piece.length === 0) break;
      position += piece.length;
      const bytes = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
      const end = bytes.lastIndexOf(0x0a) + 1;
      if (end > 0) this.takeLines(bytes.subarray(0, end));
      rest = bytes.subarray(end);
    }
  }

  private takeLines(bytes: Buffer): void {
    const events: (JournalEvent | UnknownEvent)[] = [];
    let bad = 0;
    for (const text of bytes.toString("utf8").split("\n")) {
      if (text.trim() === "") continue;
      const line = parseJournalLine(text);
      if (line.kind === "bad") bad += 1;
      else events.push(line.event);
    }
    this.state = reduceEvents(this.state, events);
    this.state.badLines += bad;
    this.offset += bytes.length;
    this.before = Uint8Array.from(bytes.length >= overlap ? bytes.subarray(-overlap) : Buffer.concat([this.before, bytes]).subarray(-overlap));
  }
}

async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length);
  const { bytesRead } = await file.read(buffer, 0, length, position);
  return buffer.subarray(0, bytesRead);
}
