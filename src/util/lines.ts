const lf = 10;
const cr = 13;

/** One physical line. Lines end at LF only: U+2028 and a lone CR are characters of the line. */
export interface Line {
  /** Counted from 1. */
  number: number;
  /** Offset of its first byte in the stream. */
  offset: number;
  /** Bytes in the stream, without LF and without a CR before it; may exceed `bytes.length` for a cut line. */
  length: number;
  /** The line, or its beginning where it is longer than `maxBytes`. */
  bytes: Uint8Array;
  cut: boolean;
  /** False for a last line without LF: it may still be being written. */
  ended: boolean;
}

export interface LineSplitterOptions {
  /** Bytes of a line that are kept at most; the rest is counted and dropped. Default 64 MiB. */
  maxBytes?: number;
  /** Where the stream begins in its file and which line that is, to go on from a remembered place. */
  offset?: number;
  number?: number;
}

/**
 * Splits a stream of chunks into lines, with memory bounded by `maxBytes`. Chunks may end anywhere, also inside a
 * character. What follows the last LF is kept until its end arrives; `offset` is where that tail begins, so a follower
 * that remembers it can go on later.
 */
export class LineSplitter {
  private readonly maxBytes: number;
  private pieces: Uint8Array[] = [];
  private kept = 0;
  private length = 0;
  private start: number;
  private count: number;

  constructor(options: LineSplitterOptions = {}) {
    this.maxBytes = options.maxBytes ?? 64 * 1024 * 1024;
    this.start = options.offset ?? 0;
    this.count = options.number ?? 1;
  }

  /** Offset of the first byte that no returned line covers. */
  get offset(): number {
    return this.start;
  }

  /** Number of the line that begins at `offset`. */
  get number(): number {
    return this.count;
  }

  /** Takes a chunk and returns the lines that it completes. Their bytes may point into the chunk. */
  push(chunk: Uint8Array): Line[] {
    const lines: Line[] = [];
    let from = 0;
    for (let at = chunk.indexOf(lf); at !== -1; at = chunk.indexOf(lf, from)) {
      this.keep(chunk.subarray(from, at));
      lines.push(this.take(true));
      from = at + 1;
    }
    // Copied: the caller may fill the same chunk again.
    if (from < chunk.length) this.keep(chunk.slice(from));
    return lines;
  }

  /** The tail after the last LF, if there is one, when the stream has ended. */
  end(): Line | null {
    return this.length > 0 ? this.take(false) : null;
  }

  private keep(piece: Uint8Array): void {
    this.length += piece.length;
    const room = this.maxBytes - this.kept;
    if (room <= 0 || piece.length === 0) return;
    const part = piece.length > room ? piece.subarray(0, room) : piece;
    this.pieces.push(part);
    this.kept += part.length;
  }

  private take(ended: boolean): Line {
    let bytes = this.pieces.length === 1 ? (this.pieces[0] as Uint8Array) : join(this.pieces, this.kept);
    const cut = this.length > this.kept;
    let length = this.length;
    if (ended && !cut && bytes[length - 1] === cr) bytes = bytes.subarray(0, --length);
    const line: Line = { number: this.count++, offset: this.start, length, bytes, cut, ended };
    this.start += this.length + (ended ? 1 : 0);
    this.pieces = [];
    this.kept = 0;
    this.length = 0;
    return line;
  }
}

/** Lines of a stream of chunks; the last one comes with `ended: false` if it has no LF. */
export async function* linesOf(chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>, options?: LineSplitterOptions): AsyncGenerator<Line> {
  const splitter = new LineSplitter(options);
  for await (const chunk of chunks) yield* splitter.push(chunk);
  const tail = splitter.end();
  if (tail !== null) yield tail;
}

/** UTF-8 text of bytes; what is no UTF-8 becomes U+FFFD, a byte order mark stays. */
export function decodeUtf8(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

/** At most `maxChars` characters of a line, for display, with a sign that it goes on; never ends inside a character. */
export function previewOf(line: Pick<Line, "bytes" | "length">, maxChars = 200): string {
  let text = decodeUtf8(line.bytes.subarray(0, maxChars * 4));
  if (line.bytes.length > maxChars * 4) text = text.replace(/\ufffd+$/, "");
  const characters = Array.from(text.slice(0, maxChars * 2));
  const whole = characters.length <= maxChars && line.length <= line.bytes.length && line.bytes.length <= maxChars * 4;
  return whole ? text : `${characters.slice(0, maxChars).join("")}… (${line.length} bytes)`;
}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

function join(pieces: readonly Uint8Array[], length: number): Uint8Array {
  const result = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    result.set(piece, at);
    at += piece.length;
  }
  return result;
}
