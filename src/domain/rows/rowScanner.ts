import { CanonicalOutput } from "./canonicalOutput.ts";
import { canonicalNumber } from "./jsonNumber.ts";
import { isHugeExponent, maxDepth } from "./jsonText.ts";
import { compareBytes, decodeKey, wtf8 } from "./keyOrder.ts";
import type { PlainFinder } from "./plainBytes.ts";
import { topKeyIndex, topKeys } from "./topKeys.ts";

/** Bits of `RowScanner.notes`: odd things that do not stop a row. `parseJson` says where they are. */
export const scanNotes = { duplicateKey: 1, nonFinite: 2, overflow: 4, unpairedSurrogate: 8 } as const;

const [quote, backslash, comma, colon, openBracket, closeBracket, openBrace, closeBrace] = [34, 92, 44, 58, 91, 93, 123, 125];
const failed = -1;

/** Escapes that are canonical as they stand, but for \r, which is noted: \" \\ \b \f \n \t. */
const keptEscapes = new Uint8Array(256);
for (const letter of '"\\bfnt') keptEscapes[letter.charCodeAt(0)] = 1;

/**
 * Turns JSON rows into canonical bytes without building values: one pass over the bytes of a row, which must be valid
 * UTF-8. It accepts and produces exactly what `parseJson` and `canonicalText` do (tested against them); where it refuses a row,
 * `parseJson` says why. Rows are put into `bytes`, whose first `capacity` bytes are the caller's; the rest is its own.
 */
export class RowScanner extends CanonicalOutput {
  /** Where the canonical form of the last row lies in `bytes`. */
  start = 0;
  end = 0;
  notes = 0;
  /** For each of `topKeys` two bits of the last row: 0 absent, 1 another value, 2 string, 3 list. */
  keys = 0;
  /** First byte of the last row's value. */
  first = 0;
  private escaped = false;
  /** Three numbers a member: place in the output, start of the key in the input, its end (negative: with escapes). */
  private members = new Int32Array(3 * 64);
  private used = 0;

  /** Scans the row in `bytes[start, end)`, `end` < `capacity`. False: not one JSON value that we take. */
  scan(start: number, end: number): boolean {
    const bytes = this.bytes;
    const base = (this.capacity + 15) & ~7;
    const sentinel = bytes[end] as number;
    bytes[end] = 0;
    this.out = base;
    this.notes = 0;
    this.keys = 0;
    this.hasReturns = false;
    this.used = 0;
    let at = start;
    while (isBlank(bytes[at] as number)) at++;
    this.from = at;
    this.first = bytes[at] as number;
    const begin = at;
    at = this.value(at, 0);
    if (at !== failed) {
      this.start = begin;
      this.end = at;
      if (this.out !== base || this.from !== begin) {
        this.flush(at);
        this.start = base;
        this.end = this.out;
      }
      while (isBlank(bytes[at] as number)) at++;
    }
    bytes[end] = sentinel;
    return at === end;
  }

  /** The place after the closing quote of a string that is known to be one; `at` is its opening quote. */
  endOfString(at: number): number {
    const { bytes, find } = this;
    for (at++; ; ) {
      at = find === null ? this.skipPlain(at) : find(at);
      while (bytes[at] !== quote && bytes[at] !== backslash) at++;
      if (bytes[at] === quote) return at + 1;
      at += 2;
    }
  }

  private value(at: number, depth: number): number {
    const byte = this.bytes[at] as number;
    if (byte === quote) return this.string(at, this.find);
    if (byte === openBrace) return depth < maxDepth ? this.object(at, depth) : failed;
    if (byte === openBracket) return depth < maxDepth ? this.array(at, depth) : failed;
    if (byte === 45 || (byte >= 48 && byte <= 57)) return this.number(at);
    if (byte === 116) return this.word(at, "true");
    if (byte === 102) return this.word(at, "false");
    if (byte === 110) return this.word(at, "null");
    if (byte === 78) return this.nonFinite(at, "NaN");
    return byte === 73 ? this.nonFinite(at, "Infinity") : failed;
  }

  private word(at: number, word: string): number {
    for (let i = 0; i < word.length; i++) if (this.bytes[at + i] !== word.charCodeAt(i)) return failed;
    return at + word.length;
  }

  private nonFinite(at: number, word: string): number {
    this.notes |= scanNotes.nonFinite;
    return this.word(at, word);
  }

  private array(at: number, depth: number): number {
    const bytes = this.bytes;
    at++;
    if ((bytes[at] as number) <= 32) at = this.blanks(at);
    if (bytes[at] === closeBracket) return at + 1;
    for (;;) {
      at = this.value(at, depth + 1);
      if (at === failed) return failed;
      if ((bytes[at] as number) <= 32) at = this.blanks(at);
      const byte = bytes[at];
      if (byte === closeBracket) return at + 1;
      if (byte !== comma) return failed;
      at++;
      if ((bytes[at] as number) <= 32) at = this.blanks(at);
    }
  }

