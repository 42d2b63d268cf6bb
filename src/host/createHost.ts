import * as vscode from "vscode";
import type { CommandId } from "../ids.ts";
import type { Pipeline } from "../domain/pipeline/pipelineModel.ts";
import type { ReportCard } from "../protocol/reportCard.ts";
import type { DriftAction, ToWebview } from "../protocol/webview.ts";
import type { DatasetReader } from "../storage/datasets/datasetReader.ts";
import type { RunStore } from "../storage/runs/runStore.ts";
import type { TraceStore } from "../storage/traces/traceStore.ts";
import type { Launcher } from "../targets/launcher.ts";
import { requirePython } from "../targets/python.ts";
import type { QueueStore } from "../targets/queueStore.ts";
import type { RunnerSetup } from "../targets/runnerSetup.ts";
import type { TargetDesk } from "../targets/targetDesk.ts";
import { DisposableStore } from "../util/disposable.ts";
import { AppError, messageOf } from "../util/errors.ts";
import { registerTools } from "./agents/registerTools.ts";
import { ArenaPanel, type ArenaPanelHost } from "./arena/arenaPanel.ts";
import { setContext } from "./contextKeys.ts";
import type { ConfirmHost } from "./flags/confirmFlag.ts";
import { FlagNotices } from "./flags/flagNotices.ts";
import { DatasetEditors } from "./datasets/datasetEditor.ts";
import type { DatasetHost } from "./datasets/datasetSession.ts";
import { DriftEditors } from "./drift/driftEditors.ts";
import { DriftSession, type DriftHost } from "./drift/driftSession.ts";
import { DriftView } from "./drift/driftView.ts";
import { TraceCache } from "./drift/traceCache.ts";
import type { LogChannel } from "./logChannel.ts";
import { PipelineDiagnostics } from "./pipelineDiagnostics.ts";
import { LiveScoring, type LiveHost } from "./live/liveScoring.ts";
import { RowSurfaces } from "./rows/rowSurfaces.ts";
import { FlagFixes } from "./pipelineFile/flagFixes.ts";
import { StageLensProvider } from "./pipelineFile/stageLensProvider.ts";
import { RemoteRuns, type RunsElsewhere } from "./remoteRuns.ts";
import { RunFollower } from "./runFollower.ts";
import { RunQueue } from "./runQueue.ts";
import { startOptions, startQueued, type RunCommandHost } from "./runStage.ts";
import { LinkHandler } from "./sharing/linkCommands.ts";
import type { ScoreSource } from "./sharing/scores.ts";
import { SkillsTree } from "./skills/skillsTree.ts";
import { StagesTree } from "./stagesTree.ts";
import { TargetsTree } from "./targets/targetsTree.ts";
import { TextPages } from "./textPages.ts";
import { WeightsPanel } from "./weights/weightsPanel.ts";
import type { WeightsHost } from "./weights/weightsSession.ts";
import { WorkspaceModel, type PipelineView } from "./workspaceModel.ts";
import { WorkspacePipelines } from "./workspacePipelines.ts";

/** What the host takes from the composition root. */
export interface HostServices {
  runs: RunStore;
  launcher: Launcher;
  queue: QueueStore;
  setup: RunnerSetup;
  replay: ScoreSource["replay"];
  flagFacts: ScoreSource["flagFacts"];
  /** What the battery found out about the detector; null: nothing is known. */
  reportCard(): Promise<ReportCard | null>;
  /** Loads SQLite on first use. */
  traces(): Promise<TraceStore>;
  countRows: RunCommandHost["countRows"];
  costs: { summary: RunCommandHost["costSummary"] };
  ledgers: DatasetHost["ledgers"];
  openDataset(path: string): Promise<DatasetReader>;
  weights: { drift: WeightsHost["drift"] };
  confirmer: ConfirmHost["confirmer"];
  /** Asks targets what they have; loads their adapters on first use. */
  targetDesk: Pick<TargetDesk, "check" | "loginArgv" | "cleaning" | "clean">;
  /** Follows runs on other machines. */
  remotes: RunsElsewhere;
  /** Loads what an arena needs on first use. */
  arena: ArenaPanelHost["desk"];
  scorer: LiveHost["scorer"];
}

