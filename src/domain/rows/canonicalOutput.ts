import { fastBytes, slowBytes, type ByteMover, type FastBytes, type PlainFinder } from "./plainBytes.ts";

const [quote, backslash] = [34, 92];
const shortEscapes: ReadonlyMap<number, number> = new Map([[8, 98], [9, 116], [10, 110], [12, 102], [13, 114]]);

/**
 * The bytes of a row and, behind them in the same memory, its canonical form in the making.
 *
 * Bytes that are canonical as they stand are not touched: `from` marks where they begin, and `flush` copies them only
 * when a blank, an escape or a number in between needs rewriting, or an object's keys need sorting.
 */
export class CanonicalOutput {
  /** The first `capacity` bytes are the caller's; the rest is used here. */
  bytes: Uint8Array<ArrayBuffer> = new Uint8Array();
  capacity = 0;
  /** Whether a string of the last row holds a carriage return. */
  hasReturns = false;
  /** Moves bytes of `bytes`. */
  move: ByteMover = () => {};
  protected words = new Int32Array();
  protected find: PlainFinder | null = null;
  protected out = 0;
  protected from = 0;
  private readonly allocate: (size: number) => FastBytes;

  /** `simple`: without WebAssembly. */
  constructor(capacity: number, simple = false) {
    this.allocate = simple ? slowBytes : fastBytes;
    this.reserve(capacity);
  }

  /** Makes room for rows of `capacity` bytes; the contents of the first `keep` bytes stay. */
  reserve(capacity: number, keep = 0): void {
    const { bytes, find, move } = this.allocate((capacity * 5 + 4096) & ~7);
    bytes.set(this.bytes.subarray(0, keep));
    this.capacity = capacity;
    this.bytes = bytes;
    this.words = new Int32Array(bytes.buffer, 0, bytes.length >> 2);
    this.find = find;
    this.move = move;
  }

  /** Drops the input up to `keepFrom`, and goes on `length` bytes behind `at`. */
  protected replace(at: number, keepFrom: number, length: number): number {
    this.flush(at);
    this.from = keepFrom;
    return at + length;
  }

  /** Rewrites an escape of `length` bytes at `at`. */
  protected putCodePoint(at: number, point: number, length: number): number {
    this.flush(at);
    if (point === quote || point === backslash) {
      this.put(backslash);
      this.put(point);
    } else if (point < 32) {
      if (point === 13) this.hasReturns = true;
      const short = shortEscapes.get(point);
      this.putText(short === undefined ? `\\u${point.toString(16).padStart(4, "0")}` : `\\${String.fromCharCode(short)}`);
    } else if (point < 0x80) {
      this.put(point);
    } else if (point < 0x800) {
      this.put(0xc0 | (point >> 6));
      this.put(0x80 | (point & 63));
    } else {
      if (point < 0x10000) this.put(0xe0 | (point >> 12));
      else {
        this.put(0xf0 | (point >> 18));
        this.put(0x80 | ((point >> 12) & 63));
      }
      this.put(0x80 | ((point >> 6) & 63));
      this.put(0x80 | (point & 63));
    }
    return this.replaceFrom(at + length);
  }

  /** Goes on in the input behind something that was rewritten. */
  protected replaceFrom(at: number): number {
    this.from = at;
    return at;
  }

  protected put(byte: number): void {
    this.bytes[this.out++] = byte;
  }

  protected putText(ascii: string): void {
    for (let i = 0; i < ascii.length; i++) this.put(ascii.charCodeAt(i));
  }

  /** Copies the input up to `end` that is canonical as it stands. */
  protected flush(end: number): void {
    const length = end - this.from;
    if (length > 0) {
      this.copy(this.out, this.from, length);
      this.out += length;
    }
    this.from = end;
  }

  protected copy(to: number, from: number, length: number): void {
    const bytes = this.bytes;
    if (length > 16) this.move(to, from, length);
    else for (let i = 0; i < length; i++) bytes[to + i] = bytes[from + i] as number;
  }
}
