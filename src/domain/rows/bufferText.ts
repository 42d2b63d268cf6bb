import { formatCount, formatNumber, formatPlural } from "../format.ts";
import type { BufferCoverage, BufferNearness, ReplayRecord } from "./membership.ts";

/** What kept rows out of a buffer: `3 below the quality, 2 near-duplicates, 1 also a probe`. */
export function leftOutText({ quality, duplicate, probe }: NonNullable<ReplayRecord["dropped"]>): string {
  return `${formatCount(quality)} below the quality, ${formatCount(duplicate)} near-duplicates, ${formatCount(probe)} also a probe`;
}

/** How the rows of a stage were chosen and what that bought, in the distance of the rows left out to the nearest one kept. */
export function coverageText({ stage, method, features, mean, max, random }: BufferCoverage): string {
  const how = method === "k_center" ? "k-center" : method;
  const pair = (one: { mean: number; max: number }): string => `${formatNumber(one.mean, 3)} (at most ${formatNumber(one.max, 3)})`;
  return `${stage} by ${how} of ${features === "tfidf" ? "TF-IDF" : `${features} states`}: rows left out are ${pair({ mean, max })} from the nearest kept one; by chance it would be ${pair(random)}`;
}

/** What taking the nearest rows first bought. */
export function nearnessText({ stage, rows, mean, random }: BufferNearness): string {
  if (rows === 0) return `${stage}: no row is like those that near names`;
  return `${stage}: ${formatPlural(rows, "row")} taken first, of prompts ${formatNumber(mean, 3)} similar to the nearest that near names; by chance it would be ${formatNumber(random.mean, 3)}`;
}
