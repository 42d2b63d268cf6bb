import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isAlive, processStart, thisProcess, bootId, type ProcessIdentity } from "../../../src/storage/runs/processIdentity.ts";
import { run } from "../../../src/targets/spawn.ts";

/**
 * Everything these tests leave on the machine for a while (processes, namespaces, mounts …) is written down here before it is
 * used and crossed out when it is gone. What a test that crashed or timed out left is ended by the next one (`sweep`), by the
 * identity that was written down, never by a name.
 */
export type Leftover =
  | { kind: "process"; pid: number; start: number | null; boot: string; what: string }
  /** A target's folder: the agents and trainings that its run folders name are ended. */
  | { kind: "runs"; dir: string }
  | { kind: "namespace"; name: string }
  | { kind: "mount"; path: string }
  | { kind: "cgroup"; path: string }
  | { kind: "folder"; path: string };

interface Entry {
  owner: ProcessIdentity;
  left: Leftover;
}

export const repo = join(import.meta.dirname, "../../..");
/** One folder for all test files of this checkout. */
export const stateDir = join(repo, ".cache", "targets");
const entries = join(stateDir, "left");

/** In this order: what uses something goes before it. */
const order: readonly Leftover["kind"][] = ["process", "runs", "namespace", "mount", "cgroup", "folder"];

/** Writes down what is about to exist; the function undoes it and crosses it out. Safe to call twice. */
export function leave(left: Leftover): () => Promise<void> {
  mkdirSync(entries, { recursive: true });
  const file = join(entries, `${process.pid}-${randomBytes(6).toString("hex")}.json`);
  writeFileSync(file, JSON.stringify({ owner: thisProcess(), left } satisfies Entry));
  return async () => {
    await undo(left);
    rmSync(file, { force: true });
  };
}

/** Undoes what owners that no longer live have left. Says what it found. */
export async function sweep(): Promise<string[]> {
  const found: { file: string; left: Leftover }[] = [];
  for (const name of list(entries)) {
    const file = join(entries, name);
    try {
      const { owner, left } = JSON.parse(readFileSync(file, "utf8")) as Entry;
      if (isAlive(owner) !== true) found.push({ file, left });
    } catch {
      rmSync(file, { force: true }); // half written by a process that was killed in that moment: it had made nothing yet
    }
  }
  const there = found.filter(({ left }) => isThere(left));
  found.sort((a, b) => order.indexOf(a.left.kind) - order.indexOf(b.left.kind));
  for (const { file, left } of found) {
    await undo(left);
    rmSync(file, { force: true });
  }
  return there.map(({ left }) => describe(left));
}

/** Whether there is anything to say about it: some owners take their things back themselves, in their last moment. */
function isThere(left: Leftover): boolean {
  return left.kind === "process" ? lives(left) : left.kind !== "folder" || existsSync(left.path);
}

function describe(left: Leftover): string {
  if (left.kind === "process") return `${left.what} (process ${left.pid})`;
  if (left.kind === "namespace") return `namespace ${left.name}`;
  return `${left.kind} ${left.kind === "runs" ? left.dir : left.path}`;
}

async function undo(left: Leftover): Promise<void> {
  switch (left.kind) {
    case "process":
      return endProcess(left);
    case "runs":
      return endRuns(left.dir);
    case "namespace":
      await run(["ip", "netns", "del", left.name], { timeout: 20_000 });
      return;
    case "mount":
      await run(["umount", "-l", left.path], { timeout: 20_000 });
      return;
    case "cgroup":
      try {
        rmdirSync(left.path);
      } catch {
        // gone, or something in it still ends
      }
      return;
    case "folder":
      rmSync(left.path, { recursive: true, force: true, maxRetries: 5 });
  }
}

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** The identity of a living process; null when it is gone. */
export function identify(pid: number): { pid: number; start: number | null; boot: string } | null {
  const start = processStart(pid);
  return start === null ? null : { pid, start, boot: bootId() };
}

const lives = ({ pid, start, boot }: { pid: number; start: number | null; boot: string }): boolean => boot === bootId() && start !== null && processStart(pid) === start;

/** Ends a process that was identified before, and what it has started meanwhile. Gently first; waits until it is gone. */
export async function endProcess(who: { pid: number; start: number | null; boot: string }, gentleMs = 5_000): Promise<void> {
  if (!lives(who)) return;
  const all = [who, ...descendants(who.pid)];
  for (const [signal, patience] of [["SIGTERM", gentleMs], ["SIGKILL", 10_000]] as const) {
    for (const one of all) signalIt(one, signal);
    const deadline = Date.now() + patience;
    while (all.some(lives) && Date.now() < deadline) await sleep(20);
    if (!all.some(lives)) return;
  }
}

/** Sends a signal to exactly this process. */
export function signalIt(who: { pid: number; start: number | null; boot: string }, signal: NodeJS.Signals): void {
  if (!lives(who)) return;
  try {
    process.kill(who.pid, signal);
  } catch {
    // it ended in this moment
  }
}

/** All living processes that a process has started, directly or not. */
export function descendants(pid: number): { pid: number; start: number | null; boot: string }[] {
  const children = new Map<number, number[]>();
  for (const name of list("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const text = readFileSync(`/proc/${name}/stat`, "latin1");
      const parent = Number(text.slice(text.lastIndexOf(")") + 2).split(" ")[1]);
      children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
    } catch {
      // it ended while we looked
    }
  }
  const found: number[] = [];
  const walk = (one: number): void => {
    for (const child of children.get(one) ?? []) {
      found.push(child);
      walk(child);
    }
  };
  walk(pid);
  return found.flatMap((one) => identify(one) ?? []);
}

/** Ends the agents and trainings of all run folders below a target's folder, by what their started.json says. */
async function endRuns(dir: string): Promise<void> {
  for (const name of list(join(dir, "runs"))) {
    for (const attempt of list(join(dir, "runs", name)).filter((one) => one.startsWith("attempt-"))) {
      try {
        const started = JSON.parse(readFileSync(join(dir, "runs", name, attempt, "started.json"), "utf8")) as Record<string, unknown>;
        const boot = String(started["boot"]);
        for (const [pid, start] of [["agent_pid", "agent_start"], ["pid", "start"]] as const) await endProcess({ pid: Number(started[pid]), start: Number(started[start]), boot }, 0);
      } catch {
        // it never started
      }
    }
  }
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
