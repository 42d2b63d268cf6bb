import { join } from "node:path";
import { AppError } from "../util/errors.ts";
import { readJsonFile, type JsonRecord } from "./jsonFile.ts";
import { isFile, readTensors, tensorPlaces } from "./weightFiles.ts";
import type { TensorPlace } from "./safetensors.ts";

/** A LoRA checkpoint, to be merged: W + B·A·scale. */
export interface Adapter {
  folder: string;
  scale: number;
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
    adapters.unshift({ folder: at, scale: scaleOf(config, at), places: await tensorPlaces(at, "adapter_model") });
    const under = config["base_model_name_or_path"];
    if (typeof under !== "string" || !(await isFile(join(under, "config.json")) || (await isFile(join(under, "adapter_config.json"))))) {
      throw new AppError("bad-input", `The adapter in ${at} was trained on ${typeof under === "string" ? under : "an unnamed model"}, which is not a folder on this machine.`);
    }
    at = under;
  }
  return { base: at, adapters };
}

/** Adds an adapter to the weights it was trained on, in place. */
export async function merge({ folder, scale, places }: Adapter, weights: ReadonlyMap<string, Float32Array>): Promise<void> {
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
    addProduct(target, a, b, { rank, inputs, outputs, scale });
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

function scaleOf(config: JsonRecord, folder: string): number {
  const { peft_type: type, r, lora_alpha: alpha } = config;
  const odd = ["use_dora", "modules_to_save", "rank_pattern", "alpha_pattern", "fan_in_fan_out", "layer_replication", "trainable_token_indices"].find((key) => isSet(config[key]));
  if (type !== "LORA" || typeof r !== "number" || typeof alpha !== "number" || r <= 0) throw new AppError("bad-input", `The adapter in ${folder} is no LoRA adapter (${String(type)}), so it cannot be merged here.`);
  if (odd !== undefined || (config["bias"] ?? "none") !== "none" || config["lora_bias"] === true) {
    throw new AppError("bad-input", `The adapter in ${folder} uses ${odd ?? "a bias"}; live scoring merges plain LoRA only. The scores of runs are not affected.`);
  }
  return alpha / (config["use_rslora"] === true ? Math.sqrt(r) : r);
}

function isSet(value: unknown): boolean {
  if (typeof value === "object" && value !== null) return Object.keys(value).length > 0;
  return value !== undefined && value !== null && value !== false;
}
