import type { ArenaExport, ArenaJobs, ArenaPageState, ArenaPlan, ArenaProgress, FromArenaPage, ToArenaPage } from "../../domain/arena/arenaPage.ts";
import type { ArenaResult } from "../../domain/arena/arenaResult.ts";
import type { Pipeline } from "../../domain/pipeline/pipelineModel.ts";
import { messageOf } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import type { Log } from "../../util/log.ts";
import { PipelineChoice } from "../pipelineChoice.ts";
import type { PipelineView } from "../workspaceModel.ts";

/** What reads and starts an arena; arenaDesk.ts of the targets is one. */
export interface ArenaReader {
  progress(pipeline: Pipeline): Promise<ArenaProgress>;
  /** `wanted`: what the setting says; 0: nothing. */
  jobs(pipeline: Pipeline, wanted: number): Promise<ArenaJobs>;
  result(pipeline: Pipeline): Promise<ArenaResult>;
  watch(pipeline: Pipeline, onChange: () => void): Promise<() => void>;
  hasOutput(pipeline: Pipeline): boolean;
}

/** What a session needs of the rest of the extension. */
export interface ArenaHost {
  views(): readonly PipelineView[];
  /** Loaded at its first use. */
  desk(): Promise<ArenaReader>;
  trusted(): boolean;
  /** Asks the person, then starts the arena as a process of its own. False: they did not want it. */
  run(view: PipelineView): Promise<boolean>;
  /** Asks the person, then stops it. False: they did not want it. */
  stop(view: PipelineView): Promise<boolean>;
  /** Seeds that are to run at the same time, by the person's setting; 0: as many as suits the machine. */
  wantedJobs(view: PipelineView): number;
  /** Asks where to, and writes. */
  export(view: PipelineView, result: ArenaResult, what: ArenaExport): Promise<void>;
  openPipeline(view: PipelineView): void;
  openOutput(view: PipelineView): Promise<void>;
  showLog(): void;
  log: Log;
}

interface Read {
  pipeline: Pipeline;
  progress: ArenaProgress;
  jobs: ArenaJobs;
  output: boolean;
  result: ArenaResult | null;
  /** Which stages were done when `result` was read. */
  of: string;
}

/** Between two looks at an arena whose process lives while none of its stages does, in ms. */
const heldMs = 1_000;

/** The host's half of the arena page: messages in, state out. Knows nothing of webviews, and the arena nothing of it. */
export class ArenaSession {
  private readonly host: ArenaHost;
  private readonly post: (message: ToArenaPage) => void;
  private readonly choice: PipelineChoice;
  private open = false;
  private read: Read | null = null;
  private failure: { pipeline: Pipeline; message: string } | null = null;
  private work: Promise<void> | null = null;
  private again = false;
  private reading = false;
  private watched: { pipeline: Pipeline; stop: () => void } | null = null;
  private later: NodeJS.Timeout | undefined;

  /** `file`: the `seesaw.yaml` it is about; the first one of the workspace with an arena if none is named. */
  constructor(host: ArenaHost, post: (message: ToArenaPage) => void, file?: string) {
    this.host = host;
    this.post = post;
    this.choice = new PipelineChoice(() => host.views(), file, ({ shown }) => shown?.arena != null, ({ shown }) => shown !== null);
  }

  show(file: string | undefined): void {
    if (this.choice.turnTo(file)) this.refresh();
  }

  handle(message: FromArenaPage): void {
    switch (message.type) {
      case "ready":
        this.open = true;
        return this.refresh();
      case "retry":
        this.failure = null;
        return this.refresh();
      case "run":
        return this.attempt(async (view) => {
          if (this.host.trusted() && (await this.host.run(view))) this.refresh();
        });
      case "stop":
        return this.attempt(async (view) => {
          if (this.host.trusted() && (await this.host.stop(view))) this.refresh();
        });
      case "export":
        return this.attempt(async (view) => {
          if (this.read?.result != null) await this.host.export(view, this.read.result, message.what);
        });
      case "openPipeline":
        return this.attempt(async (view) => this.host.openPipeline(view));
      case "openOutput":
        return this.attempt((view) => this.host.openOutput(view));
      case "showLog":
        return this.host.showLog();
      case "error":
        return this.host.log.error(`Arena page: ${message.message}`);
    }
  }

  /** Runs, pipelines or trust changed. Calls that come while one is at work share the next one. */
  refresh(): void {
    if (!this.open) return;
    if (this.work !== null) {
      this.again = true;
      return;
    }
    this.work = this.look().finally(() => {
      this.work = null;
      if (!this.again) return;
      this.again = false;
      this.refresh();
    });
  }

