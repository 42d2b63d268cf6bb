import type { CheckSpec } from "../../protocol/checks.ts";
import type { TokenScores } from "../../protocol/trace.ts";

/** Margins beyond this many nats either way say nothing more. */
export const marginClip = 50;

/** A margin within its limits; what is no number is lost. */
export function cleanMargin(margin: number): number {
  return Number.isNaN(margin) ? -marginClip : Math.min(marginClip, Math.max(-marginClip, margin));
}

/** `decision:` of a skill: which tokens decide whether an answer is right. */
export type DecisionSetting = "all" | "answer" | "first-5" | readonly string[];

/** The segment that a scored end-of-turn token has. */
const terminator = "terminator";

/** What decides when a skill says nothing. Of a function it is not known what it reads, so every token may decide. */
export function decisionOf(check: CheckSpec["kind"], setting: DecisionSetting | null = null): DecisionSetting {
  if (setting !== null) return setting;
  switch (check) {
    case "number-after":
    case "text":
    case "format":
    case "regex":
      return "answer";
    case "json-tool-call":
      return ["tool name", "argument value"];
    case "function":
      return "all";
  }
}

/**
 * Indexes of a row's decision tokens, from the segment name of every scored token at the stage's start: the named segments
 * and the terminator. A row without any named segment has all its tokens, so that no row stands on its end-of-turn alone.
 */
export function decisionTokens(setting: DecisionSetting, segments: readonly string[]): number[] {
  const every = segments.map((_, index) => index);
  if (setting === "all") return every;
  if (setting === "first-5") return every.slice(0, 5);
  const names = setting === "answer" ? ["answer"] : setting;
  const named = every.filter((index) => names.includes(segments[index] as string));
  return named.length === 0 ? every : every.filter((index) => segments[index] === terminator || named.includes(index));
}

/**
 * Margin of every scored token: log-probability of the reference's token minus that of its best rival, nats; positive
 * where it is the most likely one. null where the trace keeps fewer than two alternatives, so that the rival is not known.
 */
export function tokenMargins({ ids, logprob, topkIds, topkLogprob }: Pick<TokenScores, "ids" | "logprob" | "topkIds" | "topkLogprob">): Float64Array | null {
  const k = ids.length === 0 ? 0 : topkIds.length / ids.length;
  if (k < 2) return null;
  return Float64Array.from(ids, (gold, token) => {
    let rival = -Infinity;
    for (let place = token * k; place < (token + 1) * k; place += 1) {
      if (topkIds[place] !== gold) rival = Math.max(rival, topkLogprob[place] as number);
    }
    return (logprob[token] as number) - rival;
  });
}

/** A row's margin: the least of its tokens'. Above 0 exactly if teacher forcing gets all of them right. */
export function rowMargin(margins: Float64Array, tokens?: readonly number[]): number {
  const chosen = tokens ?? margins.keys();
  let least = Infinity;
  for (const token of chosen) least = Math.min(least, cleanMargin(margins[token] ?? NaN));
  return cleanMargin(least);
}
