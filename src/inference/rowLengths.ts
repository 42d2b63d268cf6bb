import type { RowLength } from "../domain/cost/dataFacts.ts";
import { encodeRow } from "./encodeRow.ts";
import { readChat } from "./rowChat.ts";
import { loadTokenizer, type TextTokenizer } from "./textTokenizer.ts";

/** Counts rows in the tokens of a checkpoint's tokenizer, encoded as the runner encodes them. null where there is no tokenizer that can be used. */
export async function rowLengths(folder: string): Promise<((row: string) => RowLength | null) | null> {
  try {
    const tokenizer = await loadTokenizer(folder);
    return (row) => lengthOf(row, tokenizer);
  } catch {
    return null;
  }
}

function lengthOf(row: string, tokenizer: TextTokenizer): RowLength | null {
  try {
    const { ids, scored } = encodeRow(readChat(row), tokenizer);
    return { tokens: ids.length, prompt: scored[0] ?? ids.length, hasAnswer: true };
  } catch {
    return promptLength(row, tokenizer);
  }
}

/** A row without an answer, as reinforcement learning has them: the prompt alone, as a chat where it is one. */
function promptLength(row: string, tokenizer: TextTokenizer): RowLength | null {
  try {
    const value = JSON.parse(row) as Record<string, unknown>;
    const prompt = value["messages"] ?? value["prompt"];
    const turns = Array.isArray(prompt) ? prompt : typeof prompt === "string" ? [{ role: "user", content: prompt }] : null;
    if (turns === null) return null;
    const text = tokenizer.template === null ? turns.map((turn: { content?: unknown }) => String(turn.content ?? "")).join("\n") : tokenizer.template.render(turns, null, true).text;
    const tokens = tokenizer.ids(text, tokenizer.template === null).length;
    return { tokens, prompt: tokens, hasAnswer: false };
  } catch {
    return null;
  }
}