  /** The page is hidden: nothing is read for it. It will say `ready` again. */
  close(): void {
    this.open = false;
    clearTimeout(this.later);
    this.unwatch();
  }

  /** Settles when what is at work has been told. */
  async settled(): Promise<void> {
    while (this.work !== null) await this.work;
  }

  private attempt(work: (view: PipelineView) => Promise<void>): void {
    const view = this.choice.current();
    if (view !== undefined) void work(view).catch((error: unknown) => this.host.log.error(`Arena: ${messageOf(error)}`));
  }

  private async look(): Promise<void> {
    const view = this.choice.current();
    const pipeline = view?.shown ?? null;
    if (pipeline?.arena == null) this.unwatch();
    this.tell();
    if (view === undefined || pipeline?.arena == null || this.failure?.pipeline === pipeline) return;
    try {
      const desk = await this.host.desk();
      const progress = await desk.progress(pipeline);
      const before = this.read?.pipeline === pipeline ? this.read : null;
      const of = doneKey(progress);
      const jobs = await desk.jobs(pipeline, this.host.wantedJobs(view));
      this.read = { pipeline, progress, jobs, output: desk.hasOutput(pipeline), result: before?.result ?? null, of: before?.of ?? "" };
      await this.watch(desk, pipeline);
      // Between two stages, and after the last, no run changes: that the arena's process has ended shows only when asked again.
      clearTimeout(this.later);
      if (progress.held && progress.running.length === 0) this.later = setTimeout(() => this.refresh(), heldMs);
      // Reading all scores again is only worth it when another stage is done.
      if (progress.done === 0 || before?.of === of) return this.tell();
      this.reading = true;
      this.tell();
      const result = await desk.result(pipeline);
      this.read = { ...this.read, result, of };
    } catch (error) {
      this.failure = { pipeline, message: messageOf(error) };
      this.host.log.error(`The arena cannot be read: ${messageOf(error)}`);
    } finally {
      this.reading = false;
    }
    this.tell();
  }

  private async watch(desk: ArenaReader, pipeline: Pipeline): Promise<void> {
    if (this.watched?.pipeline === pipeline) return;
    this.unwatch();
    const stop = await desk.watch(pipeline, () => this.refresh());
    if (this.open) this.watched = { pipeline, stop };
    else stop();
  }

  private unwatch(): void {
    this.watched?.stop();
    this.watched = null;
  }

  private tell(): void {
    if (this.open) this.post({ type: "state", state: this.state() });
  }

  private state(): ArenaPageState {
    const nothing: ArenaPageState = { pipeline: "", plan: null, progress: null, jobs: null, result: null, reading: false, mayRun: this.host.trusted(), output: false, empty: null };
    const pipeline = this.choice.current()?.shown ?? null;
    if (pipeline === null) return { ...nothing, empty: { kind: "none", title: t("No pipeline"), detail: t("There is no seesaw.yaml without errors in this workspace."), action: null } };
    const base = { ...nothing, pipeline: pipeline.name };
    if (pipeline.arena == null) return { ...base, empty: { kind: "none", title: t("No arena in this pipeline"), detail: t("Name the remedies to compare in seesaw.yaml, such as arena: { remedies: [{ kind: replay }, { kind: joint }] }."), action: "openPipeline" } };
    if (this.failure?.pipeline === pipeline) return { ...base, empty: { kind: "error", title: t("The arena cannot be read"), detail: this.failure.message, action: "retry" } };
    const read = this.read?.pipeline === pipeline ? this.read : null;
    return { ...base, plan: planOf(pipeline), progress: read?.progress ?? null, jobs: read?.jobs ?? null, result: read?.result ?? null, output: read?.output ?? false, reading: this.reading || read === null };
  }
}

function planOf({ arena }: Pipeline): ArenaPlan {
  const { budget, seeds, remedies } = arena as NonNullable<Pipeline["arena"]>;
  const words = budget === null ? t("as many optimizer steps as the chain") : "tokens" in budget ? t("{0} trained tokens", budget.tokens) : t("{0} s of training", budget.gpu_seconds);
  return { systems: remedies.map(({ id, kind }) => ({ id, title: kind })), seeds, budget: words };
}

/** The same while no other stage is done, so that nothing is read in vain. */
function doneKey({ stages, done, failed }: ArenaProgress): string {
  return JSON.stringify([stages, done, failed.map(({ seed, stage }) => [seed, stage])]);
}
