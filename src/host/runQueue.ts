import { dirname, join, relative } from "node:path";
import { newQueue, type QueueFile, type StartingStage, type WaitingStage } from "../protocol/queueFile.ts";
import type { RunRecord } from "../storage/runs/runStore.ts";
import type { QueueStore } from "../targets/queueStore.ts";
import { AppError, messageOf } from "../util/errors.ts";
import { t } from "../util/l10n.ts";
import { append, judge, ownerOf, takeBack, wait } from "./queueEdits.ts";
import { isLive } from "./runWords.ts";

/** A stage that waits for its turn. */
export interface QueuedStage {
  /** The `seesaw.yaml`. */
  file: string;
  stage: string;
  /** Id of the run to go on with, instead of a new one. */
  resume?: string;
}

/** What the surfaces show of the queue. */
export interface QueueView {
  waiting: readonly QueuedStage[];
  /** Why nothing is started although nothing runs: a sentence; null while the queue goes on by itself. */
  paused: string | null;
}

export const emptyQueue: QueueView = { waiting: [], paused: null };

/** What the queue says of itself wherever it is shown. */
export function queueNote(): string {
  return t("All windows of this workspace share the queue, and it outlives them: while none is open, it waits.");
}

/** The place of a stage in the queue, from 1; null when it does not wait. */
export function queuePosition({ waiting }: QueueView, file: string, stage: string): number | null {
  const index = waiting.findIndex((one) => one.file === file && one.stage === stage);
  return index < 0 ? null : index + 1;
}

export interface QueueDeps {
  store: QueueStore;
  /** The `seesaw.yaml` files of the workspace. */
  files(): readonly string[];
  /** All runs of the workspace as they are known now. */
  runs(): readonly RunRecord[];
  /** Reads the runs again. */
  refresh(): Promise<void>;
  /** False where nothing may be started, as in a workspace that is not trusted: the queue is shown and stands still. */
  mayStart(): boolean;
  /** Starts a stage; resolves with its run folder once the run is among `runs()`. */
  start(stage: QueuedStage): Promise<string>;
  /** Tells the person a sentence: a file that was damaged, a change that could not be written. */
  say(sentence: string): void;
  changed(): void;
}

/** How often the file is looked at for what another window did, in ms. */
const lookMs = 1000;

/**
 * One local run at a time over all windows and the terminal: stages that were asked for while another run lives wait in the
 * pipeline's queue file, and start when it is done, in whichever window claims the turn first. A run that fails, is stopped
 * or vanishes pauses the queue: what waits usually starts from what it did not leave.
 */
export class RunQueue implements QueueView {
  private readonly deps: QueueDeps;
  /** The queue files as last read, by the pipeline's file. */
  private seen = new Map<string, QueueFile>();
  private stamps = "";
  /** What terminals and other windows are about to start. */
  private outside: string[] = [];
  /** A stage that this window is starting: it has no run folder yet, and counts as running. */
  private beginning: QueuedStage | null = null;
  private updating: Promise<void> | null = null;
  private again = false;
  private disposed = false;
  private timer: NodeJS.Timeout | undefined;
  private readonly said = new Set<string>();

  constructor(deps: QueueDeps) {
    this.deps = deps;
  }

  get waiting(): readonly QueuedStage[] {
    return this.entries().map(({ file, entry }) => queued(file, entry));
  }

  get paused(): string | null {
    for (const queue of this.seen.values()) {
      if (queue.waiting.length === 0) continue;
      if (queue.paused !== null) return t("The queue is paused: {0}.", queue.paused.why.replace(/[.。]$/, ""));
      if (queue.where !== this.deps.store.here) return t("The queue is paused: it was made on another machine, or before this one was restarted.");
    }
    return null;
  }

  /** The stage that is being started right now, in this window or another. */
  get starting(): QueuedStage | null {
    if (this.beginning !== null) return this.beginning;
    for (const [file, { starting }] of this.seen) if (starting !== null && this.deps.store.owns(starting) === "other") return queued(file, starting);
    return null;
  }

  /** What terminals are about to start, in a few words each. */
  get elsewhere(): readonly string[] {
    return this.outside;
  }

  /** True when a stage that is asked for now has to wait. */
  get busy(): boolean {
    return this.live().length > 0 || this.starting !== null || this.outside.length > 0;
  }

  /** The runs that stand in the way of another one: those of this machine, and what something in the queue waits for elsewhere. */
  live(): RunRecord[] {
    return this.deps.runs().filter(({ dir, spec, state }) => isLive(state.status) && (spec.target.kind === "local" || this.isAwaited(dir)));
  }

  private isAwaited(dir: string): boolean {
    return [...this.seen].some(([file, { waiting, behind }]) => waiting.length > 0 && behind.some(({ run }) => join(dirname(file), run) === dir));
  }

  /** True when this run's end is why the queue waits. */
  isPausedBy(dir: string): boolean {
    return [...this.seen].some(([file, { waiting, paused }]) => waiting.length > 0 && paused?.run != null && join(dirname(file), paused.run) === dir);
  }

