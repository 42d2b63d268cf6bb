import { join } from "node:path";
import { AppError, messageOf } from "../util/errors.ts";
import { readJsonFile, type JsonRecord } from "./jsonFile.ts";
import { isFile, readTensors, tensorPlaces } from "./weightFiles.ts";
import type { TensorPlace } from "./safetensors.ts";

/** A LoRA checkpoint, to be merged: W + B·A·scale. */
export interface Adapter {
  folder: string;
  /** Rank and scale of a module, such as `model.layers.0.mlp.up_proj`. */
  partOf(module: string): { rank: number; scale: number };
  places: ReadonlyMap<string, TensorPlace>;
}

/** What a checkpoint is made of: full weights, and the adapters trained on them one after the other. */
export interface Layers {
  base: string;
  adapters: Adapter[];
}

const longestChain = 16;

/** Follows an adapter checkpoint to the full weights under it. AppError("bad-input") for what cannot be merged exactly. */
export async function layersOf(folder: string): Promise<Layers> {
  const adapters: Adapter[] = [];
  let at = folder;
  while (await isFile(join(at, "adapter_config.json"))) {
    if (adapters.length >= longestChain) throw new AppError("bad-input", `${folder} rests on more than ${longestChain} adapters, or on itself.`);
    const config = (await readJsonFile(at, "adapter_config.json")) as JsonRecord;
    adapters.unshift({ folder: at, partOf: partsOf(config, at), places: await tensorPlaces(at, "adapter_model") });
    const under = config["base_model_name_or_path"];
    if (typeof under !== "string" || !(await isFile(join(under, "config.json")) || (await isFile(join(under, "adapter_config.json"))))) {
      throw new AppError("bad-input", `The adapter in ${at} was trained on ${typeof under === "string" ? under : "an unnamed model"}, which is not a folder on this machine.`);
    }
    at = under;
  }
  return { base: at, adapters };
}

/** Adds an adapter to the weights it was trained on, in place. */
export async function merge({ folder, partOf, places }: Adapter, weights: ReadonlyMap<string, Float32Array>): Promise<void> {
  const values = await readTensors(places, places.keys());
  for (const [name, a] of values) {
    const module = /^base_model\.model\.(.+)\.lora_A\.weight$/.exec(name)?.[1];
    if (module === undefined) {
      if (/\.lora_B\.weight$/.test(name)) continue;
      throw new AppError("bad-input", `The adapter in ${folder} holds ${name}; live scoring merges plain LoRA matrices only.`);
    }
    const [target, bName] = [weights.get(`${module}.weight`), name.replace(".lora_A.", ".lora_B.")];
    const b = values.get(bName);
    const [rank = 0, inputs = 0] = places.get(name)?.shape ?? [];
    const [outputs = 0, other = 0] = places.get(bName)?.shape ?? [];
    if (target === undefined || b === undefined || rank !== other || target.length !== outputs * inputs) {
      throw new AppError("bad-input", `The adapter in ${folder} does not fit the model it names: ${module} has no matching weight.`);
    }
    const part = partOf(module);
    if (part.rank !== rank) throw new AppError("bad-input", `The adapter in ${folder} holds matrices of rank ${rank} for ${module}, and its adapter_config.json says ${part.rank}.`);
    addProduct(target, a, b, { rank, inputs, outputs, scale: part.scale });
  }
}

/** target += scale · B·A, each element summed in double precision before it is rounded once. */
function addProduct(target: Float32Array, a: Float32Array, b: Float32Array, { rank, inputs, outputs, scale }: { rank: number; inputs: number; outputs: number; scale: number }): void {
  const row = new Float64Array(inputs);
  for (let o = 0; o < outputs; o++) {
    row.fill(0);
    for (let r = 0; r < rank; r++) {
      const factor = b[o * rank + r] as number;
      for (let i = 0; i < inputs; i++) row[i] = (row[i] as number) + factor * (a[r * inputs + i] as number);
    }
    for (let i = 0; i < inputs; i++) target[o * inputs + i] = (target[o * inputs + i] as number) + scale * (row[i] as number);
  }
}

