import { readFile, stat } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import type { AttemptProbe, StartedFile } from "../../protocol/attempt.ts";
import { bootId, processStart } from "./processIdentity.ts";

/**
 * Tells from the files of an attempt and from /proc whether it still runs, as `agent.py probe` does, but without starting
 * Python. A process is (host, boot and pid namespace, pid, start time), never a pid alone.
 */

/** What can be known of an attempt from here. */
export interface LocalAttempt {
  /** null: its processes cannot be seen from here (another host, or a system without /proc). */
  probe: AttemptProbe | null;
  cancelRequested: boolean;
  /** Seconds since the attempt's spec was written. */
  age: number;
  beatAge: number | null;
}

/** Looks at an attempt folder. Never throws: what cannot be read is not there. */
export async function lookAtAttempt(attemptDir: string, now: number = Date.now() / 1000): Promise<LocalAttempt> {
  const ageOf = async (name: string): Promise<number | null> => {
    const written = await stat(join(attemptDir, name)).catch(() => null);
    return written === null ? null : Math.max(0, now - written.mtimeMs / 1000);
  };
  const [exit, started, beatAge, cancelAge, claimAge, age] = await Promise.all([
    readObject(join(attemptDir, "exit.json")),
    readObject(join(attemptDir, "started.json")) as Promise<StartedFile | null>,
    ageOf("heartbeat"),
    ageOf("cancel"),
    ageOf("claim"),
    ageOf("spec.json"),
  ]);
  const boot = bootId();
  const facts = { cancelRequested: cancelAge !== null, age: claimAge ?? age ?? (await ageOf(".")) ?? 0, beatAge };
  const report = (state: AttemptProbe["state"]): LocalAttempt => ({ ...facts, probe: { state, now, boot, beat_age: beatAge, started, exit } });
  if (exit !== null) return report("exited");
  if (started === null) return report(claimAge === null ? "absent" : "claimed");
  if (boot === "" || started.host !== hostname()) return { ...facts, probe: null };
  if (started.boot !== boot) return sameKernel(started.boot, boot) ? { ...facts, probe: null } : report("lost:reboot-or-other-host");
  if (isAlive(started.agent_pid, started.agent_start)) return report("running");
  if (isAlive(started.pid, started.start)) return report("orphan");
  // The agent writes exit.json as its last act: it may have done so since we looked.
  const late = await readObject(join(attemptDir, "exit.json"));
  if (late !== null) return { ...facts, probe: { state: "exited", now, boot, beat_age: beatAge, started, exit: late } };
  return report("lost:no-exit-file");
}

/** Two pid namespaces of one boot: the processes of the other cannot be seen, so nothing is known of them. */
function sameKernel(a: string, b: string): boolean {
  return a.split("/")[0] === b.split("/")[0];
}

function isAlive(pid: number, start: number | string | null): boolean {
  return start !== null && processStart(pid) === Number(start);
}

async function readObject(path: string): Promise<Record<string, unknown> | null> {
  try {
    const value: unknown = JSON.parse(await readFile(path, "utf8"));
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
