import type { RowFormat } from "./rowFormat.ts";
import type { RowScanner } from "./rowScanner.ts";

const [quote, backslash, comma, colon, openBracket, closeBracket, openBrace, closeBrace, letterN] = [34, 92, 44, 58, 91, 93, 123, 125, 110];
const ascii = (text: string): Uint8Array => new TextEncoder().encode(text);
const [emptyText, noCalls, userTurn, assistantTurn] = [ascii('""'), ascii("null"), ascii('["user",'), ascii('["assistant",')];
const keyBytes = { messages: ascii("messages"), conversations: ascii("conversations"), prompt: ascii("prompt"), completion: ascii("completion"), text: ascii("text"), role: ascii("role"), content: ascii("content"), from: ascii("from"), value: ascii("value"), calls: ascii("tool_calls") };
const verticalTab = ascii("\\u000b");
const blankLetters: ReadonlySet<number> = new Set(ascii("tnfr"));
const [user, assistant] = [ascii('"user"'), ascii('"assistant"')];
const shareGptRoles: readonly [Uint8Array, Uint8Array][] = [[ascii('"human"'), user], [ascii('"gpt"'), assistant]];

/**
 * Writes the turns of the scanner's last row as `canonicalTurns` does, straight from the canonical bytes: for rows in the usual
 * formats whose contents are texts. Any other row is left to `splitTurns`, which says the same (tested against it).
 */
export class TurnWriter {
  private readonly scanner: RowScanner;
  private out = 0;
  private list = 0;
  private turns = 0;
  /** Start and end of the last assistant turn in the output; -1: none yet. */
  private answer = -1;
  private answerEnd = -1;

  constructor(scanner: RowScanner) {
    this.scanner = scanner;
  }

  /** Calls back with the bytes of the prompt's turns, then the answer's (null: there is none). False: not a row for this. */
  write(format: RowFormat, prompt: (bytes: Uint8Array | null) => void, answer: (bytes: Uint8Array | null) => void): boolean {
    const { scanner } = this;
    this.list = this.out = Math.max(scanner.end, scanner.capacity + 64);
    this.turns = 0;
    this.answer = this.answerEnd = -1;
    this.put(openBracket);
    const done =
      format === "messages" ? this.messages(keyBytes.messages, keyBytes.role, keyBytes.content)
      : format === "sharegpt" ? this.messages(keyBytes.conversations, keyBytes.from, keyBytes.value)
      : format === "prompt-completion" ? this.promptAndCompletion()
      : format === "text" ? this.fieldTurn(keyBytes.text, assistantTurn)
      : false;
    if (!done) return false;
    const { bytes } = scanner;
    const { list, answer: start } = this;
    const hasPrompt = start === -1 ? this.turns > 0 : start > list + 1;
    const promptEnd = start === -1 ? this.out : start - 1;
    // The byte between prompt and answer is in turn the end of one list and the start of the other.
    bytes[promptEnd] = closeBracket;
    prompt(hasPrompt ? bytes.subarray(list, promptEnd + 1) : null);
    if (start === -1) answer(null);
    else {
      bytes[start - 1] = openBracket;
      bytes[this.answerEnd] = closeBracket;
      answer(bytes.subarray(start - 1, this.answerEnd + 1));
    }
    return true;
  }

  private promptAndCompletion(): boolean {
    return this.fieldTurn(keyBytes.prompt, userTurn) && this.fieldTurn(keyBytes.completion, assistantTurn);
  }

  /** A turn from a top-level text. */
  private fieldTurn(key: Uint8Array, opening: Uint8Array): boolean {
    const at = this.member(this.scanner.start, key);
    if (at === -1 || this.scanner.bytes[at] !== quote) return false;
    this.beginTurn(opening === assistantTurn);
    this.putAll(opening);
    this.text(at, this.scanner.endOfString(at));
    this.put(comma);
    this.putAll(noCalls);
    this.endTurn(opening === assistantTurn);
    return true;
  }

  private messages(key: Uint8Array, roleKey: Uint8Array, contentKey: Uint8Array): boolean {
    const { bytes } = this.scanner;
    let at = this.member(this.scanner.start, key) + 1;
    if (at === 0) return false;
    if (bytes[at] === closeBracket) return true;
    for (;;) {
      if (bytes[at] !== openBrace) return false;
      at = this.message(at + 1, roleKey, contentKey);
      if (at === -1) return false;
      if (bytes[at++] === closeBracket) return true;
    }
  }

