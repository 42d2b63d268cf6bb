import type { ModelShape } from "./modelShape.ts";

/** A tensor of a checkpoint: what its safetensors header says, or what the config lets expect. */
export interface TensorShape {
  name: string;
  shape: readonly number[];
}

/** Sizes of one model, as far as they can be told without loading it. */
export interface ModelFacts {
  shape: ModelShape;
  /** All parameters, tied ones once. */
  parameters: number;
  /** Parameters a token passes: fewer than all only in a mixture of experts. */
  active: number;
  /** Of the embedding table (and of learned positions): looked up, not multiplied. */
  embedding: number;
  /** Of the LM head; 0 where it is the embedding table. */
  head: number;
  /** Of linear layers, the LM head apart: what autocast keeps copies of. */
  linear: number;
  /** Where LoRA can sit: layers of the transformer as `[name, in + out]`. */
  linears: readonly (readonly [name: string, width: number])[];
  /** `safetensors`: counted in the files; `config`: computed from config.json. */
  source: "safetensors" | "config";
}

const embeddingName = /(^|\.)(embed_tokens|embed_in|wte|wpe|word_embeddings|embed_positions|position_embeddings)\.weight$/;
const headName = /(^|\.)(lm_head|embed_out)\.weight$/;
const expertName = /\.experts\./;

/** Counts parameters. `tensors`: the checkpoint's own; null: computed from the shape (biases and norms included roughly). */
export function modelFacts(shape: ModelShape, tensors: readonly TensorShape[] | null): ModelFacts {
  const counted = tensors ?? expectedTensors(shape);
  let [parameters, embedding, head, linear, expert] = [0, 0, 0, 0, 0];
  const linears: (readonly [string, number])[] = [];
  const hasHead = counted.some(({ name }) => headName.test(name));
  for (const { name, shape: sizes } of counted) {
    const size = sizes.reduce((product, one) => product * one, 1);
    parameters += size;
    if (embeddingName.test(name)) embedding += size;
    else if (headName.test(name)) head += size;
    else if (sizes.length >= 2) {
      linear += size;
      if (expertName.test(name)) expert += size;
      else if (sizes.length === 2 && name.endsWith(".weight")) linears.push([name.slice(0, -".weight".length), (sizes[0] as number) + (sizes[1] as number)]);
    }
  }
  const { experts } = shape;
  const idle = experts === null ? 0 : expert * (1 - experts.perToken / experts.total);
  return { shape: { ...shape, tied: !hasHead }, parameters, active: parameters - Math.round(idle), embedding, head, linear, linears, source: tensors === null ? "config" : "safetensors" };
}

/** The tensors that a config lets expect, with the names of transformers' Llama. */
export function expectedTensors(shape: ModelShape): TensorShape[] {
  const { hidden, layers, heads, keyValueHeads, headSize, vocabulary, experts } = shape;
  const [queries, keys] = [heads * headSize, keyValueHeads * headSize];
  const tensors: TensorShape[] = [{ name: "model.embed_tokens.weight", shape: [vocabulary, hidden] }, { name: "model.norm.weight", shape: [hidden] }];
  if (!shape.tied) tensors.push({ name: "lm_head.weight", shape: [vocabulary, hidden] });
  if (shape.family === "gpt2" && shape.positions !== null) tensors.push({ name: "wpe.weight", shape: [shape.positions, hidden] });
  for (let layer = 0; layer < layers; layer++) {
    const add = (name: string, ...sizes: number[]): void => void tensors.push({ name: `model.layers.${layer}.${name}.weight`, shape: sizes });
    add("self_attn.q_proj", queries, hidden);
    add("self_attn.k_proj", keys, hidden);
    add("self_attn.v_proj", keys, hidden);
    add("self_attn.o_proj", hidden, queries);
    for (let norm = 0; norm < shape.norms; norm++) add(`norm_${norm}`, hidden);
    // The dense layers of a mixture come first.
    if (experts !== null && layer >= layers - experts.layers) {
      for (const name of ["gate_proj", "up_proj", "down_proj"]) tensors.push({ name: `model.layers.${layer}.mlp.experts.${name}`, shape: [experts.total, experts.intermediate, hidden] });
      add("mlp.gate", experts.total, hidden);
      if (experts.shared > 0) addMlp(add, "mlp.shared_expert", experts.shared, hidden, true);
    } else addMlp(add, "mlp", shape.intermediate, hidden, shape.gated);
  }
  return tensors;
}

function addMlp(add: (name: string, ...sizes: number[]) => void, name: string, width: number, hidden: number, gated: boolean): void {
  if (gated) add(`${name}.gate_proj`, width, hidden);
  add(`${name}.up_proj`, width, hidden);
  add(`${name}.down_proj`, hidden, width);
}

/**
 * Parameters that a LoRA of rank r adds: r · (in + out) for every layer it sits on (Hu et al. 2021, arXiv 2106.09685, §4).
 * `targets`: PEFT's `target_modules`; absent or `all-linear`: all linear layers but the LM head.
 */
export function adapterParameters({ linears }: Pick<ModelFacts, "linears">, rank: number, targets: unknown): number {
  const chosen = typeof targets === "string" && targets !== "all-linear" ? pattern(targets) : Array.isArray(targets) ? listed(targets) : () => true;
  return linears.reduce((sum, [name, width]) => (chosen(name) ? sum + rank * width : sum), 0);
}

/** A text is a regular expression over the whole name in PEFT; one that is none here chooses everything. */
function pattern(text: string): (name: string) => boolean {
  try {
    const expression = new RegExp(`^(?:${text})$`);
    return (name) => expression.test(name);
  } catch {
    return () => true;
  }
}

function listed(names: readonly unknown[]): (name: string) => boolean {
  return (name) => names.some((one) => typeof one === "string" && (name === one || name.endsWith(`.${one}`)));
}
