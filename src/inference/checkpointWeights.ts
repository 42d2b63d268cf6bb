import { AppError } from "../util/errors.ts";
import { layersOf, merge, type Layers } from "./adapter.ts";
import type { ScoringGraph } from "./architecture.ts";
import { countOf, type TensorPlace } from "./safetensors.ts";
import { readTensors, stampOf, tensorPlaces } from "./weightFiles.ts";

/** A checkpoint that was looked at, but not read. */
export interface CheckpointFiles {
  layers: Layers;
  places: ReadonlyMap<string, TensorPlace>;
  /** Changes when a file of it does. */
  stamp: string;
}

/** Finds a checkpoint's files and checks that they are whole. AppError("bad-input") says what is wrong. */
export async function findWeights(folder: string): Promise<CheckpointFiles> {
  const layers = await layersOf(folder);
  const places = await tensorPlaces(layers.base, "model");
  const stamps = await Promise.all([stampOf(places), ...layers.adapters.map((adapter) => stampOf(adapter.places))]);
  return { layers, places, stamp: stamps.join("\n") };
}

/** Bytes of the weights once they are float32. */
export function bytesOf(graph: ScoringGraph): number {
  return [...graph.tensors.values()].reduce((sum, shape) => sum + 4 * countOf({ shape }), 0);
}

/**
 * The weights under the graph's names. The graph and the checkpoint must name the same tensors, of the same shapes: a
 * parameter that the graph does not know would be left out of the computation without a word.
 */
export async function loadWeights({ layers, places }: CheckpointFiles, graph: ScoringGraph): Promise<Map<string, Float32Array>> {
  for (const [name, shape] of graph.tensors) {
    const place = places.get(name);
    if (place === undefined) throw new AppError("bad-input", `${layers.base} has no tensor ${name}, which its config.json promises.`);
    if (place.shape.join() !== shape.join()) throw new AppError("bad-input", `${layers.base}: ${name} has the shape [${place.shape.join(", ")}], and config.json says [${shape.join(", ")}].`);
  }
  const extra = [...places.keys()].find((name) => !graph.tensors.has(name) && !graph.tied.has(name) && !name.endsWith(".rotary_emb.inv_freq"));
  if (extra !== undefined) throw new AppError("bad-input", `${layers.base} holds the tensor ${extra}, which the scoring graph does not know; its scores would be wrong.`);
  const weights = await readTensors(places, graph.tensors.keys());
  for (const adapter of layers.adapters) await merge(adapter, weights);
  return weights;
}
