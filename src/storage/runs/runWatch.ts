import { watch, type FSWatcher } from "node:fs";
import type { FlagChecks } from "../../domain/run/checkedFlag.ts";
import type { RemoteState } from "../../domain/run/runState.ts";
import type { RunListing } from "./runStore.ts";

/** Changes that come together are reported once, in ms. */
const settleMs = 50;
/** Files whose changes are no news by themselves: locks, what is being written, and when a machine was last heard of. Polling sees what they say. */
const quiet = /^\.|^mirror\.json$/;
/** At most so many live runs are watched by the system; the others are only polled. */
const mostWatched = 16;

/**
 * Calls back when the listing changed: by the system's file events where there are any, by polling where there are none
 * (network disks) and for what makes no event (a training that died). Returns the stop function.
 */
export function watchRuns(folder: string, list: () => Promise<RunListing>, onChange: () => void, pollMs: number): () => void {
  const watchers = new Map<string, FSWatcher>();
  let timer: NodeJS.Timeout | undefined;
  let last: string | undefined;
  let checking = false;
  let again = false;
  let stopped = false;

  const schedule = (ms: number): void => {
    clearTimeout(timer);
    if (!stopped) timer = setTimeout(() => void check(), ms);
  };
  const noticed = (): void => {
    if (checking) again = true;
    else schedule(settleMs);
  };
  const check = async (): Promise<void> => {
    checking = true;
    again = false;
    const listing = await list().catch(() => null);
    checking = false;
    if (stopped) return;
    if (listing !== null) {
      follow(listing);
      const now = signature(listing);
      const changed = last !== undefined && last !== now;
      last = now;
      if (changed) onChange();
    }
    schedule(again ? settleMs : pollMs);
  };
  const follow = (listing: RunListing): void => {
    const live = listing.runs.filter((run) => run.state.reason === null).slice(0, mostWatched).map((run) => run.dir);
    const wanted = new Set([folder, ...live]);
    for (const [path, watcher] of watchers) {
      if (wanted.has(path)) continue;
      watcher.close();
      watchers.delete(path);
    }
    for (const path of wanted) {
      if (watchers.has(path)) continue;
      try {
        const watcher = watch(path, (_event, name) => {
          if (name === null || !quiet.test(name)) noticed();
        });
        watcher.on("error", () => {
          watcher.close();
          watchers.delete(path);
        });
        watchers.set(path, watcher);
      } catch {
        // Not there yet, or no more watches to be had: polling sees it.
      }
    }
  };

  void check();
  return () => {
    stopped = true;
    clearTimeout(timer);
    for (const watcher of watchers.values()) watcher.close();
    watchers.clear();
  };
}

/** Differs whenever something a person sees of the runs differs. */
function signature(listing: RunListing): string {
  const runs = listing.runs.map(({ id, state, checked }) => `${id} ${state.attempt} ${state.lastSeq} ${state.status} ${state.badLines} ${state.missingSeqs.length}${remoteMark(state.remote)}${checkedMark(checked)}`);
  return [...runs, ...listing.unreadable.map((run) => `${run.id} ${run.message}`)].join("\n");
}

function checkedMark(checked: FlagChecks | undefined): string {
  return [...(checked ?? [])].map(([skill, check]) => ` ${skill} ${"problem" in check ? check.problem : `${check.t} ${check.step} ${check.found.n} ${check.found.p}`}`).join("");
}

/** Not when the target was heard last: that changes all the time and is shown by nobody who waits for changes. */
function remoteMark(remote: RemoteState | null): string {
  if (remote === null) return "";
  const { job, word, unreachable, complete } = remote;
  return ` ${job} ${word?.state} ${word?.reason} ${word?.nodes} ${unreachable?.message} ${complete}`;
}
