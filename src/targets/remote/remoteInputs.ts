import { statSync } from "node:fs";
import { readFile, readdir, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { CheckSpec } from "../../protocol/checks.ts";
import type { RunSpec } from "../../protocol/runSpec.ts";
import { AppError } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { isAbsolutePath, joinPath } from "../../util/paths.ts";
import { commandFiles } from "../commandFiles.ts";
import type { FileHash, FileHasher } from "../hashFiles.ts";
import type { PlannedTree } from "./pathMap.ts";

/** The files of this machine that a run on another one reads, besides models. */
export interface GatheredFiles {
  objects: FileHash[];
  tree: PlannedTree;
}

/** A module or task folder with more than this is not what was meant. */
const mostFiles = 500;
/** A text in the arguments that names a larger file names something else. */
const largest = 16 << 20;

/** Finds them: what was hashed when the run was planned, and what the training would find beside it. AppError("not-found" | "bad-input"). */
export async function gatherFiles(spec: RunSpec, hasher: FileHasher): Promise<GatheredFiles> {
  const { root, file } = spec.pipeline;
  const paths = new Set([file]);
  const folders = new Set<string>();
  for (const { module, folder } of functionsOf(spec)) {
    folders.add(folder);
    for (const path of await moduleFiles(folder, module)) paths.add(path);
  }
  const programs = commandFiles({ recipe: spec.recipe, options: spec.options ?? {} }, root);
  for (const path of programs) for (const one of path.endsWith(".py") ? [path, ...(await importsOf(path, dirname(path)))] : [path]) paths.add(one);
  const cwd = spec.options?.["cwd"];
  if (spec.recipe === "command" && typeof cwd === "string") folders.add(cwd);
  const tasks = spec.benchmark?.include_path ?? null;
  if (tasks !== null) {
    folders.add(tasks);
    for (const path of await filesBelow(tasks)) paths.add(path);
  }
  for (const path of namedFiles([spec.args, spec.options ?? {}, spec.adapter], root)) paths.add(path);
  const objects: FileHash[] = spec.inputs.filter(({ path }) => !paths.has(path));
  for (const path of Object.values((spec.options?.["paraphrases"] ?? {}) as Record<string, unknown>)) if (typeof path === "string" && !objects.some((one) => one.path === path)) objects.push(await hasher.file(path));
  const known = new Set(objects.map(({ path }) => path));
  const files: FileHash[] = [];
  for (const path of [...paths].sort()) if (!known.has(path)) files.push(await hasher.file(path));
  return { objects, tree: { files, folders: [...folders].sort() } };
}

/** The functions of the person's own that a run imports: by module, and the folder that is looked in. */
function functionsOf(spec: RunSpec): { module: string; folder: string }[] {
  const found: { module: string; folder: string }[] = [];
  const add = (one: unknown): void => {
    if (typeof one !== "object" || one === null) return;
    const { function: name, path, check } = one as { function?: unknown; path?: unknown; check?: unknown };
    if (typeof name === "string") found.push({ module: name.split(":")[0] ?? "", folder: typeof path === "string" ? path : spec.pipeline.root });
    add(check);
  };
  for (const { check } of spec.skills) add(check satisfies CheckSpec);
  add(spec.options?.["check"]);
  const rewards = spec.options?.["rewards"];
  if (Array.isArray(rewards)) rewards.forEach(add);
  return found;
}

/** A module and whatever it imports from the same folder. A module that is not there is the preflight's to tell. */
async function moduleFiles(folder: string, module: string): Promise<string[]> {
  const parts = module.split(".").filter((part) => part !== "");
  const first = parts[0];
  if (first === undefined) return [];
  const own = await localModule(folder, first);
  const found = new Set(own);
  for (const path of own) for (const one of await importsOf(path, folder, found)) found.add(one);
  return [...found];
}

/** The files of a module or package that lies in a folder; nothing for one that is installed. */
async function localModule(folder: string, name: string): Promise<string[]> {
  const file = join(folder, `${name}.py`);
  if (isFile(file)) return [file];
  const inside = await readdir(join(folder, name)).catch(() => null);
  return inside === null ? [] : (await filesBelow(join(folder, name))).filter((path) => path.endsWith(".py"));
}

/** What a Python file imports from `folder`, and what those files import in turn. */
async function importsOf(path: string, folder: string, seen = new Set<string>([path])): Promise<string[]> {
  const text = await readFile(path, "utf8").catch(() => "");
  const found: string[] = [];
  for (const match of text.matchAll(/^[ \t]*(?:from[ \t]+\.*([\w.]+)[ \t]+import|import[ \t]+([\w., \t]+))/gm)) {
    const names = (match[1] ?? match[2] ?? "").split(",").map((name) => name.trim().split(/[.\s]/)[0] ?? "").filter((name) => name !== "");
    for (const name of names) {
      for (const one of await localModule(folder, name)) {
        if (seen.has(one)) continue;
        seen.add(one);
        found.push(one, ...(await importsOf(one, folder, seen)));
        if (seen.size > mostFiles) throw new AppError("bad-input", t("{0} imports more than {1} files of {2}: put what the run needs into a folder of its own.", path, mostFiles, folder));
      }
    }
  }
  return found;
}

async function filesBelow(folder: string): Promise<string[]> {
  const found: string[] = [];
  const walk = async (at: string): Promise<void> => {
    for (const entry of await readdir(at, { withFileTypes: true })) {
      if (entry.name.startsWith(".") || entry.name === "__pycache__") continue;
      const path = join(at, entry.name);
      if ((await stat(path)).isDirectory()) await walk(path);
      else found.push(path);
      if (found.length > mostFiles) throw new AppError("bad-input", t("{0} holds more than {1} files: name a folder with only what the run needs.", folder, mostFiles));
    }
  };
  await walk(folder).catch((error: NodeJS.ErrnoException) => {
    if (AppError.is(error) || error.code !== "ENOENT") throw error;
    throw new AppError("not-found", t("The folder {0} does not exist: correct the path in seesaw.yaml.", folder));
  });
  return found;
}

/** Files that the arguments name as whole texts (`chat_template_path: template.jinja`), absolute or from where the training starts. */
function namedFiles(values: readonly unknown[], root: string): string[] {
  const found: string[] = [];
  const visit = (value: unknown): void => {
    if (typeof value === "object" && value !== null) return void Object.values(value).forEach(visit);
    // A name without a dot or a separator is a word; a long text is no path.
    if (typeof value !== "string" || value.length > 4096 || !/[./\\]/.test(basename(value)) || /[\n\0]/.test(value)) return;
    const path = isAbsolutePath(value) ? value : joinPath(root, value);
    if (isFile(path)) found.push(path);
  };
  values.forEach(visit);
  return found;
}

function isFile(path: string): boolean {
  try {
    const info = statSync(path);
    return info.isFile() && info.size <= largest;
  } catch {
    return false;
  }
}