  /** One message, from its first key; returns the place after its brace. */
  private message(at: number, roleKey: Uint8Array, contentKey: Uint8Array): number {
    const { scanner } = this;
    const { bytes } = scanner;
    const isShareGpt = roleKey === keyBytes.from;
    let [role, content, calls, callsEnd] = [-1, -1, -1, -1];
    while (bytes[at] === quote) {
      const keyEnd = scanner.endOfString(at) - 1;
      const value = keyEnd + 2;
      const next = this.skip(value);
      if (this.same(at + 1, keyEnd, roleKey)) role = value;
      else if (this.same(at + 1, keyEnd, contentKey)) content = value;
      else if (this.same(at + 1, keyEnd, keyBytes.calls)) [calls, callsEnd] = [value, next];
      else if (isShareGpt && (this.same(at + 1, keyEnd, keyBytes.role) || this.same(at + 1, keyEnd, keyBytes.content))) return -1;
      at = bytes[next] === comma ? next + 1 : next;
    }
    const first = content === -1 ? letterN : bytes[content];
    const opening = calls === -1 ? letterN : bytes[calls];
    if (role === -1 || bytes[role] !== quote || (first !== quote && first !== letterN)) return -1;
    // Lists and objects are calls as they stand, empty ones none.
    if (opening !== letterN && opening !== openBracket && opening !== openBrace) return -1;
    const roleEnd = scanner.endOfString(role);
    const mapped = isShareGpt ? shareGptRoles.find(([name]) => this.same(role, roleEnd, name))?.[1] : undefined;
    const isAnswer = mapped === assistant || this.same(role, roleEnd, assistant);
    this.beginTurn(isAnswer);
    this.put(openBracket);
    if (mapped === undefined) this.copy(role, roleEnd);
    else this.putAll(mapped);
    this.put(comma);
    if (first === quote) this.text(content, scanner.endOfString(content));
    else this.putAll(emptyText);
    this.put(comma);
    if (opening === letterN || callsEnd - calls === 2) this.putAll(noCalls);
    else this.copy(calls, callsEnd);
    this.endTurn(isAnswer);
    return at + 1;
  }

  private beginTurn(isAnswer: boolean): void {
    if (this.turns++ > 0) this.put(comma);
    if (isAnswer) this.answer = this.out;
  }

  private endTurn(isAnswer: boolean): void {
    this.put(closeBracket);
    if (isAnswer) this.answerEnd = this.out;
  }

  /** A text with CRLF → LF and without blanks around it, as a string; `start` and `end` include its quotes. */
  private text(start: number, end: number): void {
    const { bytes, hasReturns } = this.scanner;
    let [from, to] = [start + 1, end - 1];
    for (let width = this.blankAt(from); width > 0 && from < to; width = this.blankAt(from)) from += width;
    for (let width = this.blankBefore(to, from); width > 0; width = this.blankBefore(to, from)) to -= width;
    this.put(quote);
    if (!hasReturns) this.copy(from, to);
    else {
      for (let at = from; at < to; at++) {
        const escape = bytes[at] === backslash;
        if (escape && bytes[at + 1] === 114 && bytes[at + 2] === backslash && bytes[at + 3] === letterN) at++;
        else {
          this.put(bytes[at] as number);
          if (escape) this.put(bytes[++at] as number);
        }
      }
    }
    this.put(quote);
  }

  /** Width of the blank that begins here: a space, \t \n \f \r or \u000b; 0 for anything else. */
  private blankAt(at: number): number {
    const { bytes } = this.scanner;
    if (bytes[at] === 32) return 1;
    if (bytes[at] !== backslash) return 0;
    if (blankLetters.has(bytes[at + 1] as number)) return 2;
    return this.same(at, at + 6, verticalTab) ? 6 : 0;
  }

  private blankBefore(to: number, from: number): number {
    const { bytes } = this.scanner;
    if (to <= from) return 0;
    if (bytes[to - 1] === 32) return 1;
    for (const width of [2, 6]) {
      const at = to - width;
      if (at < from || bytes[at] !== backslash || this.blankAt(at) !== width) continue;
      let before = at;
      while (before > from && bytes[before - 1] === backslash) before--;
      // After an odd number of backslashes this one is itself escaped.
      return (at - before) % 2 === 0 ? width : 0;
    }
    return 0;
  }

  /** Where the value of a top-level key begins; -1: there is no such key. */
  private member(start: number, key: Uint8Array): number {
    const { scanner } = this;
    for (let at = start + 1; scanner.bytes[at] === quote; ) {
      const keyEnd = scanner.endOfString(at) - 1;
      if (this.same(at + 1, keyEnd, key)) return keyEnd + 2;
      at = this.skip(keyEnd + 2) + 1;
    }
    return -1;
  }

  /** The place after a canonical value. */
  private skip(at: number): number {
    const { scanner } = this;
    const { bytes } = scanner;
    for (let depth = 0; ; ) {
      const byte = bytes[at];
      if (byte === quote) at = scanner.endOfString(at);
      else if (byte === openBrace || byte === openBracket) {
        depth++;
        at++;
        continue;
      } else if (byte === closeBrace || byte === closeBracket) {
        depth--;
        at++;
      } else {
        do at++;
        while (bytes[at] !== comma && bytes[at] !== closeBrace && bytes[at] !== closeBracket && bytes[at] !== colon);
      }
      if (depth === 0) return at;
      if (bytes[at] === comma || bytes[at] === colon) at++;
    }
  }

  private same(start: number, end: number, expected: Uint8Array): boolean {
    if (end - start !== expected.length) return false;
    const { bytes } = this.scanner;
    for (let i = 0; i < expected.length; i++) if (bytes[start + i] !== expected[i]) return false;
    return true;
  }

  private put(byte: number): void {
    this.scanner.bytes[this.out++] = byte;
  }

  private putAll(bytes: Uint8Array): void {
    for (let i = 0; i < bytes.length; i++) this.put(bytes[i] as number);
  }

  private copy(from: number, to: number): void {
    if (to > from) this.scanner.move(this.out, from, to - from);
    this.out += to - from;
  }
}
