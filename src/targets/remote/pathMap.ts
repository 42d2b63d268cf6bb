import { createHash } from "node:crypto";
import type { RunSpec } from "../../protocol/runSpec.ts";
import { baseName, dirName } from "../../util/paths.ts";
import type { FileHash } from "../hashFiles.ts";

/** A model folder: to be sent, or on the target already. `folder` is what is sent, which of an adapter is a copy with the target's paths. */
export type PlannedModel = { kind: "send"; folder: string; sha256: string; bytes: number } | { kind: "there"; remote: string };

/** Files that keep their place below a folder: the pipeline's own, or `folders`, which lie elsewhere. */
export interface PlannedTree {
  files: readonly FileHash[];
  /** Absolute, none inside the root. */
  folders: readonly string[];
}

export interface PathMapParts {
  spec: Pick<RunSpec, "id" | "pipeline">;
  where: { dir: string };
  objects: readonly FileHash[];
  tree: PlannedTree;
  models: ReadonlyMap<string, PlannedModel>;
}

/** Paths of this machine as paths of a target. What stays below the root keeps its place below `work`, where the training starts. */
export class PathMap {
  /** The pipeline's folder on the target, one for each run: what a command writes there is no other run's. */
  readonly work: string;
  private readonly dir: string;
  private readonly root: string;
  private readonly exact = new Map<string, string>();
  private readonly outer: readonly string[];

  constructor({ spec, where, objects, tree, models }: PathMapParts) {
    this.dir = where.dir;
    this.work = `${where.dir}/work/${spec.id}`;
    this.root = spec.pipeline.root;
    const longest = (a: string, b: string): number => b.length - a.length;
    const named = tree.folders.filter((folder) => below(folder, this.root) === null).sort(longest);
    // A module's place is told from the folder that is named; a file of no such folder is alone with its neighbours.
    const alone = tree.files.filter(({ path }) => [this.root, ...named].every((folder) => below(path, folder) === null)).map(({ path }) => dirName(path));
    this.outer = [...named, ...[...new Set(alone)].sort(longest)];
    for (const file of objects) this.exact.set(file.path, this.object(file));
    for (const [folder, model] of models) this.exact.set(folder, this.model(model));
  }

  object({ path, sha256 }: FileHash): string {
    return `${this.dir}/objects/${sha256}/${baseName(path)}`;
  }

  model(model: PlannedModel): string {
    return model.kind === "there" ? model.remote : `${this.dir}/models/${model.sha256}`;
  }

  /** The path there of a path here; null for one that the target's run knows nothing of. */
  of(path: string): string | null {
    const exact = this.exact.get(path);
    if (exact !== undefined) return exact;
    const inside = below(path, this.root);
    if (inside !== null) return `${this.work}${inside}`;
    for (const folder of this.outer) {
      const rest = below(path, folder);
      if (rest !== null) return `${this.work}/outside/${hash(folder)}${rest}`;
    }
    return null;
  }

  /** A value with every path in it: texts that are one, end with one after `=`, or are a shell line with some in it. */
  deep<T>(value: T): T {
    if (typeof value === "string") return this.text(value) as T;
    if (Array.isArray(value)) return value.map((one: unknown) => this.deep(one)) as T;
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, this.deep(one as unknown)])) as T;
  }

  private text(text: string): string {
    const whole = this.of(text);
    if (whole !== null) return whole;
    const known = [...this.exact.keys(), this.root, ...this.outer].filter((path) => path.length > 1 && text.includes(path)).sort((a, b) => b.length - a.length)[0];
    if (known === undefined) return text;
    // One path after the other, each to its end: to a blank, a quote or what else cannot be part of it in a line.
    const at = text.indexOf(known);
    const before = text.slice(0, at);
    const path = /^[^\s"'`;&|<>()=,:]*/.exec(text.slice(at + known.length))?.[0] ?? "";
    const mapped = /[\w.~-]$/.test(before) ? null : this.of(known + path);
    const end = at + known.length + path.length;
    return before + (mapped ?? text.slice(at, end)) + this.text(text.slice(end));
  }
}

/** `/rest` of a path below a folder, `` for the folder itself; null for a path elsewhere. Always with `/`. */
function below(path: string, folder: string): string | null {
  if (path === folder) return "";
  const parent = folder.replace(/[\\/]+$/, "");
  if (!path.startsWith(parent) || !/^[\\/]/.test(path.slice(parent.length))) return null;
  return path.slice(parent.length).replaceAll("\\", "/");
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 12);
}
