import * as vscode from "vscode";
import type { CommandId } from "../ids.ts";
import type { DriftAction, ToWebview } from "../protocol/webview.ts";
import type { RunStore } from "../storage/runs/runStore.ts";
import type { TraceStore } from "../storage/traces/traceStore.ts";
import type { Launcher } from "../targets/launcher.ts";
import { DisposableStore } from "../util/disposable.ts";
import { messageOf } from "../util/errors.ts";
import { setContext } from "./contextKeys.ts";
import { DriftSession, type DriftHost } from "./drift/driftSession.ts";
import { DriftView } from "./drift/driftView.ts";
import type { LogChannel } from "./logChannel.ts";
import { PipelineDiagnostics } from "./pipelineDiagnostics.ts";
import { RunFollower } from "./runFollower.ts";
import { startOptions, type RunCommandHost } from "./runStage.ts";
import { StagesTree } from "./stagesTree.ts";
import { WorkspaceModel } from "./workspaceModel.ts";
import { WorkspacePipelines } from "./workspacePipelines.ts";

/** What the host takes from the composition root. */
export interface HostServices {
  runs: RunStore;
  launcher: Launcher;
  /** Loads SQLite on first use. */
  traces(): Promise<TraceStore>;
}

/** The editor's side of the extension, ready for its commands. */
export interface Host extends RunCommandHost {
  log: LogChannel;
  pipelines: WorkspacePipelines;
  tree: StagesTree;
  drift: DriftView;
  /** Another page on the same data: what the view does, without a webview. */
  openDriftSession(post: (message: ToWebview) => void): DriftSession;
  /** Settles when the workspace was searched for the first time. */
  ready: Promise<void>;
}

const actionCommands: Record<DriftAction, CommandId> = { runStage: "seesaw.runStage", openPipeline: "seesaw.openPipeline", showLog: "seesaw.showLog" };

/** Builds the surfaces in the order in which they need each other. Nothing is read or started before this returns. */
export function createHost(services: HostServices, log: LogChannel, extension: vscode.Uri, store: DisposableStore): Host {
  const pipelines = store.add(new WorkspacePipelines(log));
  const model = store.add(new WorkspaceModel(pipelines, services.runs, log));
  const driftHost: DriftHost = {
    views: () => model.views(),
    traces: () => services.traces(),
    log,
    trusted: () => vscode.workspace.isTrusted,
    run: (action) => void vscode.commands.executeCommand(actionCommands[action]),
    openLine: (file, line) => void openLine(file, line),
  };
  const tree = store.add(new StagesTree(model));
  const drift = store.add(new DriftView(extension, driftHost));
  store.add(new PipelineDiagnostics(model));
  store.add(new RunFollower(model, log));
  store.add(
    model.onDidChange(() => {
      setContext("seesaw.hasPipeline", model.views().length > 0);
      setContext("seesaw.running", model.hasLiveRun());
      drift.refresh();
    }),
  );
  store.add(vscode.workspace.onDidGrantWorkspaceTrust(() => drift.refresh()));
  const ready = search(pipelines, model, log);
  return {
    model,
    launcher: services.launcher,
    startOptions: (view) => startOptions(view, log),
    log,
    pipelines,
    tree,
    drift,
    openDriftSession: (post) => new DriftSession(driftHost, post),
    ready,
  };
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
