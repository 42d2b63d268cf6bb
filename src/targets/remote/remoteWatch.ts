import { watch, type FSWatcher } from "node:fs";
import { readFile, readdir, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { isComplete, parseMirrorFile, parseRemoteFile } from "../../domain/run/remoteFiles.ts";
import type { RemoteSettings } from "../../protocol/remote.ts";
import { runsFolder } from "../../storage/runs/runStore.ts";
import { messageOf } from "../../util/errors.ts";
import type { Log } from "../../util/log.ts";
import type { Clock } from "./backoff.ts";
import type { RemoteTarget } from "./port.ts";
import type { Supervisor, Supervised } from "./supervisor.ts";

export interface RemoteWatchParts {
  /** Makes or finds the machine of a run; no connection is needed for that. */
  target: (settings: RemoteSettings) => Promise<RemoteTarget>;
  log: Log;
  clock?: Clock;
  askMs?: number;
  /** How often the folders are looked at, in ms; new runs are noticed at once where the system tells of them. */
  pollMs?: number;
}

/** What stands in the way of copying a run, on this machine. */
export interface RemoteTrouble {
  run: string;
  message: string;
}

interface Followed {
  supervisor: Promise<Supervisor>;
  stop: AbortController;
  done: Promise<Supervised>;
}

interface Root {
  /** How many asked for all runs, and for single ones. */
  all: number;
  single: Map<string, number>;
  /** Folders without anything to do, by the time stamp at which that was seen. */
  settled: Map<string, number>;
  watcher: FSWatcher | null;
  timer: NodeJS.Timeout | null;
  scanning: Promise<void> | null;
  again: boolean;
}

/**
 * Follows the runs of workspaces that are on other machines: each that is not complete has a supervisor while somebody
 * watches. A window watches whole workspaces, and only trusted ones; the command line the run it shows. The code that
 * follows is loaded with the first such run; without one, a look costs a time stamp a folder.
 */
export class RemoteWatch {
  private readonly parts: RemoteWatchParts;
  private readonly pollMs: number;
  private readonly roots = new Map<string, Root>();
  private readonly followed = new Map<string, Followed>();
  private readonly troubled = new Map<string, string>();
  private readonly listeners = new Set<() => void>();

  constructor(parts: RemoteWatchParts) {
    this.parts = parts;
    this.pollMs = parts.pollMs ?? 5_000;
  }

  /**
   * Follows the runs of `root`, or only `run`, until the returned function is called; it resolves when everything that was heard is on
   * disk. Who starts this vouches that the workspace is trusted: connections are made with what its folders say.
   */
  watch(root: string, run?: string): () => Promise<void> {
    const state = this.roots.get(root) ?? { all: 0, single: new Map<string, number>(), settled: new Map<string, number>(), watcher: null, timer: null, scanning: null, again: false };
    this.roots.set(root, state);
    if (run === undefined) state.all += 1;
    else state.single.set(run, (state.single.get(run) ?? 0) + 1);
    void this.scan(root, state);
    let stopped = false;
    return async () => {
      if (stopped) return;
      stopped = true;
      if (run === undefined) state.all -= 1;
      else state.single.set(run, (state.single.get(run) ?? 1) - 1);
      await this.release(root, state);
    };
  }

  /** Asks once how the runs of `root` (or only `run`) are, and resolves when each was heard or could not be reached. */
  async refresh(root: string, options: { run?: string; signal?: AbortSignal } = {}): Promise<void> {
    const { signal = new AbortController().signal } = options;
    const dirs = await this.open(root, null);
    const { Supervisor } = dirs.length === 0 ? { Supervisor: null } : await import("./supervisor.ts");
    if (Supervisor === null) return;
    await Promise.all(
      dirs.flatMap((dir) => {
        const unwanted = options.run !== undefined && dir !== join(runsFolder(root), options.run);
        return unwanted || this.followed.has(dir) ? [] : [new Supervisor({ ...this.parts, dir, once: true }).run(signal)];
      }),
    );
  }

  /** Tries again at once wherever it waits: after a login, or when a run was just started. */
  poke(root?: string): void {
    for (const [dir, { supervisor }] of this.followed) if (root === undefined || dir.startsWith(join(runsFolder(root), "/"))) void supervisor.then((one) => one.poke(), () => {});
    for (const [name, state] of this.roots) if (root === undefined || name === root) void this.scan(name, state);
  }

  /** What stands in the way on this machine, such as a full disk. */
  get troubles(): RemoteTrouble[] {
    return [...this.troubled].map(([dir, message]) => ({ run: basename(dir), message }));
  }

  /** Calls back when `troubles` changed; returns the stop function. */
  onTrouble(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  /** Ends all watching; resolves when everything that was heard is on disk. */
  async dispose(): Promise<void> {
    const all = [...this.roots];
    for (const [, state] of all) {
      state.all = 0;
      state.single.clear();
    }
    await Promise.all(all.map(([root, state]) => this.release(root, state)));
  }

  private async release(root: string, state: Root): Promise<void> {
    for (const [run, count] of state.single) if (count <= 0) state.single.delete(run);
    if (state.all === 0 && state.single.size === 0) {
      if (state.timer !== null) clearTimeout(state.timer);
      state.watcher?.close();
      [state.timer, state.watcher] = [null, null];
      this.roots.delete(root);
    }
    const mine = [...this.followed].filter(([dir]) => dir.startsWith(join(runsFolder(root), "/")) && !this.wants(root, state, dir));
    for (const [, { stop }] of mine) stop.abort();
    await Promise.all(mine.map(([, { done }]) => done));
  }

  private wants(root: string, state: Root, dir: string): boolean {
    return state.all > 0 || [...state.single.keys()].some((run) => dir === join(runsFolder(root), run));
  }

  private scan(root: string, state: Root): Promise<void> {
    if (state.scanning !== null) {
      state.again = true;
      return state.scanning;
    }
    if (this.roots.get(root) !== state) return Promise.resolve();
    state.scanning = this.look(root, state)
      .catch((error: unknown) => this.parts.log.debug(`${root}: ${messageOf(error)}`))
      .finally(() => {
        state.scanning = null;
        if (this.roots.get(root) !== state) return;
        if (state.timer !== null) clearTimeout(state.timer);
        state.timer = setTimeout(() => void this.scan(root, state), state.again ? 0 : this.pollMs);
        state.timer.unref();
        state.again = false;
      });
    return state.scanning;
  }

  private async look(root: string, state: Root): Promise<void> {
    this.notice(root, state);
    for (const dir of await this.open(root, state)) if (!this.followed.has(dir) && this.wants(root, state, dir)) this.follow(root, state, dir);
  }

  /** New runs appear by a rename in the folder of all runs. */
  private notice(root: string, state: Root): void {
    if (state.watcher !== null) return;
    try {
      state.watcher = watch(runsFolder(root), { persistent: false }, (event) => {
        if (event === "rename") void this.scan(root, state);
      });
      state.watcher.on("error", () => {
        state.watcher?.close();
        state.watcher = null;
      });
    } catch {
      // Not there yet: the next look tries again.
    }
  }

  /** Folders of runs on other machines of which something is still to come. What is settled is known by its time stamp. */
  private async open(root: string, state: Root | null): Promise<string[]> {
    const parent = runsFolder(root);
    const names = (await readdir(parent).catch(() => [])).filter((name) => !name.startsWith("."));
    const found: string[] = [];
    const seen = new Map<string, number>();
    for (const name of names) {
      const dir = join(parent, name);
      const stamp = (await stat(dir).catch(() => null))?.mtimeMs;
      if (stamp === undefined) continue;
      if (state?.settled.get(dir) === stamp) {
        seen.set(dir, stamp);
        continue;
      }
      const open = await isOpen(dir);
      if (open) found.push(dir);
      // A stamp may be coarser than two changes: what is young is looked into again.
      else if (Date.now() - stamp > 2_000) seen.set(dir, stamp);
    }
    if (state !== null) state.settled = seen;
    return found;
  }

  private follow(root: string, state: Root, dir: string): void {
    const stop = new AbortController();
    const supervisor = import("./supervisor.ts").then(({ Supervisor }) => new Supervisor({ ...this.parts, dir, onTrouble: (message) => this.tell(dir, message) }));
    const done = supervisor
      .then((one) => one.run(stop.signal))
      .then((end) => {
        if (end === "complete") setTimeout(() => void this.scan(root, state), 0); // it may have been resumed meanwhile
        return end;
      })
      .catch((error: unknown): Supervised => {
        this.parts.log.error(`${dir} is not followed any more: ${messageOf(error)}`);
        return "stopped";
      })
      .finally(() => {
        this.followed.delete(dir);
        this.tell(dir, null);
      });
    this.followed.set(dir, { supervisor, stop, done });
  }

  private tell(dir: string, message: string | null): void {
    if ((this.troubled.get(dir) ?? null) === message) return;
    if (message === null) this.troubled.delete(dir);
    else this.troubled.set(dir, message);
    for (const listener of this.listeners) listener();
  }
}

/** Whether a run is on another machine and something of it is still to come. What cannot be read is left alone until it changes. */
async function isOpen(dir: string): Promise<boolean> {
  const text = await readFile(join(dir, "remote.json"), "utf8").catch(() => null);
  if (text === null) return false;
  try {
    return !isComplete(parseRemoteFile(text), parseMirrorFile(await readFile(join(dir, "mirror.json"), "utf8").catch(() => "")));
  } catch {
    return false;
  }
}
