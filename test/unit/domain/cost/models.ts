import { modelFacts, type ModelFacts } from "../../../../src/domain/cost/modelFacts.ts";
import { readModelShape, type ModelShape } from "../../../../src/domain/cost/modelShape.ts";
import type { CostInput } from "../../../../src/domain/cost/stageCost.ts";
import type { DataFacts } from "../../../../src/domain/cost/dataFacts.ts";

/** config.json of models everybody knows, as published, without what decides no size. */
export const configs = {
  "llama-2-7b": { model_type: "llama", hidden_size: 4096, intermediate_size: 11008, num_hidden_layers: 32, num_attention_heads: 32, num_key_value_heads: 32, vocab_size: 32000, tie_word_embeddings: false },
  "llama-3-8b": { model_type: "llama", hidden_size: 4096, intermediate_size: 14336, num_hidden_layers: 32, num_attention_heads: 32, num_key_value_heads: 8, vocab_size: 128256, tie_word_embeddings: false, max_position_embeddings: 8192 },
  "qwen2.5-0.5b": { model_type: "qwen2", hidden_size: 896, intermediate_size: 4864, num_hidden_layers: 24, num_attention_heads: 14, num_key_value_heads: 2, vocab_size: 151936, tie_word_embeddings: true, max_position_embeddings: 32768 },
  "mixtral-8x7b": { model_type: "mixtral", hidden_size: 4096, intermediate_size: 14336, num_hidden_layers: 32, num_attention_heads: 32, num_key_value_heads: 8, vocab_size: 32000, num_local_experts: 8, num_experts_per_tok: 2, tie_word_embeddings: false },
  "qwen3-30b-a3b": { model_type: "qwen3_moe", hidden_size: 2048, intermediate_size: 6144, moe_intermediate_size: 768, num_hidden_layers: 48, num_attention_heads: 32, num_key_value_heads: 4, head_dim: 128, vocab_size: 151936, num_experts: 128, num_experts_per_tok: 8, decoder_sparse_step: 1, mlp_only_layers: [], tie_word_embeddings: false },
  "pythia-1b": { model_type: "gpt_neox", hidden_size: 2048, intermediate_size: 8192, num_hidden_layers: 16, num_attention_heads: 8, vocab_size: 50304, tie_word_embeddings: false },
  gpt2: { model_type: "gpt2", n_embd: 768, n_layer: 12, n_head: 12, n_positions: 1024, vocab_size: 50257 },
} as const;

export function shapeOf(name: keyof typeof configs): ModelShape {
  return readModelShape(configs[name]) as ModelShape;
}

export function factsOf(name: keyof typeof configs): ModelFacts {
  return modelFacts(shapeOf(name), null);
}

export const data: DataFacts = { rows: 10_000, mean: 500, longest: 1024, prompt: 200, longestPrompt: 400, answer: 300, sampled: 200, by: "tokenizer" };

/** A stage on the 8B model with nothing special about it. */
export function costInput(change: Partial<Omit<CostInput, "stage">> & { stage?: Partial<CostInput["stage"]> } = {}): CostInput {
  const { stage, ...rest } = change;
  return {
    stage: {
      id: "math", recipe: "sft", args: { max_steps: 100, per_device_train_batch_size: 4 }, adapter: null, launch: { kind: "python", processes: 1 }, replay: null, options: {},
      probe: { every: 20, eval_every: null, top_k: 8, max_new_tokens: 256, batch_size: 16, kl: ["start", "base"] }, ...stage,
    },
    model: factsOf("llama-3-8b"), teachers: [], reference: null, experts: [], largestTensor: 128256 * 4096, data, probes: null, device: null, measured: null, ...rest,
  };
}
