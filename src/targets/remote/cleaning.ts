import { existsSync } from "node:fs";
import { readFile, readdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { cleaningPlan, spentRuns, type Spent, type StoredRun } from "../../domain/targets/cleaning.ts";
import type { CleaningPlan, StoreCleared, StoreItem } from "../../protocol/cleaning.ts";
import type { RemoteSettings } from "../../protocol/remote.ts";
import type { RunRecord, RunStore } from "../../storage/runs/runStore.ts";
import { AppError } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { writeJson } from "../local.ts";
import type { RemoteTarget } from "./port.ts";
import { machineOf, readRemote } from "./remoteFolder.ts";

/** In the local run folder of a run that was removed from its target: nothing of it can be fetched or resumed. */
const cleanedName = "cleaned.json";

export interface Cleaning {
  root: string;
  runs: RunStore;
  target: RemoteTarget;
  settings: RemoteSettings;
}

/** What of this workspace's runs, and of what all runs share, could be removed from a target. Nothing is changed there. */
export async function planCleaning(about: Cleaning, signal?: AbortSignal): Promise<CleaningPlan> {
  const { target, settings } = about;
  const { spent, stored } = await lookHere(about);
  return cleaningPlan(settings.id, target.address, spent, await target.survey(spent.spent, signal), stored);
}

/**
 * Removes what a person has said yes to, as far as it may still go: what this workspace needs is looked up anew, and the target
 * decides anew about the rest.
 */
export async function clean(about: Cleaning, items: readonly StoreItem[], signal?: AbortSignal): Promise<StoreCleared> {
  const { spent, records } = await lookHere(about);
  const asked = new Set(items.flatMap(({ kind, name }) => (kind === "runs" ? [name] : [])));
  const cleared = await about.target.clear(spent.spent.filter((id) => asked.has(id)), items, signal);
  for (const { kind, name } of [...cleared.removed, ...cleared.failed]) if (kind === "runs") await note(records, name, about.settings.id);
  return cleared;
}

/** AppError("not-found") where a run was removed from its target: its weights are gone. */
export async function mustBeThere(runDir: string): Promise<void> {
  const text = await readFile(join(runDir, cleanedName), "utf8").catch(() => null);
  if (text === null) return;
  const { target = "?" } = JSON.parse(text) as { target?: string };
  throw new AppError("not-found", t("Run {0} was removed from `{1}` when it was cleaned up: what was copied of it is kept, its weights are gone. Start the stage again.", basename(runDir), target));
}

/** Asks nobody: a target whose disk is full would answer no other question than what could go. */
async function lookHere({ root, runs, settings }: Cleaning): Promise<{ spent: Spent; stored: StoredRun[]; records: readonly RunRecord[] }> {
  const { runs: records, unreadable } = await runs.list(root);
  const stored: StoredRun[] = [];
  for (const run of records) {
    const remote = await readRemote(run.dir);
    const there = remote !== null && machineOf(remote.settings) === machineOf(settings) && (remote.settings.dir === settings.dir || remote.dir === `${settings.dir}/runs/${run.id}`);
    const { stage, state, spec } = run;
    stored.push({
      id: run.id, stage, seed: spec.seed, there, text: JSON.stringify(spec),
      done: state.status === "done",
      complete: state.remote?.complete === true && state.reason !== null,
      cleaned: existsSync(join(run.dir, cleanedName)),
    });
  }
  // One that cannot be shown may need others all the same.
  for (const { dir: folder, id } of unreadable) stored.push({ id, stage: id, seed: 0, done: false, there: false, complete: false, cleaned: false, text: await readFile(join(folder, "run.json"), "utf8").catch(() => "") });
  return { spent: spentRuns(stored, await pipelineTexts(root)), stored, records };
}

/** Every pipeline file beside this one's: all work with the same run folders. */
async function pipelineTexts(root: string): Promise<string[]> {
  const names = (await readdir(root)).filter((name) => /\.ya?ml$/.test(name));
  return Promise.all(names.map((name) => readFile(join(root, name), "utf8").catch(() => "")));
}

async function note(records: readonly RunRecord[], id: string, target: string): Promise<void> {
  const run = records.find((one) => one.id === id);
  if (run !== undefined) await writeJson(join(run.dir, cleanedName), { v: 1, target, at: Date.now() / 1000 });
}
