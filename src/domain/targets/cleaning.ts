import type { CleaningPlan, StoreItem, StoreSurvey } from "../../protocol/cleaning.ts";
import { t } from "../../util/l10n.ts";
import { formatBytes, formatPlural } from "../format.ts";

/** A run of this workspace, as far as it matters for what may be removed. */
export interface StoredRun {
  id: string;
  stage: string;
  seed: number;
  done: boolean;
  /** It lies on the target, below the folder that is cleaned. */
  there: boolean;
  /** It has ended there and everything but the weights was copied here. */
  complete: boolean;
  /** It was removed from its target before: it needs nothing any more. */
  cleaned: boolean;
  /** Its run.json as text: all that it was made of. */
  text: string;
}

export interface Spent {
  /** Runs that this workspace lets go of. */
  spent: string[];
  /** Its other runs there, and why they stay. */
  staying: { run: string; why: string }[];
}

/**
 * Which runs the workspace needs no more: those that have ended, with a newer one of the same stage and seed that is done, and
 * that nothing names: no run that stays, wherever it lies, and no seesaw.yaml. `runs` newest first.
 */
export function spentRuns(runs: readonly StoredRun[], pipelines: readonly string[]): Spent {
  const why = new Map<string, string>();
  const newest = new Set<string>();
  const done = new Set<string>();
  for (const run of runs) {
    const chain = `${run.seed} ${run.stage}`;
    if (run.there && !run.cleaned) {
      if (!run.complete) why.set(run.id, t("it has not ended, or not all of it was copied here"));
      else if (!newest.has(chain)) why.set(run.id, t("it is the newest run of {0}", run.stage));
      else if (!done.has(chain)) why.set(run.id, t("no newer run of {0} is done", run.stage));
      else if (pipelines.some((text) => text.includes(run.id))) why.set(run.id, t("seesaw.yaml names it"));
    }
    newest.add(chain);
    if (run.done) done.add(chain);
  }
  let going = new Set(runs.filter(({ id, there, cleaned }) => there && !cleaned && !why.has(id)).map(({ id }) => id));
  for (let before = -1; before !== going.size; ) {
    before = going.size;
    const users = runs.filter(({ id, cleaned }) => !cleaned && !going.has(id));
    for (const id of going) {
      const user = users.find(({ text }) => text.includes(id));
      if (user !== undefined) why.set(id, t("{0} was made from it", user.id));
    }
    going = new Set([...going].filter((id) => !why.has(id)));
  }
  return { spent: [...going], staying: runs.flatMap(({ id }) => (why.has(id) ? [{ run: id, why: why.get(id) ?? "" }] : [])) };
}

/** What the target says and what the workspace says, put together. */
export function cleaningPlan(target: string, address: string, { staying }: Spent, survey: StoreSurvey, runs: readonly StoredRun[]): CleaningPlan {
  const stageOf = new Map(runs.map(({ id, stage }) => [id, stage]));
  const items = survey.items.map(({ kind, name, bytes, why }) => ({ kind, name, bytes, why: reason(kind, name, why, stageOf.get(name) ?? name) }));
  const there = Object.entries(survey.staying).map(([run, { why, by = "" }]) => ({ run, why: why === "live" ? t("it has not ended there") : t("{0}, which lies there too, needs it", by) }));
  return {
    v: 1, target, address, dir: survey.dir, items, staying: [...staying, ...there], kept: survey.kept,
    bytes: bytesOf(items),
    notes: survey.closed.length === 0 ? [] : [t("{0} on {1} cannot be read, so it is not known what is needed there: no data, models and runners are removed.", survey.closed.join(", "), address)],
  };
}

function reason(kind: StoreItem["kind"], name: string, why: StoreSurvey["items"][number]["why"], stage: string): string {
  if (why === "left") return t("left by a removal that was interrupted");
  if (kind === "runs") return t("a newer run of {0} is done, and nothing names this one; its weights are gone then", stage);
  if (kind === "work") return why === "spent" ? t("the files that {0} brought along", name) : t("its run is not there any more");
  if (kind === "arrays") return t("none of its runs is there any more");
  return t("no run there names it, and nobody has asked for it for a day");
}

function bytesOf(items: readonly { bytes: number }[]): number {
  return items.reduce((sum, one) => sum + one.bytes, 0);
}

/** `12 GB in 3 runs and 5 other folders`. */
export function cleaningSum(items: readonly (StoreItem & { bytes: number })[]): string {
  const runs = items.filter(({ kind }) => kind === "runs").length;
  const others = items.length - runs;
  const parts = [runs > 0 ? formatPlural(runs, "run") : "", others > 0 ? formatPlural(others, "shared folder") : ""].filter(Boolean);
  return t("{0} in {1}", formatBytes(bytesOf(items)), parts.join(t(" and ")));
}

/** Runs first, then what takes most room. */
export function inOrder<T extends StoreItem & { bytes: number }>(items: readonly T[]): T[] {
  const rank = ({ kind }: StoreItem): number => (kind === "runs" ? 0 : 1);
  return [...items].sort((a, b) => rank(a) - rank(b) || b.bytes - a.bytes);
}

/** Hashes are told by their beginning; the name of a run is what a person knows it by. */
export function shortName(name: string): string {
  return /^[0-9a-f]{40,}$/.test(name) ? name.slice(0, 12) : name;
}

/** What a person calls it. */
export function kindText(kind: StoreItem["kind"]): string {
  switch (kind) {
    case "runs":
      return t("run");
    case "work":
      return t("files of a run");
    case "objects":
      return t("data");
    case "models":
      return t("model");
    case "runner":
      return t("runner");
    case "arrays":
      return t("job array");
  }
}
