import { open, readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { adapterParameters, modelFacts, type ModelFacts, type TensorShape } from "../domain/cost/modelFacts.ts";
import { readModelShape } from "../domain/cost/modelShape.ts";
import { isAbsolutePath, joinPath } from "../util/paths.ts";

/** A checkpoint folder as far as memory and work go; nothing of its weights is read but the headers. */
export interface ReadModel {
  facts: ModelFacts;
  /** Elements of the largest tensor. */
  largestTensor: number;
  /** Parameters of the adapter alone, where the folder holds one. */
  adapter: number | null;
}

/** The limit of the safetensors library. */
const maxHeader = 100_000_000;
const maxDepth = 8;

/** Reads config.json and safetensors headers; an adapter is read with the model it sits on. null where there is nothing to count. */
export async function readModel(folder: string, depth = 0): Promise<ReadModel | null> {
  const adapter = await readObject(join(folder, "adapter_config.json"));
  if (adapter !== null) {
    const under = adapter["base_model_name_or_path"];
    if (typeof under !== "string" || depth > maxDepth) return null;
    const base = await readModel(isAbsolutePath(under) ? under : joinPath(folder, under), depth + 1);
    if (base === null) return null;
    const tensors = await tensorsOf(folder, "adapter_model");
    const rank = Number(adapter["r"] ?? 8);
    return { ...base, adapter: tensors === null ? adapterParameters(base.facts, rank, adapter["target_modules"]) : tensors.reduce((sum, one) => sum + sizeOf(one), 0) };
  }
  const config = await readObject(join(folder, "config.json"));
  const shape = config === null ? null : readModelShape(config);
  if (config === null || shape === null) return null;
  // Packed weights of a quantised model have other shapes than what they stand for.
  const tensors = "quantization_config" in config ? null : await tensorsOf(folder, "model");
  const facts = modelFacts(shape, tensors);
  return { facts, largestTensor: tensors === null ? shape.vocabulary * shape.hidden : Math.max(0, ...tensors.map(sizeOf)), adapter: null };
}

function sizeOf({ shape }: TensorShape): number {
  return shape.reduce((product, one) => product * one, 1);
}

/** The tensors of a folder's safetensors; null where one cannot be read, so that nothing is counted half. */
async function tensorsOf(folder: string, stem: "model" | "adapter_model"): Promise<TensorShape[] | null> {
  try {
    const names = (await readdir(folder)).filter((name) => name.endsWith(".safetensors"));
    const index = await readObject(join(folder, `${stem}.safetensors.index.json`));
    const map = index?.["weight_map"];
    const shards = names.includes(`${stem}.safetensors`) ? [`${stem}.safetensors`] : typeof map === "object" && map !== null ? [...new Set(Object.values(map as Record<string, string>))] : [];
    if (shards.length === 0 || shards.some((name) => !names.includes(name))) return null;
    const tensors: TensorShape[] = [];
    for (const name of shards) tensors.push(...(await readHeader(join(folder, name))));
    return tensors;
  } catch {
    return null;
  }
}

/** Names and shapes of one file, whatever the type of its numbers. Throws for what is no header. */
async function readHeader(path: string): Promise<TensorShape[]> {
  const file = await open(path);
  try {
    const head = Buffer.alloc(8);
    await file.read(head, 0, 8, 0);
    const length = Number(head.readBigUInt64LE());
    if (!(length > 0 && length <= maxHeader)) throw new RangeError(path);
    const bytes = Buffer.alloc(length);
    const { bytesRead } = await file.read(bytes, 0, length, 8);
    const header = JSON.parse(bytes.toString("utf8", 0, bytesRead)) as Record<string, { shape?: unknown }>;
    return Object.entries(header).flatMap(([name, { shape }]) => {
      if (name === "__metadata__") return [];
      if (!Array.isArray(shape) || !shape.every((size) => Number.isSafeInteger(size) && size >= 0)) throw new RangeError(name);
      return [{ name, shape: shape as number[] }];
    });
  } finally {
    await file.close();
  }
}

async function readObject(path: string): Promise<Record<string, unknown> | null> {
  try {
    const value: unknown = JSON.parse(await readFile(path, "utf8"));
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