/** The editor's side of the extension, ready for its commands. */
export interface Host extends RunCommandHost {
  log: LogChannel;
  pipelines: WorkspacePipelines;
  tree: StagesTree;
  skills: SkillsTree;
  follower: RunFollower;
  drift: DriftView;
  driftEditors: DriftEditors;
  datasets: DatasetEditors;
  weights: WeightsPanel;
  arena: ArenaPanel;
  targets: TargetsTree;
  remoteRuns: RemoteRuns;
  /** The ssh command that logs in to a host in a terminal. */
  loginArgv(host: string): Promise<string[]>;
  targetDesk: Pick<TargetDesk, "cleaning" | "clean">;
  rows: RowSurfaces;
  live: LiveScoring;
  /** For what is exported and told to agents. */
  scores: ScoreSource;
  setup: RunnerSetup;
  links: LinkHandler;
  /** Folder of this installation. */
  extension: vscode.Uri;
  secrets: vscode.SecretStorage;
  confirmer: ConfirmHost["confirmer"];
  /** Another page on the same data: what the view does, without a webview. */
  openDriftSession(post: (message: ToWebview) => void): DriftSession;
  /** Settles when the workspace was searched for the first time. */
  ready: Promise<void>;
}

const actionCommands: Record<DriftAction, CommandId> = { runStage: "seesaw.runStage", openPipeline: "seesaw.openPipeline", showLog: "seesaw.showLog", openReportCard: "seesaw.openReportCard" };

