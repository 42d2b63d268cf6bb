import { randomBytes } from "node:crypto";
import { basename, join } from "node:path";
import { lockOwner, tryLock, type LockOwner } from "../lockFile.ts";

/** The right to follow a run and to write its copy: of all windows and machines that see the folder, one has it. */
export interface Lease {
  /** Whether it is still ours: a laptop that slept may have lost it to another machine. */
  holds(): Promise<boolean>;
  release(): Promise<void>;
}

/** The lease of the run folder `dir`, or who has it. */
export async function takeLease(dir: string): Promise<Lease | LockOwner> {
  const path = join(dir, ".lease");
  // Of this taking alone: a later one by the same process is another.
  const token = `${basename(dir)}#${randomBytes(6).toString("hex")}`;
  for (;;) {
    const got = await tryLock(path, token);
    if (typeof got === "function") return { holds: async () => (await lockOwner(path))?.run === token, release: got };
    if (got !== null) return got;
  }
}
