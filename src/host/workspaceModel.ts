import * as vscode from "vscode";
import { readSetting } from "../config.ts";
import { buildChain, type Chain, type ChainRun } from "../domain/run/chain.ts";
import type { Diagnostic, Pipeline } from "../domain/pipeline/pipelineModel.ts";
import { withoutWatch } from "../domain/run/flagEpisode.ts";
import type { RunListing, RunStore } from "../storage/runs/runStore.ts";
import type { SettingKey } from "../ids.ts";
import type { ReportCard } from "../protocol/reportCard.ts";
import type { FlagFacts, ReplayFact } from "../domain/run/flagCard.ts";
import type { FlagRecord } from "../domain/run/runState.ts";
import { messageOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { ReplayFacts } from "./flags/replayFacts.ts";
import { isLive } from "./runWords.ts";
import type { PipelineFile, WorkspacePipelines } from "./workspacePipelines.ts";

/** One pipeline of the workspace with everything known about its runs. */
export interface PipelineView {
  uri: vscode.Uri;
  label: string;
  /** Null when `seesaw.yaml` has errors; `diagnostics` then says which. Only this may be run. */
  pipeline: Pipeline | null;
  /** What is shown: `pipeline`, or while it has errors, as while it is being edited, the last one without. */
  shown: Pipeline | null;
  diagnostics: readonly Diagnostic[];
  listing: RunListing;
  chain: Chain | null;
  /** What is known of the detector; absent or null: nothing. */
  card?: ReportCard | null;
  /** What replay did for the rows that a flag names; absent, or undefined: not read. */
  replay?(run: ChainRun, flag: FlagRecord): ReplayFact | undefined;
  /** Somebody looks at a flag of the run: resolves when `replay` knows what can be known. */
  lookUp?(run: ChainRun): Promise<void>;
}

const noRuns: RunListing = { runs: [], unreadable: [] };

/** What all surfaces show: the pipelines and their runs, read again whenever a file of theirs changes. */
export class WorkspaceModel implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  private readonly watchers = new Map<string, () => void>();
  private readonly lastGood = new Map<string, Pipeline>();
  private readonly subscription: vscode.Disposable;
  private readonly settings: vscode.Disposable;
  private current: PipelineView[] = [];
  private running: Promise<void> | null = null;
  private again = false;
  private disposed = false;
  private readonly pipelines: WorkspacePipelines;
  private readonly runs: RunStore;
  private readonly log: Log;
  private readonly reportCard: () => Promise<ReportCard | null>;
  private card: Promise<ReportCard | null> | null = null;
  private readonly replay: ReplayFacts;

  constructor(pipelines: WorkspacePipelines, runs: RunStore, log: Log, reportCard: () => Promise<ReportCard | null>, flagFacts: (runs: readonly ChainRun[]) => Promise<FlagFacts>) {
    this.reportCard = reportCard;
    this.replay = new ReplayFacts(flagFacts, () => void (this.disposed || this.changed.fire()), log);
    this.pipelines = pipelines;
    this.runs = runs;
    this.log = log;
    this.subscription = pipelines.onDidChange(() => void this.refresh());
    this.settings = vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("seesaw.flags.watch" satisfies SettingKey)) void this.refresh();
    });
  }

  views(): readonly PipelineView[] {
    return this.current;
  }

  view(file: string): PipelineView | undefined {
    return this.current.find((view) => view.uri.fsPath === file);
  }

  hasLiveRun(): boolean {
    return this.current.some((view) => view.listing.runs.some((run) => isLive(run.state.status)));
  }

  /** Reads everything again. Calls that come while one is at work share the next one. */
  refresh(): Promise<void> {
    if (this.disposed) return Promise.resolve();
    if (this.running !== null) {
      this.again = true;
      return this.running;
    }
    this.running = this.refreshAll();
    return this.running;
  }

  dispose(): void {
    this.disposed = true;
    this.subscription.dispose();
    this.settings.dispose();
    this.changed.dispose();
    for (const stop of this.watchers.values()) stop();
    this.watchers.clear();
  }

  private async refreshAll(): Promise<void> {
    try {
      do {
        this.again = false;
        const views = await Promise.all(this.pipelines.list().map((file) => this.read(file)));
        if (this.disposed) return;
        this.current = views;
        this.watchRoots(views);
        for (const file of this.lastGood.keys()) if (!views.some(({ uri }) => uri.fsPath === file)) this.lastGood.delete(file);
        this.changed.fire();
      } while (this.again);
    } finally {
      // Here and not in a `then`: a request that came in between would be neither part of this nor the start of another.
      this.running = null;
    }
  }

  private async read(file: PipelineFile): Promise<PipelineView> {
    // Not imported above: the YAML parser and the schema's validator are not needed before a pipeline is there.
    const { parsePipeline } = await import("../domain/pipeline/pipeline.ts");
    const { pipeline, diagnostics } = parsePipeline(file.text, file.uri.fsPath);
    const root = vscode.Uri.joinPath(file.uri, "..").fsPath;
    let listing = noRuns;
    try {
      listing = await this.runs.list(root);
    } catch (error) {
      this.log.error(`The runs of ${file.label} cannot be read: ${messageOf(error)}`);
    }
    if (pipeline !== null) this.lastGood.set(file.uri.fsPath, pipeline);
    const shown = pipeline ?? this.lastGood.get(file.uri.fsPath) ?? null;
    const card = await (this.card ??= this.reportCard());
    if (!readSetting("seesaw.flags.watch", file.uri)) listing = { ...listing, runs: listing.runs.map((run) => withoutWatch(run, card)) };
    const chain = shown === null ? null : buildChain(shown, listing.runs);
    return { uri: file.uri, label: file.label, pipeline, shown, diagnostics, listing, chain, card, replay: (run, flag) => this.replay.of(run, flag), lookUp: (run) => this.replay.look(run) };
  }

  private watchRoots(views: readonly PipelineView[]): void {
    const roots = new Set(views.map((view) => vscode.Uri.joinPath(view.uri, "..").fsPath));
    for (const [root, stop] of this.watchers) {
      if (roots.has(root)) continue;
      stop();
      this.watchers.delete(root);
    }
    for (const root of roots) {
      if (!this.watchers.has(root)) this.watchers.set(root, this.runs.watch(root, () => void this.refresh()));
    }
  }
}
