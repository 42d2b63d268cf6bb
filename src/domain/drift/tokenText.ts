/** How a token is shown. Tokens that are only part of a character share its group. */
export interface TokenText {
  index: number;
  /** The token's text; for a part of a character "" except on the group's first token, which carries the character. */
  text: string;
  /** What to show: visible blanks; a part of a character as its bytes, e.g. `F0`. */
  display: string;
  /** Tokens with the same number show one character together. */
  group: number;
  /** Bytes of a token that is only part of a character, in hex; otherwise null. */
  bytes: string | null;
  /** UTF-16 offsets of the token's group in the reference, for editors. */
  start: number;
  end: number;
  /** True for the end-of-turn token: it adds no text. */
  terminator: boolean;
}

const controlPictures: Record<string, string> = { "\u00a0": "⍽", "\u007f": "␡", "\u200b": "⟨ZWSP⟩", "\u200d": "⟨ZWJ⟩", "\ufeff": "⟨BOM⟩", "\u2028": "⟨LS⟩", "\u2029": "⟨PS⟩" };

/** Text with blanks and control characters made visible: `·` for a blank, `␊` for a line feed. */
export function showBlanks(text: string): string {
  return text.replace(/[\u0000-\u0020\u007f\u00a0\u200b\u200d\u2028\u2029\ufeff]/g, (character) => {
    if (character === " ") return "·";
    return controlPictures[character] ?? String.fromCodePoint(0x2400 + character.charCodeAt(0));
  });
}

/** The bytes of a token as text, or as hex bytes where they are no whole characters. `⟨?⟩` when they are not known. */
export function showBytes(bytes: Uint8Array | null): string {
  if (bytes === null) return "⟨?⟩";
  const text = decodeWhole(bytes);
  return text === null ? `⟨${hex(bytes)}⟩` : showBlanks(text);
}

function decodeWhole(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).toUpperCase().padStart(2, "0")).join(" ");
}

/**
 * The texts of the tokens of a reference, from their end offsets in its UTF-8 bytes (case T07). Joining the texts gives
 * exactly the reference. `bytesOf` gives a token's own bytes, used for the terminator, which has none in the reference.
 */
export function tokenTexts(reference: string, ends: ArrayLike<number>, bytesOf: (index: number) => Uint8Array | null = () => null): TokenText[] {
  const bytes = new TextEncoder().encode(reference);
  const isBoundary = (offset: number): boolean => offset >= bytes.length || ((bytes[offset] as number) & 0xc0) !== 0x80;
  const texts: TokenText[] = [];
  let group = -1;
  let from = 0;
  for (let index = 0; index < ends.length; index += 1) {
    const begin = Math.min(index === 0 ? 0 : (ends[index - 1] as number), bytes.length);
    const stop = Math.max(begin, Math.min(ends[index] as number, bytes.length));
    if (isBoundary(begin)) {
      group += 1;
      from = begin;
    }
    const whole = isBoundary(begin) && isBoundary(stop);
    const own = bytes.subarray(begin, stop);
    const terminator = begin === stop && stop === bytes.length && index === ends.length - 1;
    const text = whole ? new TextDecoder("utf-8", { ignoreBOM: true }).decode(own) : "";
    const special = begin === stop ? showBytes(bytesOf(index)) : null;
    texts.push({
      index, text, group, terminator, start: from, end: stop,
      display: terminator ? "⏎" : special ?? (whole ? showBlanks(text) : hex(own)),
      bytes: whole ? null : hex(own),
    });
  }
  return joinGroups(texts, bytes);
}

/** Gives a group of partial tokens its character and its UTF-16 span. */
function joinGroups(texts: TokenText[], bytes: Uint8Array): TokenText[] {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const units = utf16Offsets(bytes);
  const groupEnds = new Map(texts.map((token) => [token.group, token.end]));
  let lastGroup = -1;
  return texts.map((token) => {
    const end = groupEnds.get(token.group) as number;
    const first = token.group !== lastGroup;
    lastGroup = token.group;
    const text = token.bytes !== null && first ? decoder.decode(bytes.subarray(token.start, end)) : token.text;
    return { ...token, text, start: units[token.start] as number, end: units[end] as number };
  });
}

/** For each byte offset of UTF-8 text that begins a character: how many UTF-16 units come before it. */
function utf16Offsets(bytes: Uint8Array): Uint32Array {
  const offsets = new Uint32Array(bytes.length + 1);
  let units = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    offsets[at] = units;
    const byte = bytes[at] as number;
    if ((byte & 0xc0) !== 0x80) units += byte >= 0xf0 ? 2 : 1;
  }
  offsets[bytes.length] = units;
  return offsets;
}
