import { t } from "./l10n.ts";

/** The candidate that `name` was most likely meant to be, or null when none is near. Case and `-`/`_` count little. */
export function nearest(name: string, candidates: Iterable<string>): string | null {
  let best: string | null = null;
  let bestDistance = Math.max(1, Math.floor(name.length / 3)) + 0.5;
  for (const candidate of candidates) {
    const distance = editDistance(fold(name), fold(candidate)) + (name === candidate ? 0 : 0.1);
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** ` Did you mean "x"?` with a leading blank, or nothing. */
export function didYouMean(name: string, candidates: Iterable<string>): string {
  const found = nearest(name, candidates);
  return found === null ? "" : t(" Did you mean \"{0}\"?", found);
}

function fold(text: string): string {
  return text.toLowerCase().replaceAll("_", "-");
}

/** Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment distance). */
function editDistance(a: string, b: string): number {
  let older: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1];
      let cost = Math.min((previous[j] as number) + 1, (row[j - 1] as number) + 1, (previous[j - 1] as number) + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) cost = Math.min(cost, (older[j - 2] as number) + 1);
      row.push(cost);
    }
    [older, previous] = [previous, row];
  }
  return previous[b.length] as number;
}