  private object(at: number, depth: number): number {
    const bytes = this.bytes;
    const base = this.used;
    let sorted = true;
    at++;
    if ((bytes[at] as number) <= 32) at = this.blanks(at);
    if (bytes[at] === closeBrace) return at + 1;
    for (;;) {
      if (bytes[at] !== quote) return failed;
      const place = this.out + at - this.from;
      const key = at + 1;
      this.escaped = false;
      at = this.string(at, null);
      if (at === failed) return failed;
      this.push(place, key, this.escaped ? 1 - at : at - 1);
      if (sorted && this.used - base > 3) sorted = this.compareKeys(this.used - 6, this.used - 3) < 0;
      const keyEnd = at - 1;
      if ((bytes[at] as number) <= 32) at = this.blanks(at);
      if (bytes[at] !== colon) return failed;
      at++;
      if ((bytes[at] as number) <= 32) at = this.blanks(at);
      if (depth === 0) this.noteTopKey(key, keyEnd, bytes[at] as number);
      at = this.value(at, depth + 1);
      if (at === failed) return failed;
      if ((bytes[at] as number) <= 32) at = this.blanks(at);
      const byte = bytes[at];
      if (byte === closeBrace) break;
      if (byte !== comma) return failed;
      at++;
      if ((bytes[at] as number) <= 32) at = this.blanks(at);
    }
    if (!sorted) this.sortMembers(base, at);
    this.used = base;
    return at + 1;
  }

  /** Returns the place after the closing quote. Only without a finder it is noted whether there are escapes. */
  private string(at: number, find: PlainFinder | null): number {
    const bytes = this.bytes;
    at++;
    for (;;) {
      let byte = bytes[at] as number;
      for (let left = 12; byte !== quote && byte !== backslash && byte >= 32; byte = bytes[++at] as number) {
        if (--left === 0) at = (find === null ? this.skipPlain(at + 1) : find(at + 1)) - 1;
      }
      if (byte === quote) return at + 1;
      if (byte !== backslash) return failed;
      this.escaped = true;
      const letter = bytes[at + 1] as number;
      if (keptEscapes[letter] === 1) at += 2;
      else if (letter === 114) {
        this.hasReturns = true;
        at += 2;
      } else if (letter === 47) at = this.replace(at, at + 1, 2);
      else if (letter === 117) at = this.unicodeEscape(at);
      else return failed;
      if (at === failed) return failed;
    }
  }

  /** Skips bytes that are no quote, backslash or control character, four at a time; may stop early. */
  private skipPlain(at: number): number {
    const words = this.words;
    const bytes = this.bytes;
    for (; (at & 3) !== 0; at++) {
      const byte = bytes[at] as number;
      if (byte === quote || byte === backslash || byte < 32) return at;
    }
    let i = at >> 2;
    for (;; i++) {
      const word = words[i] as number;
      const quotes = word ^ 0x22222222;
      const slashes = word ^ 0x5c5c5c5c;
      if ((((quotes - 0x01010101) & ~quotes) | ((slashes - 0x01010101) & ~slashes) | ((word - 0x20202020) & ~word)) & 0x80808080) return i << 2;
    }
  }

