import { diffArrays, diffWordsWithSpace } from "diff";
import { firstDivergence } from "./firstDivergence.ts";

export interface DiffPart {
  kind: "same" | "removed" | "added";
  text: string;
}

export interface TextDiff {
  equal: boolean;
  /** UTF-16 offset at which the texts part, never inside a character; null when they are equal. */
  firstDivergence: number | null;
  /** Parts in reading order; everything after the first divergence is its consequence. */
  parts: DiffPart[];
  /** Share of the characters that are in only one of the texts, 0 … 1. */
  changedShare: number;
  /** True above 60 %: links between the texts would be noise, show them side by side. */
  rewritten: boolean;
}

/** Above this share of changed characters two texts count as rewritten (earlywarning research §4.3). */
const rewrittenShare = 0.6;

/** Compares two generations of the same prompt word by word. */
export function diffTexts(before: string, after: string): TextDiff {
  const changes = diffWordsWithSpace(before, after, { maxEditLength: 4000 }) ?? wholeReplacement(before, after);
  const parts = changes.map((change): DiffPart => ({ kind: kindOf(change), text: change.value }));
  const changedShare = shareOf(parts, (part) => part.text.length);
  return { equal: before === after, firstDivergence: firstDivergence(before, after), parts, changedShare, rewritten: changedShare > rewrittenShare };
}

export interface TokenDiffPart {
  kind: DiffPart["kind"];
  tokens: string[];
}

/** The same for two lists of tokens; `firstDivergence` counts tokens. */
export function diffTokens(before: readonly string[], after: readonly string[]): { firstDivergence: number | null; parts: TokenDiffPart[]; changedShare: number } {
  const changes = diffArrays([...before], [...after]);
  const parts = changes.map((change): TokenDiffPart => ({ kind: kindOf(change), tokens: change.value }));
  let at = 0;
  while (at < before.length && at < after.length && before[at] === after[at]) at += 1;
  return { firstDivergence: at === before.length && at === after.length ? null : at, parts, changedShare: shareOf(parts, (part) => part.tokens.length) };
}

function kindOf(change: { added?: boolean; removed?: boolean }): DiffPart["kind"] {
  return change.added === true ? "added" : change.removed === true ? "removed" : "same";
}

function wholeReplacement(before: string, after: string): { value: string; added?: boolean; removed?: boolean }[] {
  return [{ value: before, removed: true }, { value: after, added: true }];
}

function shareOf<T extends { kind: DiffPart["kind"] }>(parts: readonly T[], sizeOf: (part: T) => number): number {
  let [same, changed] = [0, 0];
  for (const part of parts) {
    if (part.kind === "same") same += 2 * sizeOf(part);
    else changed += sizeOf(part);
  }
  return same + changed === 0 ? 0 : changed / (same + changed);
}
