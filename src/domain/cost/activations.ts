import type { ModelShape } from "./modelShape.ts";
import type { LossLogits } from "./stageSettings.ts";

/**
 * What the backward pass needs of one token in one layer, in bytes. The method of Korthikanti et al. 2022 (arXiv
 * 2205.05198, §4.1: every input that a layer's backward reads is counted once), for the layers that transformers builds
 * and attention that keeps no scores (SDPA); the figures were compared with what autograd saves, tensor by tensor, for
 * Llama, Qwen2, Qwen3, Gemma 2 and 3, Mistral and GPT-NeoX (test/unit/domain/cost). Under autocast the residual stream
 * stays float32 and every linear layer keeps a 16-bit copy of its own input.
 */
export function layerBytes(shape: ModelShape, mixed: boolean): number {
  const { hidden: h, heads, headSize, keyValueHeads, experts } = shape;
  const [q, kv] = [heads * headSize, keyValueHeads * headSize];
  const rows = 4 * heads + 4 * shape.norms;
  if (!shape.rmsNorm) {
    const attention = mixed ? 4 * (q + 2 * kv) + 2 * q : 8 * (q + 2 * kv) + 4 * q;
    return rows + (mixed ? 8 : 12) * h + attention + (mixed ? 4 : 8) * mlpWidth(shape);
  }
  const norms = (shape.norms - 2) * 8 * h + (mixed ? 26 : 24) * h;
  const attention = mixed ? 4 * q + 4 * kv : 8 * q + 8 * kv;
  const normed = shape.queryKeyNorm ? (mixed ? 6 : 8) * (q + kv) : 0;
  // A token is copied to each of its experts, and their answers are weighted.
  const routing = experts === null ? 0 : 2 * experts.perToken * h * (mixed ? 2 : 4);
  return rows + norms + attention + normed + routing + (mixed ? 8 : 16) * mlpWidth(shape);
}

/** Width of all MLPs that a token passes in one layer, the mean over layers with and without experts. */
function mlpWidth({ experts, intermediate, layers }: ModelShape): number {
  if (experts === null) return intermediate;
  const share = experts.layers / layers;
  return share * (experts.perToken * experts.intermediate + experts.shared) + (1 - share) * intermediate;
}

/**
 * Activations of a whole forward pass over `tokens` (padding included). With gradient checkpointing (Chen et al. 2016, arXiv
 * 1604.06174) a layer keeps its input alone, and one layer at a time is computed again.
 */
export function activationBytes(shape: ModelShape, tokens: number, width: number, settings: { mixed: boolean; checkpointing: boolean }): number {
  const layer = layerBytes(shape, settings.mixed);
  const outside = 12 * shape.hidden; // embeddings and the last norm
  const mask = width; // one byte for every pair of positions, shared by all layers
  const kept = settings.checkpointing ? 4 * shape.hidden * shape.layers + layer : layer * shape.layers;
  return tokens * (kept + outside + mask);
}

/** Tokens of one piece of TRL's chunked loss (`_CHUNKED_LM_HEAD_CHUNK_SIZE`). */
const lossChunk = 256;

/**
 * Bytes of one logit at the worst moment: the model's output, its float32 copy, what log-softmax keeps, and the gradient.
 * `pair`: also the reference's; `policy`: also divided by the temperature; `distill`: student, teacher, and their product.
 */
const logitBytes: Record<Exclude<LossLogits, "chunked">, { mixed: number; full: number }> = {
  nll: { mixed: 14, full: 12 },
  pair: { mixed: 20, full: 16 },
  policy: { mixed: 18, full: 16 },
  distill: { mixed: 26, full: 24 },
};
/** Of a token that is no answer, where the model gives its logits all the same. */
const unusedLogit = 10;

/** Logits of the loss and what belongs to them: often the peak, because a vocabulary is wide. `scored`: tokens that the loss is taken over. */
export function lossBytes(shape: ModelShape, { tokens, scored }: { tokens: number; scored: number }, kind: LossLogits, mixed: boolean, headTrained: boolean): number {
  const { vocabulary, hidden } = shape;
  const unused = kind === "distill" ? (tokens - scored) * unusedLogit : 0; // GRPO asks for the answers' logits only
  if (kind !== "chunked") return vocabulary * (scored * logitBytes[kind][mixed ? "mixed" : "full"] + unused);
  // Chunks are whole; each makes a gradient of the LM head and adds it to the one before.
  return lossChunk * vocabulary * (mixed ? 26 : 24) + (headTrained ? 4 : 0) * vocabulary * hidden + (mixed ? 2 : 0) * vocabulary * hidden;
}

/** Keys and values of one token in all layers (Pope et al. 2022, arXiv 2211.05102). */
export function cacheBytes({ layers, keyValueHeads, headSize }: ModelShape, bytes: number): number {
  return 2 * layers * keyValueHeads * headSize * bytes;
}
