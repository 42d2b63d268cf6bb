import { AppError } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";

/** Seeds that a stage is run with, each once, and how many of these runs may be under way at once (null: nobody said). */
export interface SeedList {
  seeds: number[];
  limit: number | null;
}

/** Each is a run folder that is watched; more is a slip of the pen. */
const mostSeeds = 256;
/** What every framework takes as a seed. */
const highest = 2 ** 32 - 1;

/** Seeds for people, in the order given: `0–4, 9`. */
export function seedsText(seeds: readonly number[]): string {
  const rows: number[][] = [];
  for (const seed of seeds) {
    const row = rows.at(-1);
    if (row?.at(-1) === seed - 1) row.push(seed);
    else rows.push([seed]);
  }
  return rows.map((row) => (row.length < 3 ? row.join(", ") : `${row[0]}–${row.at(-1)}`)).join(", ");
}

/** Why a text is no list of seeds, as a sentence; null: it is one. */
export function seedsProblem(text: string): string | null {
  try {
    parseSeeds(text);
    return null;
  } catch (error) {
    if (AppError.is(error)) return error.message;
    throw error;
  }
}

/** Reads `0,1,2`, `0-4` or `0-4,7%2`. AppError("usage") with a sentence that says what is meant. */
export function parseSeeds(text: string): SeedList {
  const match = /^\s*([\d\s,-]+?)\s*(?:%\s*(\d+)\s*)?$/.exec(text);
  if (match === null) throw new AppError("usage", t("`{0}` is no list of seeds: write 0,1,2 or 0-4, and 0-4%2 for at most two runs at once.", text));
  const seeds = new Set<number>();
  for (const part of (match[1] ?? "").split(",")) {
    const [, first, last = first] = /^\s*(\d+)\s*(?:-\s*(\d+)\s*)?$/.exec(part) ?? [];
    if (first === undefined || last === undefined) throw new AppError("usage", t("`{0}` is no list of seeds: write 0,1,2 or 0-4, and 0-4%2 for at most two runs at once.", text));
    if (Number(first) > Number(last)) throw new AppError("usage", t("The seeds {0} run backwards: write {1}.", part.trim(), `${last}-${first}`));
    if (Number(last) > highest) throw new AppError("usage", t("Seed {0} is too large: seeds go up to {1}.", last, highest));
    if (Number(last) - Number(first) >= mostSeeds) throw new AppError("usage", t("`{0}` are more than {1} seeds.", text, mostSeeds));
    for (let seed = Number(first); seed <= Number(last); seed++) seeds.add(seed);
  }
  if (seeds.size > mostSeeds) throw new AppError("usage", t("`{0}` are more than {1} seeds.", text, mostSeeds));
  const limit = match[2] === undefined ? null : Number(match[2]);
  if (limit === 0) throw new AppError("usage", t("`{0}` lets no run start: write at least %1.", text));
  return { seeds: [...seeds], limit };
}
