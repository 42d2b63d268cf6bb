const [quote, backslash, comma, openBracket, closeBracket, openBrace, closeBrace, lf] = [34, 92, 44, 91, 93, 123, 125, 10];

/** One element of a JSON array that spans lines. */
export interface ArrayElement {
  bytes: Uint8Array;
  offset: number;
  line: number;
  /** In characters, from 1. */
  column: number;
  lastLine: number;
  ended: boolean;
}

/**
 * Cuts the elements out of a JSON array, chunk by chunk. Only brackets and strings are looked at; every element is parsed on
 * its own later, so a broken one hides no other. A string cannot span lines: one that is not closed ends with its line.
 */
export class ArrayElements {
  /** True when the closing bracket has been seen; what follows is handed out as elements of their own, one a line. */
  closed = false;
  /** Lines on which a comma is too many. */
  readonly extraCommas: number[] = [];
  private depth = 0;
  private inString = false;
  private escaped = false;
  private afterComma = false;
  private pieces: Uint8Array[] = [];
  private column = 1;
  private start: { offset: number; line: number; column: number } | null = null;
  private line: number;
  private offset: number;

  constructor(offset = 0, line = 1) {
    this.offset = offset;
    this.line = line;
  }

  get lines(): number {
    return this.line;
  }

  /** Takes a chunk and returns the elements that it completes. */
  push(chunk: Uint8Array): ArrayElement[] {
    const found: ArrayElement[] = [];
    let from = this.start === null ? -1 : 0;
    for (let i = 0; i < chunk.length; i++) {
      const byte = chunk[i] as number;
      const ends = this.depth === 0 ? byte === lf && this.closed : this.depth === 1 && !this.inString && (byte === comma || byte === closeBracket);
      if (ends) {
        if (from !== -1) this.pieces.push(chunk.subarray(from, i));
        this.finishElement(found, byte);
        from = -1;
      } else if (this.start === null && byte > 32 && (this.depth > 0 || this.closed)) {
        this.start = { offset: this.offset + i, line: this.line, column: this.column };
        from = i;
      }
      this.track(byte);
    }
    if (from !== -1) this.pieces.push(chunk.slice(from));
    this.offset += chunk.length;
    return found;
  }

  /** What is left when the file has ended. */
  end(): ArrayElement | null {
    const found: ArrayElement[] = [];
    if (this.start !== null) this.finishElement(found, lf);
    const [element] = found;
    return element === undefined ? null : { ...element, ended: this.closed };
  }

  private track(byte: number): void {
    if (byte === lf) {
      this.line++;
      this.column = 1;
      this.inString = this.escaped = false;
      return;
    }
    if ((byte & 0xc0) !== 0x80) this.column += byte >= 0xf0 ? 2 : 1;
    if (this.closed) return;
    if (this.inString) {
      if (this.escaped) this.escaped = false;
      else if (byte === backslash) this.escaped = true;
      else if (byte === quote) this.inString = false;
    } else if (byte === quote) this.inString = true;
    else if (byte === openBracket || byte === openBrace) this.depth++;
    else if (byte === closeBrace && this.depth > 1) this.depth--;
    else if (byte === closeBracket) {
      this.depth--;
      this.closed = this.depth === 0;
    }
  }

  private finishElement(found: ArrayElement[], byte: number): void {
    if (this.start !== null) {
      const bytes = trimEnd(Buffer.concat(this.pieces));
      const lastLine = this.start.line + count(bytes, lf);
      found.push({ bytes, ...this.start, lastLine, ended: true });
    } else if (byte === comma || this.afterComma) this.extraCommas.push(this.line);
    this.afterComma = byte === comma;
    this.start = null;
    this.pieces = [];
  }
}

/** A broken element cut where a line begins like the element itself: a missing brace swallows all elements after it. */
export function resplit(element: ArrayElement): ArrayElement[] {
  const indent = element.column - 1;
  const text = Buffer.from(element.bytes).toString("latin1");
  const cuts = [0];
  for (const match of text.matchAll(new RegExp(`\\n(?=[ \\t]{${indent}}\\{)`, "g"))) cuts.push(match.index + 1 + indent);
  return cuts.map((begin, i) => {
    const end = cuts[i + 1] ?? text.length;
    const part = text.slice(begin, end);
    let length = part.trimEnd().length;
    if (end === text.length && part[length - 1] === "]" && part.split("[").length < part.split("]").length) length = part.slice(0, length - 1).trimEnd().length;
    if (part[length - 1] === ",") length--;
    const bytes = element.bytes.subarray(begin, begin + length);
    const line = element.line + count(element.bytes.subarray(0, begin), lf);
    return { bytes, offset: element.offset + begin, line, column: element.column, lastLine: line + count(bytes, lf), ended: end < text.length || element.ended };
  });
}

function trimEnd(bytes: Uint8Array): Uint8Array {
  let end = bytes.length;
  while (end > 0 && (bytes[end - 1] as number) <= 32) end--;
  return bytes.subarray(0, end);
}

function count(bytes: Uint8Array, byte: number): number {
  let result = 0;
  for (let at = bytes.indexOf(byte); at !== -1; at = bytes.indexOf(byte, at + 1)) result++;
  return result;
}
