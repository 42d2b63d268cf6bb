import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/** Names one process for ever: a pid alone is reused. `start` is null where the system does not tell it (not Linux). */
export interface ProcessIdentity {
  host: string;
  boot: string;
  pid: number;
  start: number | null;
}

export function thisProcess(): ProcessIdentity {
  return { host: hostname(), boot: bootId(), pid: process.pid, start: processStart(process.pid) };
}

/** Whether exactly this process lives. A process of another host cannot be judged from here: undefined. */
export function isAlive(identity: ProcessIdentity): boolean | undefined {
  if (identity.host !== hostname()) return undefined;
  if (identity.boot !== bootId()) return false;
  if (identity.start !== null) return processStart(identity.pid) === identity.start;
  try {
    process.kill(identity.pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Ticks since boot at which a live process began; null when it is gone or a zombie, or without /proc. */
export function processStart(pid: number): number | null {
  try {
    const text = readFileSync(`/proc/${Math.trunc(pid)}/stat`, "latin1");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? null : Number(fields[19]);
  } catch {
    return null;
  }
}

/** This boot and, in it, this pid namespace: containers share a kernel, not process ids. Same text as agent.py's; empty without /proc. */
export function bootId(): string {
  try {
    return `${readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim()}/${readlinkSync("/proc/self/ns/pid")}`;
  } catch {
    return "";
  }
}
