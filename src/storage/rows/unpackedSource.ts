import { messageOf } from "../../util/errors.ts";
import type { FileNote, RowSource } from "./rowSource.ts";

/** The bytes of an archive as its unpacker gives them, up to a limit. What comes before a damage is given, and then it is said. */
export abstract class UnpackedSource implements RowSource {
  abstract readonly kind: RowSource["kind"];
  readonly notes: FileNote[] = [];
  protected total = 0;
  protected ended = false;
  private pending: Buffer = Buffer.alloc(0);
  private readonly limit: number;

  constructor(limit: number) {
    this.limit = limit;
  }

  abstract get consumed(): number;
  abstract close(): void;
  /** What the unpacker gives next. */
  protected abstract unpack(): Promise<IteratorResult<Buffer>>;
  /** The unpacker has nothing more: sets `ended`, or goes on with another. */
  protected abstract finish(): void | Promise<void>;
  /** The sentence for an archive that cannot be unpacked further. */
  protected abstract damage(reason: string): string;

  async read(target: Buffer): Promise<number> {
    while (this.pending.length === 0) {
      if (this.ended) return 0;
      await this.next();
    }
    const count = this.pending.copy(target, 0, 0, Math.min(target.length, this.pending.length));
    this.pending = this.pending.subarray(count);
    return count;
  }

  private async next(): Promise<void> {
    try {
      const { value, done } = await this.unpack();
      if (done === true) return await this.finish();
      this.pending = value;
    } catch (error) {
      this.ended = true;
      this.notes.push({ severity: "error", code: "archive-damaged", message: this.damage(messageOf(error)) });
      return;
    }
    this.total += this.pending.length;
    if (this.total <= this.limit) return;
    this.pending = this.pending.subarray(0, this.pending.length - (this.total - this.limit));
    this.ended = true;
    this.notes.push({ severity: "error", code: "archive-too-large", message: `the archive unpacks to more than ${this.limit} bytes; the rest is not read` });
  }
}