  /** Looks at the files again and again, for what other windows do. */
  follow(): this {
    this.timer = setInterval(() => void this.look(), lookMs).unref();
    return this;
  }

  /** A window that closes starts nothing more; what it was starting goes on, or is taken over. */
  dispose(): void {
    this.disposed = true;
    clearInterval(this.timer);
  }

  /** Puts a stage at the end, behind the runs the person was shown; one that waits already keeps its place. Returns its position. */
  async add(item: QueuedStage, behind: readonly Pick<RunRecord, "dir" | "stage">[] = []): Promise<number> {
    await this.change(item.file, (queue) => this.append(queue, item, behind));
    await this.update();
    return queuePosition(this, item.file, item.stage) ?? 0;
  }

  async remove(file: string, stage: string): Promise<void> {
    await this.change(file, (queue) => void (queue.waiting = queue.waiting.filter((one) => one.stage !== stage)));
  }

  async clear(): Promise<void> {
    for (const file of this.filesThatWait()) await this.change(file, (queue) => void (queue.waiting = []));
  }

  /** Goes on after a pause. */
  async resume(): Promise<void> {
    for (const file of this.filesThatWait()) {
      await this.change(file, (queue) => Object.assign(queue, { paused: null, behind: [], where: this.deps.store.here }));
    }
    await this.update();
  }

  /**
   * Starts a stage past the queue, which then waits for this run as for any other. Null when something else began
   * meanwhile, in whatever window: then the stage waits in the queue.
   */
  async launch<T extends Pick<RunRecord, "dir">>(item: QueuedStage, start: () => Promise<T>): Promise<T | null> {
    if (this.beginning !== null) return this.line(item);
    this.beginning = item;
    this.changed();
    try {
      if (!(await this.claim(item, null))) return await this.line(item);
      const started = await start().catch(async (error: unknown) => {
        await this.change(item.file, (queue) => void (queue.starting = null));
        throw error;
      });
      await this.change(item.file, (queue) => {
        Object.assign(queue, { starting: null, paused: null, where: this.deps.store.here });
        if (queue.waiting.length > 0) wait(queue, item.file, started.dir, item.stage);
      });
      return started;
    } finally {
      this.beginning = null;
      this.changed();
      await this.update();
    }
  }

  /** The runs or a file changed: perhaps it is somebody's turn. Never waits for a start. */
  update(): Promise<void> {
    this.again = this.updating !== null;
    return (this.updating ??= this.updateAll());
  }

  private async updateAll(): Promise<void> {
    try {
      do {
        this.again = false;
        await this.updateOnce();
      } while (this.again);
    } catch (error) {
      this.tell(messageOf(error));
    } finally {
      this.updating = null;
    }
  }

  private async updateOnce(): Promise<void> {
    await this.read();
    if (this.disposed) return;
    const live = this.live();
    if (live.length > 0) return this.await(live);
    if (this.beginning !== null || this.waiting.length + this.begun().length === 0) return;
    if (this.busy || !this.deps.mayStart()) return;
    for (const { file, starting } of this.begun()) await this.change(file, (queue) => takeBack(queue, file, starting, this.deps.runs()));
    if ([...this.seen.values()].some(({ waiting, behind }) => waiting.length > 0 && behind.length > 0)) {
      await this.deps.refresh();
      if (this.live().length > 0) return void (this.again = true);
      for (const file of this.seen.keys()) await this.change(file, (queue) => judge(queue, file, this.deps.runs()));
    }
    const [first] = this.entries();
    if (first === undefined || this.paused !== null || this.beginning !== null || this.disposed) return;
    this.beginning = queued(first.file, first.entry);
    void this.next(this.beginning, first.entry);
  }

  /** Runs live: what waits is behind them, and what had gone wrong before a new one is past. */
  private async await(live: readonly RunRecord[]): Promise<void> {
    for (const [file, queue] of this.seen) {
      if (queue.waiting.length === 0) continue;
      const known = new Set(queue.behind.map(({ run }) => run));
      if (live.every(({ dir }) => known.has(relative(dirname(file), dir)))) continue;
      await this.change(file, (now) => {
        for (const { dir, stage } of live) wait(now, file, dir, stage);
        now.paused = null;
      });
    }
  }

  private async next(item: QueuedStage, entry: WaitingStage): Promise<void> {
    const { file, stage } = item;
    try {
      this.changed();
      if (!(await this.claim(item, entry))) return;
      try {
        const dir = await this.deps.start(item);
        await this.change(file, (queue) => {
          queue.starting = null;
          if (queue.waiting.length > 0) wait(queue, file, dir, stage);
        });
      } catch (error) {
        await this.change(file, (queue) => {
          queue.starting = null;
          queue.waiting = [entry, ...queue.waiting.filter((one) => one.stage !== stage)];
          queue.paused = { why: t("{0} could not be started: {1}", stage, messageOf(error).split("\n")[0] ?? ""), run: null };
        });
      }
    } catch (error) {
      this.tell(messageOf(error));
    } finally {
      this.beginning = null;
      this.changed();
      await this.update();
    }
  }