  private unicodeEscape(at: number): number {
    const unit = this.hex(at + 2);
    if (unit === failed) return failed;
    if (unit < 0xd800 || unit > 0xdfff) return this.putCodePoint(at, unit, 6);
    const bytes = this.bytes;
    if (unit < 0xdc00 && bytes[at + 6] === backslash && bytes[at + 7] === 117) {
      const low = this.hex(at + 8);
      if (low >= 0xdc00 && low <= 0xdfff) return this.putCodePoint(at, 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00), 12);
    }
    this.notes |= scanNotes.unpairedSurrogate;
    this.flush(at + 2);
    for (let i = 2; i < 6; i++) this.put((bytes[at + i] as number) | 32);
    return this.replaceFrom(at + 6);
  }

  private hex(at: number): number {
    let value = 0;
    for (let i = at; i < at + 4; i++) {
      const byte = this.bytes[i] as number;
      const letter = byte | 32;
      if (byte >= 48 && byte <= 57) value = (value << 4) | (byte - 48);
      else if (letter >= 97 && letter <= 102) value = (value << 4) | (letter - 87);
      else return failed;
    }
    return value;
  }

  private number(start: number): number {
    const bytes = this.bytes;
    let at = start;
    if (bytes[at] === 45) at++;
    if (bytes[at] === 73) return this.nonFinite(at, "Infinity");
    const whole = at;
    at = this.digits(at);
    if (at === whole || (bytes[whole] === 48 && at > whole + 1)) return failed;
    const byte = bytes[at];
    if (byte !== 46 && byte !== 101 && byte !== 69) {
      const last = bytes[at - 1];
      return (last !== 48 && at - start < 300) || (at === whole + 1 && whole === start) ? at : this.putNumber(start, at);
    }
    if (byte === 46) {
      const fraction = at + 1;
      at = this.digits(fraction);
      if (at === fraction) return failed;
    }
    if (bytes[at] === 101 || bytes[at] === 69) {
      at++;
      if (bytes[at] === 43 || bytes[at] === 45) at++;
      const exponent = at;
      at = this.digits(exponent);
      if (at === exponent) return failed;
    }
    return this.putNumber(start, at);
  }

  private digits(at: number): number {
    const bytes = this.bytes;
    while ((bytes[at] as number) >= 48 && (bytes[at] as number) <= 57) at++;
    return at;
  }

  private putNumber(start: number, end: number): number {
    let text = "";
    for (let i = start; i < end; i++) text += String.fromCharCode(this.bytes[i] as number);
    if (isHugeExponent(text)) return failed;
    if (!Number.isFinite(Number(text))) this.notes |= scanNotes.overflow;
    this.flush(start);
    this.putText(canonicalNumber(text));
    return this.replaceFrom(end);
  }

  private blanks(at: number): number {
    this.flush(at);
    const bytes = this.bytes;
    while (isBlank(bytes[at] as number)) at++;
    this.from = at;
    return at;
  }

  private push(place: number, key: number, keyEnd: number): void {
    let members = this.members;
    if (this.used + 3 > members.length) {
      members = new Int32Array(members.length * 2);
      members.set(this.members);
      this.members = members;
    }
    members[this.used++] = place;
    members[this.used++] = key;
    members[this.used++] = keyEnd;
  }

  private noteTopKey(key: number, keyEnd: number, first: number): void {
    const index = this.escaped ? topKeys.indexOf(decodeKey(this.bytes, key, keyEnd) as never) : topKeyIndex(this.bytes, key, keyEnd);
    if (index < 0) return;
    const kind = first === quote ? 2 : first === openBracket ? 3 : 1;
    this.keys = (this.keys & ~(3 << (2 * index))) | (kind << (2 * index));
  }

  private compareKeys(left: number, right: number): number {
    const { bytes, members } = this;
    let [a, aEnd, b, bEnd] = [members[left + 1] as number, members[left + 2] as number, members[right + 1] as number, members[right + 2] as number];
    if (aEnd < 0 || bEnd < 0) return compareBytes(wtf8(decodeKey(bytes, a, Math.abs(aEnd))), wtf8(decodeKey(bytes, b, Math.abs(bEnd))));
    for (; a < aEnd && b < bEnd; a++, b++) {
      const difference = (bytes[a] as number) - (bytes[b] as number);
      if (difference !== 0) return difference;
    }
    return aEnd - a - (bEnd - b);
  }

  /** Sorts the members of the object that closes at `at` in the output; of equal keys the last stays. */
  private sortMembers(base: number, at: number): void {
    this.flush(at);
    const members = this.members;
    const end = this.out;
    const start = members[base] as number;
    if (this.used - base === 6 && this.compareKeys(base, base + 3) !== 0) return this.swapMembers(start, members[base + 3] as number, end);
    const order: number[] = [];
    for (let i = base; i < this.used; i += 3) order.push(i);
    order.sort((a, b) => this.compareKeys(a, b) || a - b);
    this.move(end, start, end - start);
    let out = start;
    for (const [i, member] of order.entries()) {
      const next = order[i + 1];
      if (next !== undefined && this.compareKeys(member, next) === 0) {
        this.notes |= scanNotes.duplicateKey;
        continue;
      }
      if (out !== start) this.bytes[out++] = comma;
      const from = members[member] as number;
      const to = member + 3 < this.used ? (members[member + 3] as number) - 1 : end;
      this.copy(out, end + from - start, to - from);
      out += to - from;
    }
    this.out = out;
  }

  /** Two members in the wrong order, by far the most frequent case: the shorter one is put aside, the longer one moved. */
  private swapMembers(start: number, second: number, end: number): void {
    const [left, right] = [second - 1 - start, end - second];
    if (left <= right) {
      this.copy(end, start, left);
      this.move(start, second, right);
      this.copy(start + right + 1, end, left);
    } else {
      this.copy(end, second, right);
      this.move(start + right + 1, start, left);
      this.copy(start, end, right);
    }
    this.bytes[start + right] = comma;
  }
}

function isBlank(byte: number): boolean {
  return byte === 32 || byte === 9 || byte === 13 || byte === 10;
}
