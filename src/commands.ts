import * as vscode from "vscode";
import type { Host } from "./host/createHost.ts";
import { openDatasetFile } from "./host/datasets/datasetEditor.ts";
import { openLine } from "./host/createHost.ts";
import type { LogChannel } from "./host/logChannel.ts";
import { cancelQueued, continueQueue, copyCommand, resumeRun, revealRun, showRunLog, stopRun } from "./host/runCommands.ts";
import { runStage } from "./host/runStage.ts";
import { copyLink } from "./host/sharing/linkCommands.ts";
import { exportCsv, exportPicture, exportReport } from "./host/sharing/exportCommands.ts";
import { openSample } from "./host/setup/openSample.ts";
import { setUpRunner } from "./host/setup/setUpRunner.ts";
import { showFailure } from "./host/errorMessages.ts";
import type { NodeTarget } from "./host/stageNodes.ts";
import { commandIds, type CommandId, type ViewId } from "./ids.ts";
import type { DriftSelection } from "./protocol/webview.ts";
import { toDisposable, type Disposable } from "./util/disposable.ts";

type Handler = (host: Host, target?: NodeTarget) => unknown;

interface Command {
  enabled: Handler;
  /** `trust`: starts or stops a program, so it needs a trusted workspace. */
  needs: "nothing" | "trust";
}

/** Every command of the extension. Each is registered even when activation failed: then it says why. */
const table: Record<CommandId, Command> = {
  "seesaw.runStage": { needs: "trust", enabled: runStage },
  "seesaw.resumeRun": { needs: "trust", enabled: resumeRun },
  "seesaw.stopRun": { needs: "trust", enabled: stopRun },
  "seesaw.showRunLog": { needs: "nothing", enabled: showRunLog },
  "seesaw.rerunStage": { needs: "trust", enabled: runStage },
  "seesaw.revealRun": { needs: "nothing", enabled: revealRun },
  "seesaw.copyCommand": { needs: "nothing", enabled: copyCommand },
  "seesaw.cancelQueued": { needs: "nothing", enabled: cancelQueued },
  "seesaw.continueQueue": { needs: "trust", enabled: continueQueue },
  "seesaw.showDrift": { needs: "nothing", enabled: showDrift },
  "seesaw.openDriftEditor": { needs: "nothing", enabled: openDriftEditor },
  "seesaw.openPipeline": { needs: "nothing", enabled: openPipeline },
  "seesaw.openDataset": { needs: "nothing", enabled: (_host, target) => openDatasetFile(target?.file) },
  "seesaw.probeSelection": { needs: "trust", enabled: (host) => host.live.probe() },
  "seesaw.copyLink": { needs: "nothing", enabled: copyLink },
  "seesaw.exportReport": { needs: "nothing", enabled: exportReport },
  "seesaw.exportCsv": { needs: "nothing", enabled: exportCsv },
  "seesaw.exportPicture": { needs: "nothing", enabled: exportPicture },
  "seesaw.compareWeights": { needs: "nothing", enabled: (host, target) => host.weights.show(target?.file) },
  "seesaw.openArena": { needs: "nothing", enabled: (host, target) => host.arena.show(target?.file) },
  "seesaw.setUpRunner": { needs: "trust", enabled: setUpRunner },
  "seesaw.confirmFlag": { needs: "trust", enabled: async (host, target) => (await import("./host/flags/confirmFlag.ts")).confirmFlag(host, target) },
  "seesaw.setWebhook": { needs: "nothing", enabled: async (host) => (await import("./host/flags/setWebhook.ts")).setWebhook(host) },
  "seesaw.openReportCard": { needs: "nothing", enabled: async (host) => (await import("./host/flags/reportCard.ts")).openReportCard(host) },
  "seesaw.checkTarget": { needs: "trust", enabled: checkTargets },
  "seesaw.addTarget": { needs: "nothing", enabled: async (host, target) => (await import("./host/targets/addTarget.ts")).addTarget(host, target) },
  "seesaw.logIn": { needs: "trust", enabled: async (host, target) => (await import("./host/targets/logIn.ts")).logIn(host, target) },
  "seesaw.setRayToken": { needs: "nothing", enabled: async (host, target) => (await import("./host/targets/rayToken.ts")).setRayToken(host, target) },
  "seesaw.cleanTarget": { needs: "trust", enabled: async (host, target) => (await import("./host/targets/cleanTarget.ts")).cleanTarget(host, target) },
  "seesaw.showDryRun": { needs: "trust", enabled: async (host, target) => (await import("./host/targets/dryRun.ts")).chooseDryRun(host, target) },
  "seesaw.fetchCheckpoint": { needs: "trust", enabled: async (host, target) => (await import("./host/targets/fetchCheckpoint.ts")).fetchCheckpoint(host, target) },
  "seesaw.openSample": { needs: "nothing", enabled: (host) => openSample(host.extension) },
  "seesaw.refresh": { needs: "nothing", enabled: refresh },
  "seesaw.showLog": { needs: "nothing", enabled: (host) => host.log.show() },
};

