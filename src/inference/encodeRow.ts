import { AppError } from "../util/errors.ts";
import type { Rendered } from "./chatTemplate.ts";
import { encodePieces, holdsMark } from "./encodePieces.ts";
import type { RowChat } from "./rowChat.ts";
import type { TextTokenizer } from "./textTokenizer.ts";

/** A row as tokens: `ids` up to the last scored one, the places of the answer's, and their ends in its bytes. */
export interface EncodedRow {
  ids: number[];
  scored: number[];
  prompt: string;
  reference: string;
  ends: number[];
  mask: "generation-block" | "prefix";
  note: string | null;
}

const utf8 = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Encodes a row as the runner does (`scoring/encode.py`): the same tokens are scored. AppError("bad-input") otherwise. */
export function encodeRow(chat: RowChat, tokenizer: TextTokenizer): EncodedRow {
  const row = "messages" in chat ? encodeChat(chat, tokenizer) : encodePlain(chat, tokenizer);
  const scored = row.scored.filter((place) => place > 0);
  const last = scored.at(-1);
  if (last === undefined) throw new AppError("bad-input", "The row has no token to score: its answer is empty.");
  const ids = row.ids.slice(0, last + 1);
  return { ...row, ids, scored, ...byteEnds(scored.map((place) => ids[place] as number), row.reference, tokenizer) };
}

type Raw = Omit<EncodedRow, "ends">;

/** Prompt and answer without a template: joined, closed by the end token, split where the ids part. */
function encodePlain({ prompt, answer }: { prompt: string; answer: string }, { ids: tokens, endId }: TextTokenizer): Raw {
  const ids = tokens(prompt + answer, true);
  if (endId !== null && ids.at(-1) !== endId) ids.push(endId);
  let head = prompt === "" ? [] : tokens(prompt, true);
  if (head.length > 0 && head.at(-1) === endId) head = head.slice(0, -1);
  const start = commonPrefix(head, ids);
  const note = start < head.length ? `A token spans the seam between prompt and answer (index ${start}); it is scored with the answer.` : null;
  return { ids, scored: range(start, ids.length), prompt, reference: answer, mask: "prefix", note };
}

function encodeChat({ messages, tools }: Extract<RowChat, { messages: unknown }>, tokenizer: TextTokenizer): Raw {
  const { template } = tokenizer;
  if (template === null) throw new AppError("bad-input", "The tokenizer has no chat template. Add one to the base model, or use prompt and completion texts.");
  const before = messages.length > 1 ? template.render(messages.slice(0, -1), tools, true).text : "";
  const whole = template.render(messages, tools, false);
  const reference = messages.at(-1)?.content ?? "";
  if (holdsMark(messages, tokenizer)) {
    const { ids, start, end } = encodePieces(messages, whole.text, tokenizer);
    return { ids, scored: range(start, end), prompt: before, reference, mask: template.marksAnswers ? "generation-block" : "prefix", note: null };
  }
  const ids = tokenizer.ids(whole.text, false);
  const common = { ids, prompt: before, reference };
  const head = before === "" ? [] : tokenizer.ids(before, false);
  if (template.marksAnswers) {
    const span = whole.spans.at(-1);
    if (span === undefined) throw new AppError("bad-input", "The chat template marks no assistant token in this row ({% generation %} around nothing).");
    const [start, end] = tokensOf(span, whole, ids, tokenizer);
    const note = commonPrefix(head, ids) < head.length ? notPrefix(commonPrefix(head, ids)) : null;
    return { ...common, scored: range(start, end), mask: "generation-block", note };
  }
  const start = commonPrefix(head, ids);
  return { ...common, scored: range(start, trimmedEnd(ids, start, tokenizer)), mask: "prefix", note: start < head.length ? notPrefix(start) : null };
}

function notPrefix(index: number): string {
  return `The generation prompt is no prefix of the whole row: the ids differ from index ${index} on.`;
}

/** The tokens that hold a span's first and last character, from the bytes that the tokens spell. */
function tokensOf({ start, end }: Rendered["spans"][number], { text }: Rendered, ids: readonly number[], tokenizer: TextTokenizer): [number, number] {
  const ends: number[] = [];
  for (const id of ids) ends.push((ends.at(-1) ?? 0) + tokenizer.bytes(id).length);
  const spelled = decoder.decode(join(ids.map((id) => tokenizer.bytes(id))));
  if (spelled === text) {
    const [from, to] = [utf8.encode(text.slice(0, start)).length, utf8.encode(text.slice(0, end)).length];
    return [ends.findIndex((stop) => stop > from), ends.findIndex((stop) => stop >= to) + 1];
  }
  // A tokenizer that changes the text (a blank in front, a normal form): the ids of the parts must then be prefixes.
  const [head, upto] = [tokenizer.ids(text.slice(0, start), false), tokenizer.ids(text.slice(0, end), false)];
  if (commonPrefix(head, ids) < head.length || commonPrefix(upto, ids) < upto.length) {
    throw new AppError("bad-input", "This tokenizer changes the text, so the answer's tokens cannot be told from the prompt's here. The scores of runs are not affected.");
  }
  return [head.length, upto.length];
}

/** End of the answer: just behind its last special token when only blanks follow it. */
function trimmedEnd(ids: readonly number[], start: number, { special, bytes }: TextTokenizer): number {
  let end = ids.length;
  while (end > start && !special.has(ids[end - 1] as number) && decoder.decode(bytes(ids[end - 1] as number)).trim() === "") end -= 1;
  return end > start && special.has(ids[end - 1] as number) ? end : ids.length;
}

/** End of each token in the reference's bytes; when the tokens spell another text than the row's, that text is shown. */
function byteEnds(ids: readonly number[], reference: string, { special, bytes }: TextTokenizer): { reference: string; ends: number[] } {
  const pieces = ids.map((id) => (special.has(id) ? new Uint8Array() : bytes(id)));
  const spelled = Buffer.from(join(pieces));
  let wanted: Uint8Array = utf8.encode(reference);
  let lead = wanted.length > 0 ? spelled.indexOf(wanted) : -1;
  const blank = (part: Uint8Array): boolean => decoder.decode(part).trim() === "";
  if (lead < 0 || !blank(spelled.subarray(0, lead)) || !blank(spelled.subarray(lead + wanted.length))) {
    reference = decoder.decode(spelled);
    [wanted, lead] = [utf8.encode(reference), 0];
  }
  let total = 0;
  const ends = pieces.map((piece) => Math.min(Math.max((total += piece.length) - lead, 0), wanted.length));
  return { reference, ends };
}

function join(pieces: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}

function commonPrefix(a: readonly number[], b: readonly number[]): number {
  const differs = a.findIndex((id, index) => id !== b[index]);
  return differs < 0 ? a.length : differs;
}

function range(start: number, end: number): number[] {
  return Array.from({ length: Math.max(0, end - start) }, (_, index) => start + index);
}
