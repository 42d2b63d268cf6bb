/**
 * Finds a text in the JSON of rows, whichever way it is escaped there: as it is (also `"id": 7`, a piece of the JSON
 * itself), with `\n` and `\"`, or with `\u4e2d` as Python writes it. Plain text only, so that no search can run away. Without `matchCase` ASCII letters match in both cases.
 */
export class TextMatcher {
  /** Bytes that two windows must share so that no match is cut in two. */
  readonly longest: number;
  private readonly pattern: RegExp;

  constructor(text: string, matchCase: boolean) {
    // A line break in the text is never one of the file: that would be the end of a row.
    const forms = new Set([...(/\p{Cc}/u.test(text) ? [] : [text]), JSON.stringify(text).slice(1, -1), JSON.stringify(text).slice(1, -1).replaceAll("/", "\\/")]);
    for (const form of [...forms]) {
      forms.add(form.replace(/[\u007f-\uffff]/g, (unit) => escaped(unit, false)));
      forms.add(form.replace(/[\u007f-\uffff]/g, (unit) => escaped(unit, true)));
    }
    // Bytes are compared as latin1 characters: one for one, and without decoding.
    const bytes = [...forms].map((form) => Buffer.from(form, "utf8").toString("latin1"));
    this.longest = Math.max(...bytes.map((form) => form.length));
    this.pattern = new RegExp(bytes.map((form) => sourceOf(form, matchCase)).join("|"), "g");
  }

  /** Offset of the first match, -1 where there is none. */
  first(bytes: Uint8Array): number {
    this.pattern.lastIndex = 0;
    return this.pattern.exec(latin1(bytes))?.index ?? -1;
  }

  /** Offset of the last match, -1 where there is none. */
  last(bytes: Uint8Array): number {
    let found = -1;
    for (const { index } of latin1(bytes).matchAll(this.pattern)) found = index;
    return found;
  }
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
}

function escaped(unit: string, upper: boolean): string {
  const hex = unit.charCodeAt(0).toString(16).padStart(4, "0");
  return `\\u${upper ? hex.toUpperCase() : hex}`;
}

function sourceOf(form: string, matchCase: boolean): string {
  const source = form.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
  // The letters of an escape (`\n`) keep their case: the escape is no text.
  return matchCase ? source : source.replace(/(\\\\(?:u[0-9a-fA-F]{4}|[a-z]))|([a-zA-Z])/g, (_, escape: string | undefined, letter: string) => escape ?? `[${letter.toLowerCase()}${letter.toUpperCase()}]`);
}
