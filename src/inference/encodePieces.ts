import { AppError } from "../util/errors.ts";
import type { ChatMessage } from "./chatTemplate.ts";
import type { TextTokenizer } from "./textTokenizer.ts";

/**
 * A chat in which a message holds a mark such as `<|end|>` as text, as `_piecewise` of `scoring/encode.py`: the messages are
 * tokenized with the marks switched off, what the template puts between them with the marks. No token spans a seam, so such
 * a row may differ by one token from a joint tokenization; nothing else keeps the written mark apart from the real one.
 */
export function encodePieces(messages: readonly ChatMessage[], text: string, tokenizer: TextTokenizer): { ids: number[]; start: number; end: number } {
  const ids: number[] = [];
  let last = { start: 0, end: 0 };
  let at = 0;
  for (const { role, content } of messages) {
    const found = text.indexOf(content, at);
    if (found < 0) throw new AppError("bad-input", "A message contains a special token as text, and the template changes the message; cannot keep them apart.");
    ids.push(...tokenizer.ids(text.slice(at, found), false));
    const start = ids.length;
    ids.push(...tokenizer.plainIds(content));
    at = found + content.length;
    if (role !== "assistant") continue;
    // The end mark belongs to the answer.
    const mark = longestMark(text, at, tokenizer.specialTexts);
    ids.push(...tokenizer.ids(mark, false));
    at += mark.length;
    if (ids.length > start) last = { start, end: ids.length };
  }
  ids.push(...tokenizer.ids(text.slice(at), false));
  return { ids, ...last };
}

/** True when a message holds a mark as text. */
export function holdsMark(messages: readonly ChatMessage[], { specialTexts }: TextTokenizer): boolean {
  return specialTexts.some((mark) => messages.some(({ content }) => content.includes(mark)));
}

function longestMark(text: string, at: number, marks: readonly string[]): string {
  return marks.reduce((longest, mark) => (mark.length > longest.length && text.startsWith(mark, at) ? mark : longest), "");
}
