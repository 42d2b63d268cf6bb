/** `<root>/.seesaw/queue.json`: the stages of one pipeline that wait for their turn. Kept by whichever window changes it. */
export interface QueueFile {
  v: 1;
  /** The machine and its boot on which a person asked for this: elsewhere, or after a restart, nothing starts by itself. */
  where: string;
  waiting: WaitingStage[];
  /** The runs that what waits was put behind: paths from the root. How they end decides whether it goes on. */
  behind: { run: string; stage: string }[];
  paused: { why: string; run: string | null } | null;
  /** The stage that is being started, and by which process: it has no run folder yet. */
  starting: StartingStage | null;
}

export interface WaitingStage {
  stage: string;
  /** Seconds since 1970 when it was asked for: the order among several pipelines. */
  t: number;
  /** Id of the run to go on with, instead of a new one. */
  resume: string | null;
}

export interface StartingStage extends WaitingStage {
  /** When it began, seconds since 1970. */
  since: number;
  owner: { host: string; boot: string; pid: number; start: number | null };
}

export const queueVersion = 1;

/** What reading the file gave: `newer` must be left alone, `damaged` is set aside. */
export type QueueReading = { kind: "ok"; queue: QueueFile } | { kind: "newer"; version: number } | { kind: "damaged"; why: string };

export function newQueue(where: string): QueueFile {
  return { v: queueVersion, where, waiting: [], behind: [], paused: null, starting: null };
}

/** Reads the file's text. Unknown keys of a newer minor version are dropped; whatever is not as it should be is damage. */
export function parseQueue(text: string): QueueReading {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: "damaged", why: "it is not JSON" };
  }
  if (!isObject(value)) return { kind: "damaged", why: "it is not an object" };
  const { v, where, waiting, behind, paused, starting } = value;
  if (typeof v === "number" && v > queueVersion) return { kind: "newer", version: v };
  if (v !== queueVersion) return { kind: "damaged", why: "it says no version" };
  if (typeof where !== "string") return { kind: "damaged", why: "`where` is no text" };
  const stages = list(waiting, waitingStage);
  const runs = list(behind, behindRun);
  if (stages === null) return { kind: "damaged", why: "`waiting` is no list of stages" };
  if (runs === null) return { kind: "damaged", why: "`behind` is no list of runs" };
  const pause = paused === null ? null : pausedBy(paused);
  if (pause === undefined) return { kind: "damaged", why: "`paused` is not what it should be" };
  const begun = starting === null ? null : startingStage(starting);
  if (begun === undefined) return { kind: "damaged", why: "`starting` is not what it should be" };
  return { kind: "ok", queue: { v: queueVersion, where, waiting: stages, behind: runs, paused: pause, starting: begun } };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function list<T>(value: unknown, read: (one: unknown) => T | undefined): T[] | null {
  if (!Array.isArray(value)) return null;
  const all = value.map(read);
  return all.every((one) => one !== undefined) ? (all as T[]) : null;
}

function waitingStage(value: unknown): WaitingStage | undefined {
  if (!isObject(value) || typeof value["stage"] !== "string" || typeof value["t"] !== "number") return undefined;
  const resume = value["resume"] ?? null;
  return resume === null || typeof resume === "string" ? { stage: value["stage"], t: value["t"], resume } : undefined;
}

function behindRun(value: unknown): { run: string; stage: string } | undefined {
  return isObject(value) && typeof value["run"] === "string" && typeof value["stage"] === "string" ? { run: value["run"], stage: value["stage"] } : undefined;
}

function pausedBy(value: unknown): QueueFile["paused"] | undefined {
  if (!isObject(value) || typeof value["why"] !== "string") return undefined;
  const run = value["run"] ?? null;
  return run === null || typeof run === "string" ? { why: value["why"], run } : undefined;
}

function startingStage(value: unknown): StartingStage | undefined {
  const stage = waitingStage(value);
  if (stage === undefined || !isObject(value) || typeof value["since"] !== "number" || !isObject(value["owner"])) return undefined;
  const { host, boot, pid, start } = value["owner"];
  if (typeof host !== "string" || typeof boot !== "string" || typeof pid !== "number" || (start !== null && typeof start !== "number")) return undefined;
  return { ...stage, since: value["since"], owner: { host, boot, pid, start } };
}
