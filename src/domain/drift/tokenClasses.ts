import type { TraceMeta } from "../../protocol/trace.ts";

/** What became of a reference token under a checkpoint (contract §8). */
export type TokenClass = "kept" | "weakened" | "lost";

export interface TokenVerdict {
  class: TokenClass;
  change: "fell" | "rose" | "same";
  /** Only a fall beyond the noise is coloured. */
  coloured: boolean;
}

/** A fall of the log-probability, in nats, from which a token still ranked first counts as weakened. */
export const weakenedDrop = 0.7;
/** What rescoring in float32 with another batch size can change when the project's own A/A rescoring was not recorded. */
export const leastNoise = 1e-4;

/** The A/A noise of one token's log-probability: the larger of the two traces. */
export function tokenNoise(a: Pick<TraceMeta, "noise">, b: Pick<TraceMeta, "noise">): number {
  return Math.max(a.noise?.token_q99 ?? 0, b.noise?.token_q99 ?? 0, leastNoise);
}

/** The A/A noise of a whole reference's NLL: the larger of the two traces. */
export function sequenceNoise(a: Pick<TraceMeta, "noise">, b: Pick<TraceMeta, "noise">): number {
  return Math.max(a.noise?.nll_q99 ?? 0, b.noise?.nll_q99 ?? 0, leastNoise);
}

/**
 * Classifies one token from its rank (0 = most likely) under the checkpoint and the change of its log-probability
 * against the reference checkpoint.
 */
export function classifyToken(rank: number, delta: number, noise: number): TokenVerdict {
  const change = delta < -noise ? "fell" : delta > noise ? "rose" : "same";
  const dropped = delta < -Math.max(noise, weakenedDrop);
  const tokenClass = rank >= 3 ? "lost" : rank >= 1 || dropped ? "weakened" : "kept";
  return { class: tokenClass, change, coloured: change === "fell" && tokenClass !== "kept" };
}

/** The verdict for each token; the arrays are those of the same row in the two traces. */
export function classifyTokens(reference: ArrayLike<number>, logprob: ArrayLike<number>, rank: ArrayLike<number>, noise: number): TokenVerdict[] {
  return Array.from(logprob, (value, index) => classifyToken(rank[index] ?? 0, value - (reference[index] ?? value), noise));
}
