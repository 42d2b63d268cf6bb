import { readFile } from "node:fs/promises";
import { gunzipSync } from "node:zlib";
import { maxUnpacked } from "./rowSource.ts";
import { sha256Hex } from "./sha256.ts";

/** The `group` of each row of a probe file, by line (from 1), and the hash of the file they are from. */
export interface RowGroups {
  sha256: string;
  groups: Map<number, string>;
}

/** Rows without a `group` (a text or a number) have none. A file that is no JSON Lines has none at all. */
export async function readRowGroups(path: string): Promise<RowGroups> {
  const bytes = await readFile(path);
  const found: RowGroups = { sha256: sha256Hex(bytes), groups: new Map() };
  const text = (bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes, { maxOutputLength: Math.min(maxUnpacked, 2 ** 30) }) : bytes).toString("utf8");
  if (!text.includes('"group"')) return found;
  text.replace(/^\uFEFF/, "").split("\n").forEach((line, index) => {
    try {
      const { group } = JSON.parse(line) as { group?: unknown };
      if (typeof group === "string" || typeof group === "number") found.groups.set(index + 1, String(group));
    } catch {
      // No row: what is wrong with it is said where rows are read for their content.
    }
  });
  return found;
}
