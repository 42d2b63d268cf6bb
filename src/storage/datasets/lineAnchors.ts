/** A place in a file where a row begins. */
export interface Anchor {
  row: number;
  offset: number;
  line: number;
}

/** An anchor is set when this many rows, or bytes, lie behind the last one: 6 bytes of memory for 64 rows. */
const rowsApart = 256;
const bytesApart = 1024 * 1024;
const lf = 10;

/**
 * A sparse index of a file of lines, built in one pass over its bytes: from the nearest anchor a row is found by reading
 * at most 256 rows or 1 MiB (and one row). Lines end at LF only, blank lines are no rows.
 */
export class LineAnchors {
  /** Row, offset and line of each anchor, one after the other. */
  private places = new Float64Array(3 * 1024);
  private count = 0;
  private ended = 0;
  private line = 1;
  private lineStart: number;
  private blank = true;
  private at: number;

  /** `start`: where the first line begins, after a byte order mark. */
  constructor(start = 0) {
    this.at = start;
    this.lineStart = start;
  }

  /** Bytes of the file that were looked through. */
  get position(): number {
    return this.at;
  }

  /** Rows so far; a last line without LF is one of them. */
  get rows(): number {
    return this.ended + (this.blank ? 0 : 1);
  }

  get bytes(): number {
    return this.places.byteLength;
  }

  /** Takes the next bytes of the file. Nothing of them is kept. */
  push(chunk: Uint8Array): void {
    for (let from = 0; ; ) {
      const end = chunk.indexOf(lf, from);
      if (this.blank && !isBlank(chunk, from, end === -1 ? chunk.length : end)) this.begin();
      if (end === -1) break;
      if (!this.blank) this.ended++;
      this.blank = true;
      this.line++;
      from = end + 1;
      this.lineStart = this.at + from;
    }
    this.at += chunk.length;
  }

  /** The last anchor at or before a row; null where there are no rows. */
  ofRow(row: number): Anchor | null {
    return this.last(0, row);
  }

  ofOffset(offset: number): Anchor | null {
    return this.last(1, offset);
  }

  ofLine(line: number): Anchor | null {
    return this.last(2, line);
  }

  private begin(): void {
    this.blank = false;
    const last = 3 * (this.count - 1);
    if (this.count > 0 && this.ended - (this.places[last] as number) < rowsApart && this.lineStart - (this.places[last + 1] as number) < bytesApart) return;
    if (3 * this.count === this.places.length) {
      const larger = new Float64Array(this.places.length * 2);
      larger.set(this.places);
      this.places = larger;
    }
    this.places.set([this.ended, this.lineStart, this.line], 3 * this.count++);
  }

  private last(field: 0 | 1 | 2, value: number): Anchor | null {
    if (this.count === 0) return null;
    let [low, high] = [0, this.count - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.places[3 * middle + field] as number) <= value) low = middle;
      else high = middle - 1;
    }
    const [row, offset, line] = this.places.subarray(3 * low, 3 * low + 3) as unknown as [number, number, number];
    return { row, offset, line };
  }
}

/** White space as in every row reader: U+0009–U+000D and U+0020. */
export function isBlank(bytes: Uint8Array, from = 0, to = bytes.length): boolean {
  for (let i = from; i < to; i++) {
    const byte = bytes[i] as number;
    if (byte !== 32 && (byte < 9 || byte > 13)) return false;
  }
  return true;
}