/** What decides the computation beyond rank and scale, with its name in a sentence. Merging without it would be wrong. */
const unmerged: Record<string, string> = {
  use_dora: "DoRA (use_dora)",
  lora_bias: "a bias (lora_bias)",
  modules_to_save: "modules trained in full (modules_to_save)",
  trainable_token_indices: "trained token embeddings (trainable_token_indices)",
  target_parameters: "adapters of bare parameters (target_parameters)",
  alora_invocation_tokens: "aLoRA (alora_invocation_tokens)",
  use_qalora: "QA-LoRA (use_qalora)",
  use_bdlora: "BD-LoRA (use_bdlora)",
  arrow_config: "Arrow routing (arrow_config)",
  kasa_config: "KaSA (kasa_config)",
  monteclora_config: "MonteCLoRA (monteclora_config)",
  fan_in_fan_out: "transposed weights (fan_in_fan_out)",
  layer_replication: "replicated layers (layer_replication)",
};
/** Ways to begin that also change the weights under the adapter, which the checkpoint does not hold. */
const changesBase = /^(pissa|corda|olora|mica|loftq|lora_ga)/i;

/** Rank and scale by module, as PEFT gives them. AppError("bad-input") names what cannot be merged exactly. */
function partsOf(config: JsonRecord, folder: string): Adapter["partOf"] {
  const { peft_type: type, r, lora_alpha: alpha, bias, init_lora_weights: init } = config;
  if (type !== "LORA" || !isPositive(r) || typeof alpha !== "number") throw new AppError("bad-input", `The adapter in ${folder} is no LoRA adapter (${String(type)}), so it cannot be merged here.`);
  const odd = Object.keys(unmerged).find((key) => isSet(config[key]));
  const named = odd !== undefined ? unmerged[odd] : bias !== undefined && bias !== null && bias !== "none" ? `trained biases (bias: ${JSON.stringify(bias)})` : typeof init === "string" && changesBase.test(init) ? `weights begun as ${init} (init_lora_weights)` : undefined;
  if (named !== undefined) throw new AppError("bad-input", `The adapter in ${folder} uses ${named}, which live scoring cannot merge exactly. The scores of runs are not affected.`);
  const [ranks, alphas] = [patternOf(config, "rank_pattern", folder), patternOf(config, "alpha_pattern", folder)];
  return (module) => {
    const rank = ranks(module) ?? r;
    return { rank, scale: (alphas(module) ?? alpha) / (config["use_rslora"] === true ? Math.sqrt(rank) : rank) };
  };
}

/** PEFT's rule (`get_pattern_key`): the first pattern that matches the whole name, or the part of it behind a dot. */
function patternOf(config: JsonRecord, key: "rank_pattern" | "alpha_pattern", folder: string): (module: string) => number | undefined {
  const given = Object.entries((config[key] ?? {}) as JsonRecord);
  const patterns = given.map(([pattern, value]) => {
    try {
      if (!isPositive(value)) throw new Error(`${JSON.stringify(value)} is no number above 0`);
      // With the flag, what only Python would understand is an error and never something else.
      return { matches: new RegExp(`^(.*\\.)?(${pattern})$`, "u"), value };
    } catch (error) {
      throw new AppError("bad-input", `The adapter in ${folder} has a ${key} that live scoring cannot read (${pattern}: ${messageOf(error)}). The scores of runs are not affected.`, { cause: error });
    }
  });
  return (module) => patterns.find(({ matches }) => matches.test(module))?.value;
}

function isPositive(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value > 0;
}

function isSet(value: unknown): boolean {
  if (typeof value === "object" && value !== null) return Object.keys(value).length > 0;
  return value !== undefined && value !== null && value !== false;
}
