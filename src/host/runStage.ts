import * as vscode from "vscode";
import { needsRows, plannedSteps } from "../domain/run/plannedSteps.ts";
import { staleAfter } from "../domain/run/staleAfter.ts";
import type { RunRecord } from "../storage/runs/runStore.ts";
import type { Launcher, PythonHints, StageOutlook, StartOptions, StartedRun } from "../targets/launcher.ts";
import { requirePython } from "../targets/python.ts";
import { recipeArgv } from "../targets/runnerEnv.ts";
import { readSetting } from "../config.ts";
import { AppError, messageOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { chooseStage, type ChosenStage } from "./choices.ts";
import { showFailure } from "./errorMessages.ts";
import { pythonCandidates } from "./pythonExtensions.ts";
import { queuePosition, type QueuedStage, type RunQueue } from "./runQueue.ts";
import { runLine } from "./runWords.ts";
import { commandText, stageDetail, type StagePreview } from "./stageDetail.ts";
import type { NodeTarget } from "./stageNodes.ts";
import type { PipelineView, WorkspaceModel } from "./workspaceModel.ts";

/** What the commands on runs need. */
export interface RunCommandHost {
  model: WorkspaceModel;
  launcher: Launcher;
  queue: RunQueue;
  /** Trust, the setting and the Python extensions' choice, for whatever starts a program in `view`. */
  startOptions(view: PipelineView): Promise<StartOptions>;
  /** Readable rows of a dataset file. */
  countRows(path: string, signal: AbortSignal): Promise<number>;
  log: Log;
}

/** Counting the rows of a large file for an estimate is given up after this, in ms. */
const countingMs = 3000;

/** Run Stage: choose, see exactly what will happen, start detached or queue behind what runs. RunFollower then shows it in the status bar. */
export async function runStage(host: RunCommandHost, target?: NodeTarget): Promise<void> {
  await host.model.refresh();
  let title = "Run Stage";
  try {
    const chosen = await chooseStage(host.model.views(), target);
    if (chosen === undefined) return;
    title = `Run ${chosen.stage.id}`;
    const current = await saved(host, chosen);
    const item = { file: current.view.uri.fsPath, stage: current.stage.id };
    const ahead = host.queue.live();
    const busy = ahead.length > 0 || host.queue.starting !== null;
    const position = queuePosition(host.queue, item.file, item.stage);
    if (busy && position !== null) return void vscode.window.showInformationMessage(`${item.stage} is already queued, at position ${position}.`);
    if (!(await confirmed(await preview(host, current, ahead)))) return;
    if (busy) host.queue.add(item, ahead);
    else await host.queue.launch(item, () => start(host, current, vscode.ProgressLocation.Notification));
  } catch (error) {
    await showFailure(title, error, host.log);
  } finally {
    await host.model.refresh();
  }
}

/** Starts a stage whose turn has come; it was agreed to when it was queued. Returns its run folder. */
export async function startQueued(host: RunCommandHost, { file, stage: id }: QueuedStage): Promise<string> {
  try {
    await host.model.refresh();
    const view = host.model.view(file);
    const stage = view?.pipeline?.stages.find((one) => one.id === id);
    if (view?.pipeline == null || stage === undefined) throw new AppError("bad-pipeline", view === undefined ? `${file} is gone.` : `${view.label} has errors, or no stage ${id} any more.`);
    const { dir } = await start(host, await saved(host, { view, pipeline: view.pipeline, stage }), vscode.ProgressLocation.Window);
    await host.model.refresh();
    return dir;
  } catch (error) {
    void showFailure(`Run ${id}`, error, host.log);
    throw error;
  }
}

/** Trust, the setting and what the Python extensions know: for everything that starts a program in `view`. */
export async function startOptions(view: PipelineView, log: Log): Promise<StartOptions> {
  const root = vscode.Uri.joinPath(view.uri, "..");
  const path = readSetting("seesaw.python.path", view.uri).trim();
  const folder = vscode.workspace.getWorkspaceFolder(view.uri);
  const python: PythonHints = {
    fromHost: vscode.workspace.isTrusted ? await pythonCandidates(root.fsPath, log) : [],
    ...(path === "" ? {} : { explicit: { command: path, setting: "the setting seesaw.python.path" } }),
    ...(folder === undefined ? {} : { top: folder.uri.fsPath }),
  };
  return { trusted: vscode.workspace.isTrusted, python };
}

/** Saves `seesaw.yaml` first: what runs is what is on disk. */
async function saved(host: RunCommandHost, chosen: ChosenStage): Promise<ChosenStage> {
  const file = chosen.view.uri.toString();
  const open = vscode.workspace.textDocuments.find((document) => document.uri.toString() === file);
  if (open?.isDirty === true) await open.save();
  await host.model.refresh();
  const view = host.model.view(chosen.view.uri.fsPath);
  const stage = view?.pipeline?.stages.find(({ id }) => id === chosen.stage.id);
  if (view?.pipeline == null || stage === undefined) throw new AppError("bad-pipeline", `${chosen.view.label} has errors: see the Problems view.`);
  return { view, pipeline: view.pipeline, stage };
}

export async function preview(host: RunCommandHost, { view, pipeline, stage }: ChosenStage, ahead: readonly RunRecord[]): Promise<StagePreview> {
  return vscode.window.withProgress({ location: vscode.ProgressLocation.Window, title: `$(loading~spin) Checking what ${stage.id} needs` }, async () => {
    const parent = stage.from;
    const awaited = parent !== null && (ahead.some((run) => run.stage === parent) || host.queue.starting?.stage === parent || queuePosition(host.queue, view.uri.fsPath, parent) !== null);
    const outlook = await host.launcher.outlook(pipeline, stage.id).catch((error: unknown) => {
      if (awaited && AppError.is(error, "not-finished")) return null;
      throw error;
    });
    if (outlook !== null && outlook.active !== null) throw new AppError("already-running", `${stage.id} is already running: ${runLine(outlook.active.state)}.`);
    const python = requirePython(await host.launcher.python(pipeline, stage.id, await host.startOptions(view)));
    const folder = `.seesaw/runs/${stage.id}-<time>`;
    const starting = host.queue.starting;
    return {
      stage,
      start: outlook === null || awaited ? `the last checkpoint of ${parent ?? ""}, which is to be done by then` : startWords(outlook.plan),
      upToDate: awaited ? null : outlook?.upToDate?.id ?? null,
      steps: plannedSteps(stage, needsRows(stage) ? await rowsOf(host, stage.data) : null),
      data: vscode.workspace.asRelativePath(stage.data),
      stale: view.chain === null ? [] : staleAfter(pipeline, view.chain, stage.id),
      runs: view.listing.runs.filter((run) => run.stage === stage.id).length,
      argv: recipeArgv(python.command, stage.recipe, folder, stage.launch),
      folder,
      label: view.label,
      python: `${python.version ?? ""} from ${python.how}`.trim(),
      ahead: ahead.length > 0 ? ahead.map((run) => `${run.stage}, ${runLine(run.state)}`) : starting === null ? [] : [`${starting.stage}, starting`],
    };
  });
}

function startWords({ start }: StageOutlook["plan"]): string {
  return `${start.label}${start.run === null ? ", the base model" : ` of ${start.run}`}`;
}

/** For an estimate only: what cannot be counted soon, or at all, is not known. */
async function rowsOf(host: RunCommandHost, path: string): Promise<number | null> {
  try {
    return await host.countRows(path, AbortSignal.timeout(countingMs));
  } catch (error) {
    host.log.info(`The rows of ${path} were not counted: ${messageOf(error)}`);
    return null;
  }
}

/** Shows the exact command, the start checkpoint, the steps and what will be written, and asks. */
async function confirmed(preview: StagePreview): Promise<boolean> {
  const queue = preview.ahead.length > 0;
  const go = queue ? "Queue" : "Start";
  const copy = "Copy Command";
  const answer = await vscode.window.showInformationMessage(`${queue ? "Queue" : "Run"} stage ${preview.stage.id}?`, { modal: true, detail: stageDetail(preview) }, go, copy);
  if (answer === copy) await vscode.env.clipboard.writeText(commandText(preview.argv));
  return answer === go;
}

export async function start(host: RunCommandHost, { view, pipeline, stage }: ChosenStage, location: vscode.ProgressLocation): Promise<StartedRun> {
  const progress = { location, title: `Starting ${stage.id}`, cancellable: true };
  return vscode.window.withProgress(progress, async (report, token) => {
    report.report({ message: "checking packages, data and disk space" });
    const abort = new AbortController();
    token.onCancellationRequested(() => abort.abort());
    const options = await host.startOptions(view);
    const started = await host.launcher.startStage(pipeline, view.diagnostics, stage.id, { ...options, signal: abort.signal });
    for (const note of started.notes) host.log.info(note);
    return started;
  });
}
