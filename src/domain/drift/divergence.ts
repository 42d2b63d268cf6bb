import type { Interval } from "../statistics/shares.ts";

/**
 * Distances between token distributions. Infinity is an answer, NaN never is: a term with p = 0 counts 0, and a token that
 * p uses and q gives nothing makes the KL infinite (case L05). Sources: earlywarning research §3.
 */

/** What some engines write instead of −∞. */
const floorLogit = -9999;

/** Log-probabilities of logits. null and values ≤ −9999 count as −∞. */
export function logSoftmax(logits: readonly (number | null)[]): number[] {
  const values = logits.map((logit) => (logit === null || logit <= floorLogit ? -Infinity : logit));
  const top = Math.max(...values);
  const norm = top + Math.log(values.reduce((sum, value) => sum + Math.exp(value - top), 0));
  return values.map((value) => value - norm);
}

/** Entropy in nats of a distribution given as log-probabilities. */
export function entropyOf(logprobs: readonly number[]): number {
  return logprobs.reduce((sum, logprob) => (logprob === -Infinity ? sum : sum - Math.exp(logprob) * logprob), 0);
}

/** KL(p‖q) in nats; `infiniteAt` lists the tokens that make it infinite. */
export function klDivergence(p: readonly number[], q: readonly number[]): { kl: number; infiniteAt: number[] } {
  let kl = 0;
  const infiniteAt: number[] = [];
  p.forEach((logp, index) => {
    if (logp === -Infinity) return;
    const logq = q[index] ?? -Infinity;
    if (logq === -Infinity) infiniteAt.push(index);
    else kl += Math.exp(logp) * (logp - logq);
  });
  return infiniteAt.length > 0 ? { kl: Infinity, infiniteAt } : { kl: Math.max(0, kl), infiniteAt };
}

/** Mean of the finite values, and how many were not. */
export function finiteMean(values: readonly number[]): { mean: number | null; infinite: number } {
  const finite = values.filter(Number.isFinite);
  return { mean: finite.length === 0 ? null : finite.reduce((sum, value) => sum + value, 0) / finite.length, infinite: values.length - finite.length };
}

export interface TopK {
  ids: ArrayLike<number>;
  logprobs: ArrayLike<number>;
}

export interface TopKDivergence {
  /** KL(p‖q) ≥ this many nats: all tokens not known in both lists are merged into one bucket. */
  klAtLeast: number;
  /** Total variation distance, 0 … 1. */
  totalVariation: Interval;
  /** Mass of the tokens known in both lists, under p and under q. */
  coveredP: number;
  coveredQ: number;
}

/**
 * What the top-k lists of two checkpoints say about the distance of the whole distributions (case L06). Merging the tail
 * gives a lower bound of the KL (data-processing inequality); an upper bound needs more than the lists hold.
 */
export function topKDivergence(p: TopK, q: TopK): TopKDivergence {
  const inQ = new Map(Array.from(q.ids, (id, index) => [id, Math.exp(q.logprobs[index] as number)]));
  let [kl, coveredP, coveredQ, differences] = [0, 0, 0, 0];
  Array.from(p.ids).forEach((id, index) => {
    const massQ = inQ.get(id);
    if (massQ === undefined) return;
    const massP = Math.exp(p.logprobs[index] as number);
    coveredP += massP;
    coveredQ += massQ;
    differences += Math.abs(massP - massQ);
    kl += klTerm(massP, massQ);
  });
  const tailP = restOf(coveredP);
  const tailQ = restOf(coveredQ);
  const low = (differences + Math.abs(tailP - tailQ)) / 2;
  return { klAtLeast: Math.max(0, kl + klTerm(tailP, tailQ)), totalVariation: { low, high: Math.min(1, (differences + tailP + tailQ) / 2) }, coveredP, coveredQ };
}

function klTerm(p: number, q: number): number {
  if (p <= 0) return 0;
  return q <= 0 ? Infinity : p * Math.log(p / q);
}

/** 1 − mass; what float32 log-probabilities cannot resolve counts as no tail. */
function restOf(mass: number): number {
  const rest = 1 - mass;
  return rest < 1e-6 ? 0 : rest;
}

/** exp(sum of NLL / number of tokens) over all documents: the same however they are batched (case L10). */
export function tokenWeightedPerplexity(documents: readonly { nll: number; tokens: number }[]): number {
  const nll = documents.reduce((sum, document) => sum + document.nll, 0);
  const tokens = documents.reduce((sum, document) => sum + document.tokens, 0);
  return tokens === 0 ? NaN : Math.exp(nll / tokens);
}
