/** Invented but well-formed token scores, the same for the same names. */

/** How well a model stands at each skill, 0 … 1. */
export type Knowledge = Record<string, number>;

/** Splits a text into words with their blank, digits and signs, and ends it with the end-of-turn token. */
export function tokenize(text: string): string[] {
  return [...(text.match(/ ?\p{L}+|\p{N}|\s+|[^\s\p{L}\p{N}]/gu) ?? []), "<|end|>"];
}

export interface MadeUpScores {
  ids: number[];
  ends: number[];
  logprob: number[];
  entropy: number[];
  rank: number[];
  topIds: number[];
  topLogprob: number[];
  segment: number[];
  nll: number;
  meanEntropy: number;
  worst: number;
  correct: boolean;
  generated: string;
}

const k = 4;
const intruders: Record<string, string[]> = { search: ["food", " Mimi", " answer", " in"], tool: ["{", '"to"', '"tool"', ": "], format: [" TWO", " one", "A", " red"], math: ["7", "+", " so", "0"] };

/** Scores of one reference under a model that knows `skill` as well as `knowledge` says; the rest of the mass goes to what it knows better. */
export function makeScores(texts: readonly string[], name: string, knowledge: Knowledge, skill: string, idOf: (text: string) => number): MadeUpScores {
  const know = knowledge[skill] ?? 0.5;
  const loudest = Object.entries(knowledge).filter(([other]) => other !== skill).sort((a, b) => b[1] - a[1])[0]?.[0] ?? "math";
  const words = intruders[loudest] ?? ["x", "y", "z", "w"];
  const scores: MadeUpScores = { ids: [], ends: [], logprob: [], entropy: [], rank: [], topIds: [], topLogprob: [], segment: [], nll: 0, meanEntropy: 0, worst: 0, correct: true, generated: "" };
  const answerAt = Math.floor(texts.length * 0.6);
  let bytes = 0;
  for (const [index, text] of texts.entries()) {
    const last = index === texts.length - 1;
    if (!last) bytes += Buffer.byteLength(text);
    const luck = noise(`${name} ${index}`);
    // Punctuation and the end survive longer than digits and words.
    const tough = last || /^[\s\p{P}\p{S}]+$/u.test(text) ? 0.35 : 0;
    const p = Math.min(0.9995, Math.max(2e-4, (know + tough) * 1.15 - 0.75 * luck * (1 - know)));
    const rank = p > 0.45 ? 0 : p > 0.2 ? 1 : p > 0.08 ? 2 : 3 + Math.floor(60 * luck);
    const mass = 1 - p;
    const others = [0, 1, 2, 3].map((at) => ({ text: words[(at + Math.floor(luck * 7)) % words.length] as string, p: mass * [0.62, 0.2, 0.1, 0.04][at]! }));
    const ranked = rank < k ? [...others.slice(0, rank), { text, p }, ...others.slice(rank)].slice(0, k) : others;
    scores.ids.push(idOf(text));
    scores.ends.push(bytes);
    scores.logprob.push(Math.log(p));
    scores.entropy.push(-p * Math.log(p) - mass * Math.log(Math.max(mass, 1e-9)));
    scores.rank.push(rank);
    scores.topIds.push(...ranked.map((one) => idOf(one.text)));
    scores.topLogprob.push(...ranked.map((one) => Math.log(Math.max(one.p, 1e-9))));
    scores.segment.push(last ? 2 : index < answerAt ? 0 : 1);
    scores.nll -= Math.log(p);
    if (Math.log(p) < (scores.logprob[scores.worst] as number)) scores.worst = index;
    if (rank > 0 && !last) scores.correct = false;
    if (!last) scores.generated += rank === 0 ? text : ranked[0]?.text ?? text;
  }
  scores.meanEntropy = scores.entropy.reduce((sum, value) => sum + value, 0) / texts.length;
  return scores;
}

/** 0 … 1 from a name. */
function noise(name: string): number {
  let hash = 2166136261;
  for (const character of name) hash = Math.imul(hash ^ character.charCodeAt(0), 16777619);
  return ((hash >>> 0) % 10_007) / 10_007;
}