  /**
   * Takes the turn: first in the file, where of many windows one is first, then by a look at what really runs. False when
   * something stands in the way. `entry`: what the queue itself wants to start; a person's start goes past the queue, and
   * is told with AppError("already-running") that the same stage is under way.
   */
  private async claim(item: QueuedStage, entry: WaitingStage | null): Promise<boolean> {
    const { store } = this.deps;
    const since = Date.now() / 1000;
    let before: WaitingStage | undefined;
    const other = await this.change(item.file, (queue) => {
      if (queue.starting !== null && store.owns(queue.starting) === "other") return queue.starting;
      before = queue.waiting.find(({ stage }) => stage === item.stage);
      // Another window was faster, or a run ended that has not been judged yet.
      if (entry !== null && (before === undefined || queue.behind.length > 0 || queue.paused !== null)) return "gone";
      queue.waiting = queue.waiting.filter((one) => one !== before);
      queue.starting = { ...(before ?? { stage: item.stage, t: since, resume: item.resume ?? null }), since, owner: store.owner() };
      return null;
    });
    if (other !== null) {
      if (entry !== null || other === "gone" || other.stage !== item.stage) return false;
      throw new AppError("already-running", t("Stage `{0}` is just being started in another window (process {1}).", other.stage, other.owner.pid));
    }
    let free = false;
    try {
      await this.deps.refresh();
      await this.read();
      const live = this.live();
      const same = live.find((run) => run.stage === item.stage && ownerOf(run) === item.file && run.spec.file_seed === undefined);
      if (same !== undefined && entry === null) throw new AppError("already-running", t("Stage `{0}` is already running as {1}.", item.stage, same.id));
      const also = [...this.seen].some(([file, { starting }]) => file !== item.file && starting !== null && store.owns(starting) === "other");
      free = live.length === 0 && !also && this.outside.length === 0;
      return free;
    } finally {
      if (!free) {
        await this.change(item.file, (queue) => {
          queue.starting = null;
          if (before !== undefined) queue.waiting.unshift(before);
        });
      }
    }
  }

  private async line(item: QueuedStage): Promise<null> {
    await this.change(item.file, (queue) => this.append(queue, item, this.live()));
    return null;
  }

  private append(queue: QueueFile, { file, stage, resume }: QueuedStage, behind: readonly Pick<RunRecord, "dir" | "stage">[]): void {
    const last = Math.max(0, ...this.entries().map(({ entry }) => entry.t));
    append(queue, { file, stage, resume: resume ?? null, behind, here: this.deps.store.here, t: Math.max(Date.now() / 1000, last + 0.001) });
  }

  private filesThatWait(): string[] {
    return [...this.seen].flatMap(([file, { waiting }]) => (waiting.length > 0 ? [file] : []));
  }

  /** Everything that waits, in the order it was asked for. */
  private entries(): { file: string; entry: WaitingStage }[] {
    return [...this.seen].flatMap(([file, { waiting }]) => waiting.map((entry) => ({ file, entry }))).sort((a, b) => a.entry.t - b.entry.t);
  }

  /** Starts whose process is gone, or is this one and has forgotten them. */
  private begun(): { file: string; starting: StartingStage }[] {
    return [...this.seen].flatMap(([file, { starting }]) => (starting !== null && this.deps.store.owns(starting) !== "other" ? [{ file, starting }] : []));
  }

  private async look(): Promise<void> {
    const stamps = await this.stampAll();
    if (stamps !== this.stamps || this.waiting.length > 0 || this.starting !== null) await this.update();
  }

  private async stampAll(): Promise<string> {
    return (await Promise.all(this.deps.files().map(async (file) => `${file} ${await this.deps.store.stamp(dirname(file))}`))).join("\n");
  }

  private async read(): Promise<void> {
    const { store, files } = this.deps;
    this.stamps = await this.stampAll();
    const seen = new Map<string, QueueFile>();
    const outside: string[] = [];
    for (const file of files()) {
      const { queue, problem } = await store.read(dirname(file)).catch((error: unknown) => ({ queue: newQueue(store.here), problem: messageOf(error) }));
      seen.set(file, queue);
      if (problem !== null) this.tell(problem);
      outside.push(...(await store.elsewhere(dirname(file))));
    }
    const before = JSON.stringify([[...this.seen], this.outside]);
    this.seen = seen;
    this.outside = outside;
    if (JSON.stringify([[...seen], outside]) !== before) this.changed();
  }

  private async change<T>(file: string, edit: (queue: QueueFile) => T): Promise<T> {
    let after = newQueue(this.deps.store.here);
    const result = await this.deps.store.change(dirname(file), (queue) => {
      const value = edit(queue);
      after = queue;
      return value;
    });
    this.seen.set(file, after);
    this.changed();
    return result;
  }

  /** A window that closes shows nothing any more. */
  private changed(): void {
    if (!this.disposed) this.deps.changed();
  }

  /** Each sentence once: the file is looked at again and again. */
  private tell(sentence: string): void {
    if (this.said.has(sentence)) return;
    this.said.add(sentence);
    this.deps.say(sentence);
  }
}

function queued(file: string, { stage, resume }: WaitingStage): QueuedStage {
  return { file, stage, ...(resume === null ? {} : { resume }) };
}
