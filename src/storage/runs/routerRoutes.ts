import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ProbeSet } from "../../domain/drift/driftSelection.ts";
import type { RoutedRow } from "../../domain/evaluation/evaluatedSystem.ts";
import { AppError, messageOf } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";

/**
 * Which expert answered each probe of a router's run (`router-routes.jsonl`); null where the run is of no router. `groupOf`:
 * the group of a probe, where rows have any.
 */
export async function readRoutes(runDir: string, groupOf?: (set: ProbeSet, line: number) => string | undefined): Promise<RoutedRow[] | null> {
  const path = join(runDir, "router-routes.jsonl");
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw unreadable(path, error);
  }
  try {
    return text.split("\n").filter((line) => line !== "").map((line) => {
      const { skill, split, line: place, picked, correct } = JSON.parse(line) as { skill: string; split: string; line: number; picked: string; correct?: Record<string, boolean> };
      const group = split === "id" || split === "ood" ? groupOf?.({ skill, split }, place) : undefined;
      return { key: `${skill}.${split}:${place}`, skill, split, picked, ...(correct !== undefined && { correct }), ...(group !== undefined && { group }) };
    });
  } catch (error) {
    throw unreadable(path, error);
  }
}

function unreadable(path: string, error: unknown): AppError {
  return new AppError("run-unreadable", t("{0} cannot be read ({1}): run the router's stage again to write it.", path, messageOf(error)), { cause: error });
}
