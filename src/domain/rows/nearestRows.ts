/** A text to find others like it, or to be found. */
export interface NearRow<T> {
  row: T;
  text: string;
}

/**
 * The rows most like any of `wanted`, best first: cosine of TF-IDF over words and numbers, with the document frequencies of the rows
 * themselves. Rows that share no word are left out.
 */
export function nearestRows<T>(wanted: readonly string[], rows: readonly NearRow<T>[], most: number): { row: T; similarity: number }[] {
  const documents = rows.map(({ text }) => counts(text));
  const frequency = new Map<string, number>();
  for (const document of documents) for (const word of document.keys()) frequency.set(word, (frequency.get(word) ?? 0) + 1);
  const weigh = (words: ReadonlyMap<string, number>): Map<string, number> => {
    const weights = new Map([...words].map(([word, count]) => [word, (1 + Math.log(count)) * (1 + Math.log((1 + rows.length) / (1 + (frequency.get(word) ?? 0))))]));
    const length = Math.hypot(...weights.values());
    return length === 0 ? weights : new Map([...weights].map(([word, weight]) => [word, weight / length]));
  };
  const vectors = documents.map(weigh);
  const asked = wanted.map((text) => weigh(counts(text)));
  const scored = rows.map(({ row }, index) => ({ row, index, similarity: Math.max(0, ...asked.map((vector) => cosine(vector, vectors[index] as Map<string, number>))) }));
  return scored.filter(({ similarity }) => similarity > 0).sort((a, b) => b.similarity - a.similarity || a.index - b.index).slice(0, most).map(({ row, similarity }) => ({ row, similarity }));
}

function counts(text: string): Map<string, number> {
  const found = new Map<string, number>();
  for (const word of text.toLowerCase().match(/[\p{L}\p{M}]+|\p{N}+/gu) ?? []) found.set(word, (found.get(word) ?? 0) + 1);
  return found;
}

function cosine(a: ReadonlyMap<string, number>, b: ReadonlyMap<string, number>): number {
  let sum = 0;
  for (const [word, weight] of a) sum += weight * (b.get(word) ?? 0);
  return sum;
}
