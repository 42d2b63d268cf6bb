import type { RunRecord } from "../storage/runs/runStore.ts";
import { messageOf } from "../util/errors.ts";
import { endText, isLive, statusWords } from "./runWords.ts";

/** A stage that waits for its turn. */
export interface QueuedStage {
  /** The `seesaw.yaml`. */
  file: string;
  stage: string;
}

/** What the surfaces show of the queue. */
export interface QueueView {
  waiting: readonly QueuedStage[];
  /** Why nothing is started although nothing runs: a sentence; null while the queue goes on by itself. */
  paused: string | null;
}

export const emptyQueue: QueueView = { waiting: [], paused: null };

/** What the queue says of itself wherever it is shown. */
export const queueNote = "The queue is kept by this window: closing or reloading it empties the queue. The run that is under way goes on.";

/** The place of a stage in the queue, from 1; null when it does not wait. */
export function queuePosition({ waiting }: QueueView, file: string, stage: string): number | null {
  const index = waiting.findIndex((one) => one.file === file && one.stage === stage);
  return index < 0 ? null : index + 1;
}

interface QueueDeps {
  /** All runs of the workspace as they are known now. */
  runs(): readonly RunRecord[];
  /** Starts a stage; resolves with its run folder once the run is among `runs()`. */
  start(stage: QueuedStage): Promise<string>;
  changed(): void;
}

/**
 * One run at a time in this window: stages that were asked for while another run lives wait here, and start when it is
 * done. A run that fails, is stopped or vanishes pauses the queue: what waits usually starts from what it did not leave.
 */
export class RunQueue implements QueueView {
  private items: QueuedStage[] = [];
  private sentence: string | null = null;
  private pausedByDir: string | null = null;
  /** A stage that is being started: it has no run folder yet, and counts as running. */
  private beginning: QueuedStage | null = null;
  /** Folders and names of the runs that live, or lived when we last looked. */
  private readonly awaited = new Map<string, string>();
  private readonly deps: QueueDeps;

  constructor(deps: QueueDeps) {
    this.deps = deps;
  }

  get waiting(): readonly QueuedStage[] {
    return this.items;
  }

  get paused(): string | null {
    return this.items.length === 0 ? null : this.sentence;
  }

  /** The stage that is being started right now. */
  get starting(): QueuedStage | null {
    return this.beginning;
  }

  /** The runs that stand in the way of another one. */
  live(): RunRecord[] {
    return this.deps.runs().filter((run) => run.spec.target.kind === "local" && isLive(run.state.status));
  }

  /** True when this run's end is why the queue waits. */
  isPausedBy(dir: string): boolean {
    return this.paused !== null && this.pausedByDir === dir;
  }

  /** Puts a stage at the end, behind the runs the person was shown; one that waits already keeps its place. Returns its position. */
  add(item: QueuedStage, behind: readonly Pick<RunRecord, "dir" | "stage">[] = []): number {
    for (const { dir, stage } of behind) this.awaited.set(dir, stage);
    if (queuePosition(this, item.file, item.stage) === null) this.items = [...this.items, item];
    this.deps.changed();
    this.update();
    return queuePosition(this, item.file, item.stage) ?? 0;
  }

  remove(file: string, stage: string): void {
    this.items = this.items.filter((one) => one.file !== file || one.stage !== stage);
    this.deps.changed();
  }

  clear(): void {
    this.items = [];
    this.deps.changed();
  }

  /** Goes on after a pause. */
  resume(): void {
    this.sentence = null;
    this.awaited.clear();
    this.deps.changed();
    this.update();
  }

  /** Starts a stage past the queue, which then waits for this run as for any other. */
  async launch<T>(item: QueuedStage, start: () => Promise<T>): Promise<T> {
    this.beginning = item;
    this.remove(item.file, item.stage);
    try {
      const started = await start();
      this.sentence = null;
      return started;
    } finally {
      this.beginning = null;
      this.deps.changed();
      this.update();
    }
  }

  /** The runs changed: perhaps it is somebody's turn. */
  update(): void {
    const runs = this.deps.runs();
    const live = this.live();
    if (live.length > 0) {
      // A new run begins another wait: what had gone wrong before it is past.
      if (this.sentence !== null && live.some(({ dir }) => !this.awaited.has(dir))) {
        this.sentence = null;
        this.deps.changed();
      }
      for (const { dir, stage } of live) this.awaited.set(dir, stage);
      return;
    }
    if (this.beginning !== null) return;
    const ended = [...this.awaited].map(([dir, stage]) => ({ dir, stage, run: runs.find((run) => run.dir === dir) }));
    this.awaited.clear();
    if (this.items.length === 0 || this.sentence !== null) return;
    const bad = ended.find(({ run }) => run?.state.status !== "done");
    if (bad === undefined) return void this.next();
    this.pause(bad.run === undefined ? `the run folder of ${bad.stage} is gone` : `${bad.stage} ${endWords(bad.run)}`, bad.dir);
  }

  private async next(): Promise<void> {
    const [item, ...rest] = this.items;
    if (item === undefined) return;
    this.beginning = item;
    this.items = rest;
    this.deps.changed();
    try {
      const dir = await this.deps.start(item);
      this.awaited.set(dir, item.stage);
    } catch (error) {
      this.items = [item, ...this.items];
      this.pause(`${item.stage} could not be started: ${messageOf(error).split("\n")[0] ?? ""}`, null);
    } finally {
      this.beginning = null;
      this.deps.changed();
      this.update();
    }
  }

  private pause(why: string, dir: string | null): void {
    this.sentence = `The queue is paused: ${why.replace(/\.$/, "")}.`;
    this.pausedByDir = dir;
    this.deps.changed();
  }
}

function endWords({ state }: RunRecord): string {
  return state.status === "cancelled" ? "was stopped" : `ended as ${statusWords[state.status]}${endText(state) === null ? "" : ` (${(endText(state) ?? "").replace(/\.$/, "")})`}`;
}
