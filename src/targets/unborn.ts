import { existsSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { attemptName, runsFolder, type RunStore } from "../storage/runs/runStore.ts";
import type { Log } from "../util/log.ts";
import { readRemote } from "./remote/remoteFolder.ts";

/** Removes run folders of a stage whose launcher died before it had started an agent. Only under the stage's lock. */
export async function dropUnborn(runs: RunStore, root: string, stage: string, log: Log): Promise<void> {
  const runsDir = runsFolder(root);
  for (const name of await readdir(runsDir)) {
    if (name.startsWith(`.new-${stage}-`)) await rm(join(runsDir, name), { recursive: true, force: true });
  }
  for (const run of (await runs.list(root)).runs) {
    if (run.stage !== stage || run.state.lastSeq > 0) continue;
    // What was asked for on another machine may be there: only its target can tell, and its supervisor asks.
    if ((await readRemote(run.dir))?.attempts.some(({ state }) => state !== "prepared") === true) continue;
    const attempts = await attemptNumbers(run.dir);
    if (attempts.length > 1 || existsSync(join(run.dir, attemptName(1), "claim"))) continue;
    log.warn(`Removed ${run.dir}: its start was interrupted before anything ran.`);
    await rm(run.dir, { recursive: true, force: true });
  }
}

/** Numbers of the attempt folders, ascending. */
export async function attemptNumbers(dir: string): Promise<number[]> {
  const names = await readdir(dir);
  return names.flatMap((name) => /^attempt-(\d{4})$/.exec(name)?.[1] ?? []).map(Number).sort((a, b) => a - b);
}
