import type { JsonObject } from "./jsonText.ts";
import { preferenceParts, sameTurn, toTurn, type Turn } from "./turns.ts";

/** A preference row in one form, however its prompt was given. */
export interface Preference {
  prompt: Turn[];
  chosen: Turn[];
  rejected: Turn[];
}

/**
 * Prompt, chosen and rejected of a preference row. An explicit prompt that the answers repeat is not doubled; where there
 * is none, the turns that both answers begin with are the prompt (the last turn of each stays an answer).
 */
export function preferenceOf(row: JsonObject): Preference {
  const [head, chosenPart] = preferenceParts(row.get("prompt"), row.get("chosen"));
  const [, rejectedPart] = preferenceParts(row.get("prompt"), row.get("rejected"));
  const [prompt, chosen, rejected] = [head.map(toTurn), chosenPart.map(toTurn), rejectedPart.map(toTurn)];
  if (prompt.length > 0) return { prompt, chosen, rejected };
  let common = 0;
  for (; common < Math.min(chosen.length, rejected.length) - 1; common++) {
    const [left, right] = [chosen[common], rejected[common]];
    if (left === undefined || right === undefined || !sameTurn(left, right)) break;
  }
  return { prompt: chosen.slice(0, common), chosen: chosen.slice(common), rejected: rejected.slice(common) };
}
