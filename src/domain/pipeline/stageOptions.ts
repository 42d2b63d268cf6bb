import type { RawStage } from "./pipelineDefaults.ts";
import { isAbsolutePath, joinPath } from "../../util/paths.ts";
import { pointerOf } from "./yamlSource.ts";

/** A checkpoint that a recipe's options name, besides the one the stage starts from. */
export interface Reference {
  /** As written: `math`, `math@40`, `base` or a folder. */
  name: string;
  /** Where it stands in the stage, as a JSON pointer. */
  pointer: string;
}

/** What a reference means. */
export type ReferenceTarget = { kind: "base" } | { kind: "stage"; stage: string; step: number | null } | { kind: "folder"; path: string };

/** Options that name one checkpoint; `start` is the stage's own start and no reference. */
const single = ["reference", "labeller", "base"];
/** Options that name one for each key, or a list of them. */
const several = ["teachers", "oracles", "experts", "models"];

/** Every checkpoint that the options of a stage name, in the order of the file. */
export function referencesOf(stage: Pick<RawStage, "options" | "recipe">): Reference[] {
  const options = stage.options ?? {};
  const found: Reference[] = [];
  const add = (name: unknown, ...path: (string | number)[]): void => {
    if (typeof name === "string" && name !== "start") found.push({ name, pointer: pointerOf("options", ...path) });
  };
  for (const option of single) add(options[option], option);
  for (const option of several) {
    const value = options[option];
    if (typeof value !== "object" || value === null) continue;
    for (const [key, item] of Object.entries(value as Record<string, unknown>)) {
      const weighted = (item as { model?: unknown } | null)?.model;
      // An endpoint has a `model` too, which is a name over there.
      const remote = typeof item === "object" && item !== null && "endpoint" in item;
      if (typeof item === "string") add(item, option, key);
      else if (!remote) add(weighted, option, key, "model");
    }
  }
  // Task vectors are measured from the base model unless the stage says otherwise.
  if (stage.recipe === "merge" && options["base"] === undefined) found.push({ name: "base", pointer: pointerOf("options") });
  return found;
}

/** What a reference means in a pipeline with these stages; null where it is neither a stage nor looks like a path. */
export function referenceTarget(name: string, stages: readonly string[], root: string): ReferenceTarget | null {
  if (name === "base") return { kind: "base" };
  const [, stage, step] = /^(.*?)(?:@(\d+))?$/.exec(name) ?? [];
  if (stage !== undefined && stages.includes(stage)) return { kind: "stage", stage, step: step === undefined ? null : Number(step) };
  if (isAbsolutePath(name) || /[\\/]/.test(name)) return { kind: "folder", path: joinPath(root, name) };
  return null;
}

/** The options with every path absolute. Paths are `cwd`, `path` of a reward or check, and the files of `paraphrases`. */
export function absoluteOptions(options: Readonly<Record<string, unknown>>, root: string): Record<string, unknown> {
  const at = (path: unknown): unknown => (typeof path === "string" ? joinPath(root, path) : path);
  const withPath = (value: unknown): unknown => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
    const block = value as Record<string, unknown>;
    return { ...block, ...("path" in block && { path: at(block["path"]) }), ...("check" in block && { check: withPath(block["check"]) }) };
  };
  const result: Record<string, unknown> = { ...options };
  if ("cwd" in result) result["cwd"] = at(result["cwd"]);
  if ("check" in result) result["check"] = withPath(result["check"]);
  if (Array.isArray(result["rewards"])) result["rewards"] = result["rewards"].map(withPath);
  if (typeof result["paraphrases"] === "object" && result["paraphrases"] !== null) {
    result["paraphrases"] = Object.fromEntries(Object.entries(result["paraphrases"]).map(([skill, path]) => [skill, at(path)]));
  }
  return result;
}
