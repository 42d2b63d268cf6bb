import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { canonicalText } from "../domain/rows/canonical.ts";
import { parseJson } from "../domain/rows/jsonText.ts";
import { AppError, messageOf } from "../util/errors.ts";
import { readJsonFile } from "./jsonFile.ts";

/** What the runner says of a graph (`runner/seesaw_runner/export/graphs.py`). */
export interface ScoringGraph {
  /** The `.onnx` file. */
  path: string;
  /** Every weight that is fed, with its shape. */
  tensors: Map<string, number[]>;
  /** Tensors that a checkpoint need not hold, with the one that stands for them. */
  tied: Map<string, string>;
  maxPositions: number;
  vocabulary: number;
}

/** As VERSION of graphs.py. */
const version = 1;
/** What may differ between checkpoints of one architecture, as IGNORED of graphs.py. */
const ignored = [
  "_name_or_path",
  "architectures",
  "attention_dropout",
  "bos_token_id",
  "dtype",
  "eos_token_id",
  "initializer_range",
  "pad_token_id",
  "torch_dtype",
  "transformers_version",
  "use_cache",
];

/** Names the graph of a model: a hash of what in its config.json decides the computation. */
export async function architectureHash(folder: string): Promise<string> {
  let text: string;
  try {
    text = await readFile(join(folder, "config.json"), "utf8");
  } catch (error) {
    throw new AppError("bad-input", `The checkpoint's config.json cannot be read: ${messageOf(error)}.`, { cause: error });
  }
  const result = parseJson(text);
  if (!result.ok || !(result.value instanceof Map)) throw new AppError("bad-input", `${join(folder, "config.json")} is no JSON object. It may still be being written.`);
  const config = new Map(result.value);
  for (const key of ignored) config.delete(key);
  return createHash("sha256").update(`${version} ${canonicalText(config)}`).digest("hex").slice(0, 32);
}

/** The graph of a model. AppError("not-found" | "bad-input") says why there is none, and what to do. */
export async function findGraph(graphs: string, folder: string): Promise<ScoringGraph> {
  const hash = await architectureHash(folder);
  const about = await readJsonFile(graphs, `${hash}.json`);
  if (about === null) throw new AppError("not-found", "There is no scoring graph for this model yet. Run a stage once with this version of Seesaw: the runner then leaves one.");
  if (typeof about["unsupported"] === "string") throw new AppError("bad-input", about["unsupported"]);
  const { v, tensors, tied, max_positions: maxPositions, vocabulary } = about;
  if (v !== version || typeof tensors !== "object" || tensors === null || typeof maxPositions !== "number" || typeof vocabulary !== "number") {
    throw new AppError("bad-input", `${join(graphs, `${hash}.json`)} is not what this version reads. Delete it and run a stage once: the runner writes it anew.`);
  }
  return {
    path: join(graphs, `${hash}.onnx`),
    tensors: new Map(Object.entries(tensors as Record<string, number[]>)),
    tied: new Map(Object.entries((tied ?? {}) as Record<string, string>)),
    maxPositions,
    vocabulary,
  };
}
