import { statSync } from "node:fs";
import type { Stage } from "../domain/pipeline/pipelineModel.ts";
import { joinPath } from "../util/paths.ts";

/** A word of a command that names a larger file names its data, not its program. */
const largest = 16 << 20;

/**
 * The files that a stage's own command names in its words (`train.py`, `config.yaml`): with one of them changed, the
 * stage is no longer up to date. What those files read in turn is not known.
 */
export function commandFiles({ recipe, options }: Pick<Stage, "recipe" | "options">, root: string): string[] {
  if (recipe !== "command") return [];
  const { run, cwd } = options;
  const words = typeof run === "string" ? run.split(/[\s"'=;&|<>()]+/) : Array.isArray(run) ? run.filter((word) => typeof word === "string").flatMap((word) => [word, word.slice(word.indexOf("=") + 1)]) : [];
  const base = typeof cwd === "string" ? cwd : root;
  const files = words.filter((word) => word !== "" && !word.startsWith("-") && !word.includes("{")).map((word) => joinPath(base, word));
  return [...new Set(files)].filter(isSmallFile).sort();
}

function isSmallFile(path: string): boolean {
  try {
    const info = statSync(path);
    return info.isFile() && info.size <= largest;
  } catch {
    return false;
  }
}
