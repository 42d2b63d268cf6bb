import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { AppError } from "../util/errors.ts";
import { t } from "../util/l10n.ts";
import { lockOwner, tryLock, type LockOwner } from "./lockFile.ts";

const chainPrefix = ".chain-";

/**
 * Takes `<runsDir>/.lock-<stage>`: of any number of windows exactly one gets it. Returns the function that releases it.
 * The others get AppError("already-running") naming the run that is being started. A lock whose owner died is taken over.
 */
export async function lockStage(runsDir: string, stage: string, run: string): Promise<() => Promise<void>> {
  const path = join(runsDir, `.lock-${stage}`);
  await mkdir(runsDir, { recursive: true });
  for (let tries = 0; tries < 20; tries++) {
    const got = await tryLock(path, run);
    if (typeof got === "function") return got;
    if (got !== null) throw new AppError("already-running", t("Stage `{0}` is just being started as {1} by process {2} on {3}.", stage, got.run, got.pid, got.host));
  }
  throw new AppError("internal", t("The lock {0} could not be taken: remove it if no other window starts this stage.", path));
}

/**
 * Tells every window that a chain is under way, also between two of its stages, when no run lives. Returns the function
 * that takes this back; a chain that dies takes it back as well.
 */
export async function holdChain(runsDir: string, stages: readonly string[]): Promise<() => Promise<void>> {
  try {
    await mkdir(runsDir, { recursive: true });
    const got = await tryLock(join(runsDir, `${chainPrefix}${process.pid}-${Date.now().toString(36)}`), stages.join(", "));
    if (typeof got === "function") return got;
  } catch {
    // A folder that cannot be written says so when a stage is started; a chain that is up to date needs no lock.
  }
  return async () => {};
}

/** What other processes are about to start in this folder: the stages they hold locks of, and chains. */
export async function startsElsewhere(runsDir: string): Promise<{ what: string; owner: LockOwner }[]> {
  const names = await readdir(runsDir).catch(() => []);
  const found: { what: string; owner: LockOwner }[] = [];
  for (const name of names) {
    const stage = /^\.lock-(?!new-)([\w-]+)$/.exec(name)?.[1];
    if (stage === undefined && !name.startsWith(chainPrefix)) continue;
    const owner = await lockOwner(join(runsDir, name));
    if (owner === null && stage === undefined) await rm(join(runsDir, name), { force: true });
    if (owner !== null && owner.pid !== process.pid) found.push({ what: stage === undefined ? `the chain ${owner.run} in a terminal` : stage, owner });
  }
  return found;
}

/** The processes that are at work on a chain in this folder, of this machine or another one that sees the folder. */
export async function chainOwners(runsDir: string): Promise<LockOwner[]> {
  const names = await readdir(runsDir).catch(() => []);
  const owners = await Promise.all(names.filter((name) => name.startsWith(chainPrefix)).map((name) => lockOwner(join(runsDir, name))));
  return owners.filter((owner) => owner !== null);
}
