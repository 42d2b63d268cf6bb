/** What of a model's config.json decides memory and work. Counts, not bytes. */
export interface ModelShape {
  /** `model_type` of the config. */
  family: string;
  hidden: number;
  layers: number;
  heads: number;
  keyValueHeads: number;
  headSize: number;
  intermediate: number;
  vocabulary: number;
  /** The LM head is the embedding table. */
  tied: boolean;
  /** Gate and up projection (Llama, Qwen, Mistral, Gemma …), or one projection (GPT-NeoX, GPT-2). */
  gated: boolean;
  /** RMSNorm keeps its normalised input for the backward pass, LayerNorm does not. */
  rmsNorm: boolean;
  /** Norms of a layer on the residual stream: 2, or 4 where attention and MLP are also normed behind (Gemma 2 and 3). */
  norms: number;
  /** Queries and keys are normed too (Qwen3, Gemma 3). */
  queryKeyNorm: boolean;
  positions: number | null;
  experts: MixtureOfExperts | null;
}

/** The MLPs of a mixture-of-experts model; `intermediate` of one expert. */
export interface MixtureOfExperts {
  total: number;
  perToken: number;
  intermediate: number;
  /** Width of the experts that every token passes; 0 without. */
  shared: number;
  /** Layers that have experts; the others have an ordinary MLP. */
  layers: number;
}

type Config = Readonly<Record<string, unknown>>;

const layerNormFamilies = /^(gpt_neox|gpt2|gptj|gpt_neo|opt|bloom|falcon|phi|stablelm|starcoder2)$/;
const singleProjectionFamilies = /^(gpt_neox|gpt2|gptj|gpt_neo|opt|bloom|falcon|phi|starcoder2|nemotron)$/;
const tiedFamilies = /^(gemma|gemma2|gemma3|gemma3_text|gpt2|gpt_neo|opt|bloom|falcon)$/;

/**
 * Reads a config.json of transformers. Names differ by family (`hidden_size`, `n_embd` …); a model with a vision tower has
 * its language model under `text_config`. null where the numbers that everything follows from are not there.
 */
export function readModelShape(config: Config): ModelShape | null {
  const text = config["text_config"];
  if (typeof text === "object" && text !== null && count(config, "hidden_size", "n_embd") === null) return readModelShape({ tie_word_embeddings: config["tie_word_embeddings"], ...(text as Config) });
  const family = typeof config["model_type"] === "string" ? config["model_type"] : "";
  const hidden = count(config, "hidden_size", "n_embd", "d_model");
  const layers = count(config, "num_hidden_layers", "n_layer", "num_layers");
  const heads = count(config, "num_attention_heads", "n_head", "num_heads");
  const vocabulary = count(config, "vocab_size");
  if (hidden === null || layers === null || heads === null || vocabulary === null) return null;
  const tied = config["tie_word_embeddings"];
  return {
    family, hidden, layers, heads, vocabulary,
    keyValueHeads: count(config, "num_key_value_heads", "num_kv_heads") ?? (config["multi_query"] === true ? 1 : heads),
    headSize: count(config, "head_dim") ?? Math.floor(hidden / heads),
    intermediate: count(config, "intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size") ?? 4 * hidden,
    tied: typeof tied === "boolean" ? tied : tiedFamilies.test(family),
    gated: !singleProjectionFamilies.test(family),
    rmsNorm: !layerNormFamilies.test(family),
    norms: /^gemma[23]/.test(family) ? 4 : 2,
    queryKeyNorm: /^(qwen3|gemma3)/.test(family),
    positions: count(config, "max_position_embeddings", "n_positions"),
    experts: readExperts(config, layers),
  };
}

function readExperts(config: Config, layers: number): MixtureOfExperts | null {
  const total = count(config, "num_local_experts", "num_experts", "n_routed_experts");
  if (total === null || total < 2) return null;
  const intermediate = count(config, "moe_intermediate_size", "intermediate_size") ?? 0;
  const sharedCount = count(config, "n_shared_experts") ?? 0;
  const dense = config["mlp_only_layers"];
  const withoutExperts = count(config, "first_k_dense_replace") ?? (Array.isArray(dense) ? dense.length : 0);
  const every = count(config, "decoder_sparse_step") ?? 1;
  return {
    total, intermediate,
    perToken: Math.min(total, count(config, "num_experts_per_tok", "experts_per_token", "moe_topk") ?? 2),
    shared: count(config, "shared_expert_intermediate_size") ?? sharedCount * intermediate,
    layers: Math.max(0, Math.floor((layers - withoutExperts) / every)),
  };
}

/** The first of these fields that is a positive whole number. */
function count(config: Config, ...names: string[]): number | null {
  for (const name of names) {
    const value = config[name];
    if (typeof value === "number" && Number.isInteger(value) && value > 0) return value;
  }
  return null;
}