/** Registers the table; the only `registerCommand` call. `host` null: activation failed with `failure`. */
export function registerCommands(host: Host | null, log: LogChannel, failure = ""): Disposable {
  const registered = commandIds.map((id) => vscode.commands.registerCommand(id, (target?: NodeTarget) => run(id, host, log, failure, argumentOf(target))));
  return toDisposable(() => registered.forEach((item) => item.dispose()));
}

async function run(id: CommandId, host: Host | null, log: LogChannel, failure: string, target: NodeTarget | undefined): Promise<void> {
  if (id === "seesaw.showLog") return log.show();
  if (host === null) return void (await disabled(vscode.l10n.t("Seesaw could not start: {0}", failure), vscode.l10n.t("Show Log"), "seesaw.showLog"));
  if (table[id].needs === "trust" && !vscode.workspace.isTrusted) {
    return void (await disabled(vscode.l10n.t("Seesaw starts nothing in a workspace that you do not trust. Recorded runs can be viewed."), vscode.l10n.t("Manage Workspace Trust"), "workbench.trust.manage"));
  }
  try {
    await table[id].enabled(host, target);
  } catch (error) {
    await showFailure(id, error, log);
  }
}

async function disabled(message: string, label: string, command: string): Promise<void> {
  if ((await vscode.window.showWarningMessage(message, label)) === label) await vscode.commands.executeCommand(command);
}

/** Menus pass a tree item, a click its target, the editor's title bar a URI, the palette nothing. */
function argumentOf(argument: unknown): NodeTarget | undefined {
  if (typeof argument !== "object" || argument === null) return undefined;
  if (argument instanceof vscode.Uri) return { file: argument.fsPath };
  const target = "target" in argument ? argument.target : argument;
  return typeof target === "object" && target !== null && "file" in target ? (target as NodeTarget) : undefined;
}

async function showDrift(host: Host, target?: NodeTarget): Promise<void> {
  await host.drift.show(target === undefined ? undefined : selectionOf(target));
}

/** One more tab: with what was pointed at, else with what the view shows. */
function openDriftEditor(host: Host, target?: NodeTarget): void {
  host.driftEditors.open(target === undefined ? host.drift.selection : selectionOf(target));
}

function selectionOf({ file, skill, split, row }: NodeTarget): Partial<DriftSelection> {
  return { pipeline: file, ...(skill === undefined ? {} : { skill }), ...(split === undefined ? {} : { split }), ...(row === undefined ? {} : { row }) };
}

async function openPipeline(host: Host, target?: NodeTarget): Promise<void> {
  const views = host.model.views();
  const view = views.find(({ uri }) => uri.fsPath === target?.file) ?? views.find(({ pipeline }) => pipeline === null) ?? views[0];
  if (view === undefined) return;
  const stage = view.pipeline?.stages.find(({ id }) => id === target?.stage);
  const place = target?.on === undefined ? undefined : view.pipeline?.ranges?.[`/targets/${target.on}`];
  const finding = view.diagnostics.find(({ severity }) => severity === "error");
  await openLine(view.uri.fsPath, stage?.range.line ?? place?.line ?? finding?.range.line ?? 1);
}

/** The target it was called on, else all there are. */
async function checkTargets(host: Host, target?: NodeTarget): Promise<void> {
  await host.ready;
  if (target?.on === undefined) await vscode.commands.executeCommand(`${"seesaw.targets" satisfies ViewId}.focus`);
  await host.targets.check(target?.file, target?.on);
}

async function refresh(host: Host): Promise<void> {
  await host.pipelines.search();
  await host.model.refresh();
}
