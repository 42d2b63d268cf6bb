import type { FileHandle } from "node:fs/promises";
import { messageOf } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { LineSplitter, type Line } from "../../util/lines.ts";
import { prefixFingerprint } from "../rows/fileFingerprint.ts";
import type { FileNote } from "../rows/rowSource.ts";
import { stampOf, type ByteFeed } from "./byteFeed.ts";
import type { DatasetKind, DatasetReader, DatasetRow, DatasetStatus, FindOptions, FindRequest } from "./datasetReader.ts";
import { isBlank, LineAnchors, type Anchor } from "./lineAnchors.ts";
import { ReaderEnd } from "./readerEnd.ts";
import { TextMatcher } from "./textMatcher.ts";

const readBytes = 256 * 1024;
const findBytes = 4 * 1024 * 1024;

/** JSON Lines, plain or unpacked from an archive: one pass sets anchors, rows are read again from the nearest one. */
export class LineReader extends ReaderEnd implements DatasetReader {
  readonly kind: DatasetKind;
  private readonly feed: ByteFeed;
  private readonly file: FileHandle;
  private readonly start: number;
  private readonly anchors: LineAnchors;
  private readonly notes: FileNote[] = [];
  private running: Promise<void>;
  private complete = false;
  private total: number;
  private stamp: string;
  private fingerprint = "";

  /** `start`: 3 after a byte order mark. */
  constructor(path: string, kind: DatasetKind, feed: ByteFeed, start: number, notes: readonly FileNote[]) {
    super(path, () => feed.close());
    this.kind = kind;
    this.feed = feed;
    this.file = feed.file;
    this.start = start;
    this.notes.push(...notes);
    this.anchors = new LineAnchors(start);
    const now = stampOf(path);
    this.total = now?.size ?? 0;
    this.stamp = now?.stamp ?? "";
    this.running = this.holding(this.run());
  }

  status(): DatasetStatus {
    const { done } = this.feed;
    return { rows: this.anchors.rows, complete: this.complete, done, total: Math.max(done, this.total), notes: [...this.notes, ...this.feed.notes], changed: this.changed };
  }

  /** Memory of the index in bytes. */
  get indexBytes(): number {
    return this.anchors.bytes;
  }

  async *rowsFrom(first: number, limit: number, signal?: AbortSignal): AsyncGenerator<DatasetRow> {
    const anchor = this.anchors.ofRow(first);
    if (anchor === null || first >= this.anchors.rows) return;
    let { row } = anchor;
    for await (const line of this.lines(anchor, limit, signal)) {
      if (row >= first) yield { row, line: line.number, offset: line.offset, length: line.length, bytes: line.bytes, cut: line.cut, ended: line.ended };
      row++;
    }
  }

  async rowOfLine(wanted: number, signal?: AbortSignal): Promise<number | null> {
    const anchor = this.anchors.ofLine(wanted);
    if (anchor === null) return null;
    let { row } = anchor;
    for await (const { number } of this.lines(anchor, 64, signal)) {
      if (number >= wanted) return row;
      row++;
    }
    return null;
  }

  async find(request: FindRequest, { signal, onProgress }: FindOptions): Promise<number | null> {
    const matcher = new TextMatcher(request.text, request.matchCase);
    const begin = await this.offsetOf(request.from, signal);
    const found = request.direction === 1 ? await this.forward(matcher, begin, signal, onProgress) : await this.backward(matcher, await this.offsetOf(request.from + 1, signal), signal, onProgress);
    return found === null ? null : this.rowAt(found, signal);
  }

  /** Looks through what is not looked through yet. */
  private async run(): Promise<void> {
    this.complete = false;
    try {
      for (let chunk = await this.feed.next(); chunk !== null && !this.disposed; chunk = await this.feed.next()) {
        if (this.anchors.position === this.start) this.noteShape(chunk);
        this.anchors.push(chunk);
        this.throttle.request();
      }
    } catch (error) {
      this.notes.push({ severity: "error", code: "unreadable", message: t("reading stopped after {0} bytes: {1}", this.anchors.position, messageOf(error)) });
    }
    if (this.kind === "lines" && !this.disposed) this.fingerprint = fingerprintOf(this.path, this.feed.done);
    this.complete = true;
    this.throttle.now();
  }

