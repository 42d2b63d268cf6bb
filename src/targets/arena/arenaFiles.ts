import { createReadStream } from "node:fs";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { createGunzip } from "node:zlib";
import type { Arena, Budget } from "../../domain/arena/arenaModel.ts";
import { arenaYaml } from "../../domain/arena/arenaYaml.ts";
import { chainOf, compileArena, type CompiledArena, type StepsOf } from "../../domain/arena/compileArena.ts";
import type { Pipeline } from "../../domain/pipeline/pipelineModel.ts";
import { seededRandom } from "../../domain/statistics/random.ts";
import { AppError } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { checkedPipeline, loadPipeline, requirePipeline, type LoadedPipeline } from "../pipelineFile.ts";

/** Everything the arena writes: a pipeline for each seed, and the mixture of all skills' rows. It can all be made again. */
export function arenaFolder(root: string): string {
  return join(root, ".seesaw", "arena");
}

export interface ArenaSeed {
  seed: number;
  compiled: CompiledArena;
  loaded: LoadedPipeline;
  pipeline: Pipeline;
}

/**
 * Writes the pipeline of one seed and reads it back through the same checks as any other. `write` false: nothing is written,
 * for who only looks at what there is.
 */
export async function prepareSeed(pipeline: Pipeline, arena: Arena, seed: number, stepsOf?: StepsOf, { write = true } = {}): Promise<ArenaSeed> {
  const folder = join(arenaFolder(pipeline.root), `seed-${seed}`);
  const compiled = compileArena(pipeline, arena, mixFile(pipeline.root), stepsOf);
  const file = join(folder, "seesaw.yaml");
  const text = arenaYaml(pipeline, compiled, seed);
  if (write) await writeIfNew(file, text);
  const loaded = write ? await loadPipeline(file, { files: true }) : checkedPipeline(text, file);
  return { seed, compiled, loaded, pipeline: requirePipeline(loaded) };
}

function mixFile(root: string): string {
  return join(arenaFolder(root), "mix.jsonl");
}

/**
 * Writes the mixture: `rows` rows of each skill's stage, the same for every seed and remedy, each naming its skill in
 * `data_source`. AppError("bad-input") for a file that is no JSON Lines.
 */
export async function writeMix(pipeline: Pipeline, arena: Arena): Promise<void> {
  const skills = new Set(pipeline.skills.map(({ id }) => id));
  const lines: string[] = [];
  for (const { id, data } of chainOf(pipeline)) if (skills.has(id) && data !== null) lines.push(...(await sampleRows(data, id, arena.rows)));
  await writeIfNew(mixFile(pipeline.root), lines.map((line) => `${line}\n`).join(""));
}

async function sampleRows(path: string, skill: string, wanted: number): Promise<string[]> {
  const random = seededRandom(1);
  const kept: { line: number; text: string }[] = [];
  let seen = 0;
  const raw = createReadStream(path);
  const source = path.endsWith(".gz") ? raw.pipe(createGunzip()) : raw;
  const lines = createInterface({ input: source, crlfDelay: Infinity });
  let number = 0;
  for await (const text of lines) {
    number += 1;
    if (text.trim() === "") continue;
    const row = rowOf(text, skill);
    if (row === null) {
      if (number === 1) throw new AppError("bad-input", t("{0}:1 is no JSON object. The arena mixes the rows of all stages, for which they must be JSON Lines.", path));
      continue; // one bad row: the runner says so of the stage itself
    }
    seen += 1;
    const place = kept.length < wanted ? kept.length : Math.floor(random() * seen);
    if (place < wanted) kept[place] = { line: number, text: row };
  }
  return kept.sort((a, b) => a.line - b.line).map(({ text }) => text);
}

/** The row with its skill, as text; null for what is no object. */
function rowOf(text: string, skill: string): string | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value !== "object" || value === null || Array.isArray(value) ? null : JSON.stringify({ ...value, data_source: skill });
  } catch {
    return null;
  }
}

/** Leaves a file alone that says the same already: what is read by its time stamps is then not read again. */
async function writeIfNew(file: string, text: string): Promise<void> {
  const before = await readFile(file, "utf8").catch(() => null);
  if (before === text) return;
  await mkdir(join(file, ".."), { recursive: true });
  const temporary = `${file}.${process.pid}.tmp`;
  try {
    await writeFile(temporary, text);
    await rename(temporary, file);
  } finally {
    await rm(temporary, { force: true });
  }
}

/** What a step of each stage takes, in the budget's unit, as it was found first; null where that was for another budget. */
export async function keptPrices({ pipeline }: ArenaSeed, budget: Budget): Promise<Map<string, number> | null> {
  try {
    const kept = JSON.parse(await readFile(join(pipeline.root, "budget.json"), "utf8")) as { budget?: unknown; price?: Record<string, number> };
    return JSON.stringify(kept.budget) === JSON.stringify(budget) && typeof kept.price === "object" ? new Map(Object.entries(kept.price)) : null;
  } catch {
    return null;
  }
}

export async function keepPrices({ pipeline }: ArenaSeed, budget: Budget, price: ReadonlyMap<string, number>): Promise<void> {
  await writeIfNew(join(pipeline.root, "budget.json"), `${JSON.stringify({ budget, price: Object.fromEntries(price) }, null, 1)}\n`);
}
