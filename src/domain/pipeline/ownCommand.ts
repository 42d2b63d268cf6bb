import type { Stage } from "./pipelineModel.ts";
import { shellText } from "../../util/shellText.ts";

/** A program of the person's own that a stage starts, as `seesaw.yaml` writes it. */
export interface OwnCommand {
  /** The shell line, or the words of the list; placeholders such as `{start}` stand as they are written. */
  line: string;
  /** True for a line that a shell reads. */
  shell: boolean;
  /** Where it runs; null: the folder of `seesaw.yaml`. */
  cwd: string | null;
}

/** What a stage of the recipe `command` starts; null for the other recipes. A person sees it before it runs. */
export function ownCommand({ recipe, options }: Pick<Stage, "recipe" | "options">): OwnCommand | null {
  if (recipe !== "command") return null;
  const { run, cwd } = options;
  const line = typeof run === "string" ? run : Array.isArray(run) ? shellText(run.map(String)) : "";
  return { line, shell: typeof run === "string", cwd: typeof cwd === "string" ? cwd : null };
}