  private noteShape(chunk: Uint8Array): void {
    const first = chunk.find((byte) => !isBlank(Uint8Array.of(byte)));
    if (first === 0x5b) this.notes.push({ severity: "warning", code: "array", message: t("the file begins with `[`: it looks like one JSON array, not one row per line; its lines are shown as they are") });
  }

  /** The file on disk was touched: what was only added is read on, anything else is for the person to decide. */
  protected look(): void {
    const now = stampOf(this.path);
    if (now?.stamp === this.stamp) return;
    const grown = this.kind === "lines" && now !== null && now.size >= this.total && now.stamp.split(" ")[0] === this.stamp.split(" ")[0];
    if (grown && (!this.complete || (now.size > this.feed.done && fingerprintOf(this.path, this.feed.done) === this.fingerprint))) {
      this.stamp = now.stamp;
      this.total = now.size;
      const before = this.running;
      this.running = this.holding(before.then(() => (this.disposed ? undefined : this.run())));
      return;
    }
    this.tellChanged();
  }

  /** The rows from an anchor to the end of what is known. */
  private async *lines({ offset, line }: Anchor, limit: number, signal?: AbortSignal): AsyncGenerator<Line> {
    const splitter = new LineSplitter({ maxBytes: limit, offset, number: line });
    const end = this.anchors.position;
    for (let at = offset; at < end; ) {
      const chunk = await this.read(at, Math.min(readBytes, end - at), signal);
      if (chunk.length === 0) break;
      at += chunk.length;
      for (const found of splitter.push(chunk)) if (!isBlank(found.bytes)) yield found;
    }
    const tail = splitter.end();
    if (tail !== null && !isBlank(tail.bytes)) yield tail;
  }

  private async read(at: number, length: number, signal?: AbortSignal): Promise<Buffer> {
    signal?.throwIfAborted();
    this.mustBeOpen();
    const buffer = Buffer.allocUnsafe(length);
    return buffer.subarray(0, (await this.holding(this.file.read(buffer, 0, length, at))).bytesRead);
  }

  private async offsetOf(row: number, signal: AbortSignal): Promise<number> {
    if (row <= 0) return this.start;
    for await (const { offset } of this.rowsFrom(row, 64, signal)) return offset;
    return this.anchors.position;
  }

  private async rowAt(offset: number, signal: AbortSignal): Promise<number | null> {
    const anchor = this.anchors.ofOffset(offset);
    if (anchor === null) return null;
    let row = anchor.row - 1;
    for await (const line of this.lines(anchor, 64, signal)) {
      if (line.offset > offset) break;
      row++;
    }
    return Math.max(0, row);
  }

  private async forward(matcher: TextMatcher, begin: number, signal: AbortSignal, onProgress?: (share: number) => void): Promise<number | null> {
    for (let at = begin; ; ) {
      const end = this.anchors.position;
      if (at >= end || (end - at < matcher.longest && !this.complete)) {
        if (this.complete) return null;
        await this.progress(signal);
        continue;
      }
      const chunk = await this.read(at, Math.min(findBytes, end - at), signal);
      const found = matcher.first(chunk);
      if (found >= 0) return at + found;
      if (chunk.length < matcher.longest) return null;
      at += at + chunk.length >= end && this.complete ? chunk.length : chunk.length - (matcher.longest - 1);
      onProgress?.(Math.min(1, (at - begin) / Math.max(1, this.total - begin)));
    }
  }

  private async backward(matcher: TextMatcher, from: number, signal: AbortSignal, onProgress?: (share: number) => void): Promise<number | null> {
    for (let end = from; end > this.start; ) {
      const at = Math.max(this.start, end - findBytes);
      const found = matcher.last(await this.read(at, end - at, signal));
      if (found >= 0) return at + found;
      if (at === this.start) return null;
      end = at + matcher.longest - 1;
      onProgress?.((from - at) / Math.max(1, from));
    }
    return null;
  }

  /** Until more of the file is known. */
  private progress(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.disposed) return reject(new Error(t("{0} was closed.", this.path)));
      const listener = this.onDidChange(() => done(resolve));
      const abort = (): void => done(() => reject(signal.reason as Error));
      const done = (then: () => void): void => {
        listener.dispose();
        signal.removeEventListener("abort", abort);
        then();
      };
      signal.addEventListener("abort", abort);
    });
  }
}

/** Of the first bytes of a file; empty where it is gone by now. */
function fingerprintOf(path: string, length: number): string {
  try {
    return prefixFingerprint(path, length);
  } catch {
    return "";
  }
}
