import { open, readFile, stat, type FileHandle } from "node:fs/promises";
import { basename, join } from "node:path";
import { awaySentence, stepOfFolder } from "../domain/run/awayWeights.ts";
import { parseRemoteFile } from "../domain/run/remoteFiles.ts";
import { AppError } from "../util/errors.ts";
import { readJsonFile } from "./jsonFile.ts";
import { readHeader, readTensor, type TensorPlace } from "./safetensors.ts";

/** The weight files of a folder: `model.safetensors`, or the shards of its index; `stem` adapter_model for an adapter. */
export async function tensorPlaces(folder: string, stem: "model" | "adapter_model"): Promise<Map<string, TensorPlace>> {
  const single = join(folder, `${stem}.safetensors`);
  if (await isFile(single)) return readHeader(single);
  const index = await readJsonFile(folder, `${stem}.safetensors.index.json`);
  const map = index?.["weight_map"];
  if (typeof map !== "object" || map === null) throw new AppError("bad-input", (await elsewhere(folder)) ?? `${folder} has no ${stem}.safetensors. It may still be being written, or its weights are in another format.`);
  const places = new Map<string, TensorPlace>();
  for (const shard of new Set(Object.values(map as Record<string, string>))) {
    if (shard !== shard.replace(/[/\\]/g, "") || !(await isFile(join(folder, shard)))) throw new AppError("bad-input", `${join(folder, shard)} is missing, and the index names it.`);
    for (const [name, place] of await readHeader(join(folder, shard))) places.set(name, place);
  }
  return places;
}

/** Where the weights of a run on another machine are, which stay there until they are asked for; null for any other folder. */
async function elsewhere(folder: string): Promise<string | null> {
  const run = join(folder, "..", "..");
  try {
    const { target, address } = parseRemoteFile(await readFile(join(run, "remote.json"), "utf8"));
    return awaySentence({ run: basename(run), step: stepOfFolder(folder), target, address });
  } catch {
    return null;
  }
}

/** Reads the named tensors one after the other; every file is opened once. */
export async function readTensors(places: ReadonlyMap<string, TensorPlace>, names: Iterable<string>): Promise<Map<string, Float32Array>> {
  const files = new Map<string, FileHandle>();
  const values = new Map<string, Float32Array>();
  try {
    for (const name of names) {
      const place = places.get(name) as TensorPlace;
      let file = files.get(place.path);
      if (file === undefined) files.set(place.path, (file = await open(place.path)));
      values.set(name, await readTensor(file, place));
    }
  } finally {
    for (const file of files.values()) await file.close();
  }
  return values;
}

/** Changes when one of the files does. */
export async function stampOf(places: ReadonlyMap<string, Pick<TensorPlace, "path">>): Promise<string> {
  const paths = [...new Set([...places.values()].map(({ path }) => path))].sort();
  const stamps = await Promise.all(paths.map(async (path) => `${path} ${(({ size, mtimeMs, ino }) => `${size} ${mtimeMs} ${ino}`)(await stat(path))}`));
  return stamps.join("\n");
}

export async function isFile(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}