/** Builds the surfaces in the order in which they need each other. Nothing is read or started before this returns. */
export function createHost(services: HostServices, log: LogChannel, extension: vscode.Uri, secrets: vscode.SecretStorage, store: DisposableStore): Host {
  const pipelines = store.add(new WorkspacePipelines(log));
  const model = store.add(new WorkspaceModel(pipelines, services.runs, log, () => services.reportCard(), (runs) => services.flagFacts(runs)));
  const cache = store.add(new TraceCache());
  const driftHost: DriftHost = {
    views: () => model.views(),
    traces: async () => cache.over(await services.traces()),
    log,
    trusted: () => vscode.workspace.isTrusted,
    run: (action) => void vscode.commands.executeCommand(actionCommands[action]),
    openLine: (file, line) => void openLine(file, line),
    cancelLive: () => live.cancel(),
  };
  const queue: RunQueue = new RunQueue({
    store: services.queue,
    files: () => model.views().map(({ uri }) => uri.fsPath),
    refresh: () => model.refresh(),
    mayStart: () => vscode.workspace.isTrusted,
    say: (sentence) => {
      log.warn(sentence);
      void vscode.window.showWarningMessage(sentence);
    },
    runs: () => model.views().flatMap((view) => view.listing.runs),
    start: (stage) => startQueued(commandHost, stage),
    changed: () => {
      setContext("seesaw.queued", queue.waiting.length > 0);
      tree.update();
      lenses.update();
      follower.queueChanged();
    },
  });
  // Before what shows it: they say of a run's end whether it paused the queue.
  store.add(model.onDidChange(() => void queue.update()));
  store.add(queue.follow());
  const pages = store.add(new TextPages());
  const commandHost: RunCommandHost = { showDryRun: async (chosen) => (await import("./targets/dryRun.ts")).showDryRun(commandHost, pages, chosen), runSeeds: async (pipeline, diagnostics, options) => (await import("../targets/seedRuns.ts")).runSeeds({ launcher: services.launcher, runs: services.runs }, pipeline, diagnostics, options), model, launcher: services.launcher, queue, startOptions: (view) => startOptions(view, log), countRows: services.countRows, costSummary: (pipeline, stage, signal) => services.costs.summary(pipeline, stage, signal), log };
  const tree = store.add(new StagesTree(model, queue));
  const remoteRuns = store.add(new RemoteRuns(model, services.remotes, log));
  const skills = store.add(new SkillsTree(model));
  const targets = store.add(
    new TargetsTree({
      model,
      check: async (view, id, signal) => services.targetDesk.check(shownOf(view), id, { ...(await startOptions(view, log)), signal }),
      trusted: () => vscode.workspace.isTrusted,
      log,
    }),
  );
  const lenses = store.add(new StageLensProvider(model, queue));
  const drift = store.add(new DriftView(extension, driftHost));
  const driftEditors = store.add(new DriftEditors(extension, driftHost));
  const datasets = store.add(
    new DatasetEditors(extension, {
      views: () => model.views(),
      traces: driftHost.traces,
      ledgers: services.ledgers,
      open: services.openDataset,
      log,
      showLog: () => log.show(),
      openLine: (file, line) => void openLine(file, line),
      showDrift: ({ pipeline, skill, split, row }) => void drift.show({ pipeline, skill, split: split === "ood" ? "ood" : "id", row }),
    }),
  );
  const weights = store.add(
    new WeightsPanel(extension, {
      views: () => model.views(),
      drift: (root, pair, options) => services.weights.drift(root, pair, options),
      startOptions: (view) => startOptions(view, log),
      runStage: () => void vscode.commands.executeCommand("seesaw.runStage" satisfies CommandId),
      showLog: () => log.show(),
      log,
    }),
  );
  const arena = store.add(
    new ArenaPanel(extension, {
      views: () => model.views(),
      desk: () => services.arena(),
      startOptions: (view) => startOptions(view, log),
      python: async (pipeline, options) => requirePython(await services.launcher.localPython(pipeline, pipeline.stages[0]?.id ?? "", options)).command,
      openLine: (file, line) => void openLine(file, line),
      showLog: () => log.show(),
      log,
    }),
  );
  const rows = store.add(new RowSurfaces({ views: () => model.views(), traces: driftHost.traces, ledgers: services.ledgers, log }));
  const live: LiveScoring = store.add(
    new LiveScoring({
      views: () => model.views(),
      scorer: services.scorer,
      traces: driftHost.traces,
      show: (show) => [drift, driftEditors].forEach((pages) => pages.showLive(show)),
      reveal: () => drift.show(),
    }),
  );
  store.add(new PipelineDiagnostics(model, vscode.Uri.joinPath(extension, "REPORT_CARD.md")));
  store.add(new FlagFixes(model));
  const notices = store.add(new FlagNotices(model, secrets, log));
  const follower = store.add(new RunFollower(model, queue, notices, log));
  store.add(
    model.onDidChange(() => {
      setContext("seesaw.hasPipeline", model.views().length > 0);
      setContext("seesaw.running", model.hasLiveRun());
      drift.refresh();
      driftEditors.refresh();
      datasets.refresh();
      weights.refresh();
      arena.refresh();
      rows.refresh();
    }),
  );
  store.add(vscode.workspace.onDidGrantWorkspaceTrust(() => [drift, weights, arena].forEach((page) => page.refresh())));
  const links = new LinkHandler(() => host);
  store.add(vscode.window.registerUriHandler(links));
  store.add(registerTools(() => host));
  const ready = search(pipelines, model, log);
  const host: Host = {
    ...commandHost,
    scores: { traces: services.traces, replay: services.replay, flagFacts: services.flagFacts },
    setup: services.setup,
    links,
    extension,
    secrets,
    confirmer: services.confirmer,
    log,
    pipelines,
    tree,
    skills,
    follower,
    drift,
    driftEditors,
    datasets,
    weights,
    arena,
    targets,
    remoteRuns,
    loginArgv: (machine) => services.targetDesk.loginArgv(machine),
    targetDesk: services.targetDesk,
    rows,
    live,
    openDriftSession: (post) => new DriftSession(driftHost, post),
    ready,
  };
  return host;
}

/** The pipeline as it is shown: a target is checked as it stood when the file had no errors. */
function shownOf({ shown, label }: PipelineView): Pipeline {
  if (shown === null) throw new AppError("bad-pipeline", vscode.l10n.t("{0} has errors: see the Problems view.", label));
  return shown;
}

async function search(pipelines: WorkspacePipelines, model: WorkspaceModel, log: LogChannel): Promise<void> {
  try {
    await pipelines.search();
    await model.refresh();
    log.info(`Found ${model.views().length} pipeline(s): ${model.views().map(({ label }) => label).join(", ") || "none"}`);
  } catch (error) {
    log.error(`The workspace could not be searched: ${messageOf(error)}`);
  } finally {
    setContext("seesaw.ready", true);
  }
}

/** Opens a file with the cursor at the start of a line (counted from 1). */
export async function openLine(file: string, line: number): Promise<void> {
  const start = new vscode.Position(Math.max(0, line - 1), 0);
  await vscode.window.showTextDocument(vscode.Uri.file(file), { selection: new vscode.Range(start, start) });
}
