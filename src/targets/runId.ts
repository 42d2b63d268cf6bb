import { randomBytes } from "node:crypto";

/** `YYYYMMDDTHHMMSS-xxxx`, UTC: ids of one stage sort by time. */
export function newRunId(stage: string, now: Date = new Date(), random = randomBytes(2).toString("hex")): string {
  return `${stage}-${now.toISOString().slice(0, 19).replace(/[-:]/g, "")}-${random}`;
}

/** So many ids of one moment, no two alike. */
export function newRunIds(stage: string, count: number, now: Date = new Date()): string[] {
  const ids = new Set<string>();
  while (ids.size < count) ids.add(newRunId(stage, now));
  return [...ids];
}

/** The stage and the UTC start time in a run folder's name, or null for a folder that is no run. */
export function parseRunId(name: string): { stage: string; time: string } | null {
  const match = /^(.+)-(\d{8}T\d{6})-[0-9a-f]{4}$/.exec(name);
  return match ? { stage: match[1] ?? "", time: match[2] ?? "" } : null;
}
