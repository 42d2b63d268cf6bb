import * as vscode from "vscode";
import type { Diagnostic, Pipeline } from "../domain/pipeline/pipelineModel.ts";
import { formatPlural } from "../domain/format.ts";
import { targetAddress } from "../domain/targets/targetList.ts";
import { copyText } from "../domain/targets/copyText.ts";
import { needsRows, plannedSteps } from "../domain/run/plannedSteps.ts";
import { staleAfter } from "../domain/run/staleAfter.ts";
import type { RunRecord } from "../storage/runs/runStore.ts";
import type { Launcher, PythonHints, StageOutlook, StartOptions, StartedRun } from "../targets/launcher.ts";
import type { SeedOptions } from "../targets/seedRuns.ts";
import { requirePython } from "../targets/python.ts";
import { recipeArgv } from "../targets/runnerEnv.ts";
import { readSetting } from "../config.ts";
import { AppError, messageOf } from "../util/errors.ts";
import { t } from "../util/l10n.ts";
import type { Log } from "../util/log.ts";
import { chooseStage, chooseTarget, placeOf, type ChosenStage } from "./choices.ts";
import { showFailure } from "./errorMessages.ts";
import { pythonCandidates } from "./pythonExtensions.ts";
import { queuePosition, type QueuedStage, type RunQueue } from "./runQueue.ts";
import { isLive, runLine } from "./runWords.ts";
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
  /** What a stage will need and take, in a few sentences. */
  costSummary(pipeline: Pipeline, stage: string, signal: AbortSignal): Promise<string[]>;
  /** Opens a page with what starting a stage would do. */
  showDryRun(chosen: ChosenStage): Promise<void>;
  /** Starts a stage with several seeds, as the command line does. */
  runSeeds(pipeline: Pipeline, diagnostics: readonly Diagnostic[], options: SeedOptions): Promise<unknown>;
  log: Log;
}

/** Counting the rows of a large file for an estimate is given up after this, in ms. */
const countingMs = 3000;

/** Run Stage: choose, see exactly what will happen, start detached or queue behind what runs. RunFollower then shows it in the status bar. */
export async function runStage(host: RunCommandHost, target?: NodeTarget): Promise<void> {
  await host.model.refresh();
  let title = t("Run Stage");
  try {
    const chosen = await chooseStage(host.model.views(), target);
    if (chosen === undefined) return;
    title = t("Run {0}", chosen.stage.id);
    const current = await saved(host, chosen);
    const item = { file: current.view.uri.fsPath, stage: current.stage.id };
    await host.queue.update();
    const { ahead, busy } = turnOf(host, current);
    const position = queuePosition(host.queue, item.file, item.stage);
    if (busy && position !== null) return void sayQueued(item.stage, position);
    // What waits its turn is started by the file as it stands then, so only what starts now can go elsewhere.
    const wanted = busy ? current : await chooseTarget(current);
    if (wanted?.seeds !== undefined) return await (await import("./targets/severalSeeds.ts")).runSeveralSeeds(host, wanted, wanted.seeds);
    if (wanted === undefined || !(await confirmed(host, wanted, await preview(host, wanted, ahead)))) return;
    const go = (): Promise<StartedRun> => start(host, wanted, vscode.ProgressLocation.Notification);
    // The queue is of this machine; others have their own.
    if (placeOf(wanted) !== null && !busy) await go();
    else await startOrQueue(host, item, busy ? ahead : null, go);
  } catch (error) {
    await showFailure(title, error, host.log);
  } finally {
    await host.model.refresh();
  }
}

/**
 * What a stage has to wait for: what runs here, unless it runs elsewhere, and on whatever machine the stages whose checkpoints
 * it needs. `busy`: it has to wait, be it for something that has no run yet.
 */
export function turnOf({ queue }: Pick<RunCommandHost, "queue">, { view, pipeline, stage }: ChosenStage): { ahead: RunRecord[]; busy: boolean } {
  const parents = new Set([stage.from, ...stage.references.map((name) => name.replace(/@\d+$/, ""))]);
  const away = placeOf({ pipeline, stage }) !== null;
  const here = away ? [] : queue.live();
  const needed = view.listing.runs.filter((run) => parents.has(run.stage) && isLive(run.state.status) && !here.some(({ dir }) => dir === run.dir));
  const ahead = [...here, ...needed];
  const waited = [...parents].some((id) => id !== null && (queuePosition(queue, view.uri.fsPath, id) !== null || queue.starting?.stage === id));
  return { ahead, busy: ahead.length > 0 || waited || (!away && queue.busy) };
}

/** Starts now, or waits behind `ahead`. When something else began while the person was asked, it waits, and they are told. */
export async function startOrQueue(host: RunCommandHost, item: QueuedStage, ahead: readonly RunRecord[] | null, go: () => Promise<StartedRun>): Promise<void> {
  if (ahead !== null) return void (await host.queue.add(item, ahead));
  if ((await host.queue.launch(item, go)) === null) sayQueued(item.stage, queuePosition(host.queue, item.file, item.stage));
}

function sayQueued(stage: string, position: number | null): void {
  if (position !== null) void vscode.window.showInformationMessage(t("{0} is queued, at position {1}: it starts when what runs now is done.", stage, position));
}

/** Starts a stage whose turn has come; it was agreed to when it was queued. Returns its run folder. */
export async function startQueued(host: RunCommandHost, { file, stage: id, resume }: QueuedStage): Promise<string> {
  try {
    await host.model.refresh();
    const view = host.model.view(file);
    const stage = view?.pipeline?.stages.find((one) => one.id === id);
    if (view?.pipeline == null || stage === undefined) throw new AppError("bad-pipeline", view === undefined ? t("{0} is gone.", file) : t("{0} has errors, or no stage {1} any more.", view.label, id));
    const { dir } =
      resume === undefined
        ? await start(host, await saved(host, { view, pipeline: view.pipeline, stage }), vscode.ProgressLocation.Window)
        : await host.launcher.resumeRun(view.pipeline.root, resume, await host.startOptions(view));
    await host.model.refresh();
    return dir;
  } catch (error) {
    void showFailure(t("Run {0}", id), error, host.log);
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
    ...(path === "" ? {} : { explicit: { command: path, setting: t("the setting seesaw.python.path") } }),
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
  if (view?.pipeline == null || stage === undefined) throw new AppError("bad-pipeline", t("{0} has errors: see the Problems view.", chosen.view.label));
  return { view, pipeline: view.pipeline, stage };
}

/** What starting a stage would do. `seed`: with another one than the file's. */
export async function preview(host: RunCommandHost, { view, pipeline, stage }: ChosenStage, ahead: readonly RunRecord[], seed?: number): Promise<StagePreview> {
  return vscode.window.withProgress({ location: vscode.ProgressLocation.Window, title: `$(loading~spin) ${t("Checking what {0} needs", stage.id)}` }, async () => {
    const place = placeOf({ pipeline, stage });
    const parent = stage.from;
    const awaited = parent !== null && (ahead.some((run) => run.stage === parent) || host.queue.starting?.stage === parent || queuePosition(host.queue, view.uri.fsPath, parent) !== null);
    const outlook = await host.launcher.outlook(pipeline, stage.id, seed).catch((error: unknown) => {
      if (awaited && AppError.is(error, "not-finished")) return null;
      throw error;
    });
    if (outlook !== null && outlook.active !== null) throw new AppError("already-running", t("{0} is already running: {1}.", stage.id, runLine(outlook.active.state)));
    const python = requirePython(await host.launcher.python(pipeline, stage.id, await host.startOptions(view)));
    const folder = place === null ? `.seesaw/runs/${stage.id}-<time>` : `${place.dir}/runs/${stage.id}-<time>`;
    const starting = host.queue.starting;
    return {
      place: place === null ? null : { target: place.id, address: targetAddress(place), dir: place.dir },
      stage,
      start: outlook === null || awaited ? t("the last checkpoint of {0}, which is to be done by then", parent ?? "") : startWords(outlook.plan),
      upToDate: awaited ? null : outlook?.upToDate?.id ?? null,
      steps: plannedSteps(stage, stage.data !== null && needsRows(stage) ? await rowsOf(host, stage.data) : null),
      cost: await costLines(host, pipeline, stage.id),
      data: stage.data === null ? t("no rows of its own") : vscode.workspace.asRelativePath(stage.data),
      stale: view.chain === null ? [] : staleAfter(pipeline, view.chain, stage.id),
      runs: view.listing.runs.filter((run) => run.stage === stage.id).length,
      argv: recipeArgv(python.command, stage.recipe, folder, stage.launch),
      folder,
      label: view.label,
      python: t("{0} from {1}", python.version ?? "", python.how).trim(),
      ahead: ahead.length > 0 ? ahead.map((run) => `${run.stage}, ${runLine(run.state)}`) : place !== null ? (awaited ? [parent] : []) : starting === null ? host.queue.elsewhere : [t("{0}, starting", starting.stage)],
    };
  });
}

function startWords({ start }: StageOutlook["plan"]): string {
  return start.run === null ? t("{0}, the base model", start.label) : t("{0} of {1}", start.label, start.run);
}

/** The price of a stage in a few sentences; a stage can be started without. */
async function costLines(host: RunCommandHost, pipeline: Pipeline, stage: string): Promise<string[]> {
  try {
    return await host.costSummary(pipeline, stage, AbortSignal.timeout(countingMs));
  } catch (error) {
    host.log.info(`What ${stage} will cost cannot be told: ${messageOf(error)}`);
    return [];
  }
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

/** Shows the exact command, the start checkpoint, the steps and what will be written, and asks. Looking at the dry run starts nothing. */
export async function confirmed(host: Pick<RunCommandHost, "showDryRun">, chosen: ChosenStage, preview: StagePreview): Promise<boolean> {
  const queue = preview.ahead.length > 0;
  const go = queue ? t("Queue") : t("Start");
  const copy = t("Copy Command");
  const show = t("Show What Would Be Done");
  const { seeds, stage } = preview;
  const question = queue ? t("Queue stage {0}?", stage.id) : seeds === undefined ? t("Run stage {0}?", stage.id) : t("Run stage {0} with {1}?", stage.id, formatPlural(seeds.run.length, "seed"));
  const answer = await vscode.window.showInformationMessage(question, { modal: true, detail: stageDetail(preview) }, go, show, copy);
  if (answer === show) await host.showDryRun(chosen);
  if (answer === copy) await vscode.env.clipboard.writeText(commandText(preview.argv));
  return answer === go;
}

export async function start(host: RunCommandHost, { view, pipeline, stage }: ChosenStage, location: vscode.ProgressLocation): Promise<StartedRun> {
  return whileStarting(host, view, { location, title: t("Starting {0}", stage.id) }, async (options) => {
    const started = await host.launcher.startStage(pipeline, view.diagnostics, stage.id, options);
    for (const note of started.notes) host.log.info(note);
    return started;
  });
}

/** Tells what is checked and copied before something starts, and lets the person cancel it. */
export async function whileStarting<T>(host: Pick<RunCommandHost, "startOptions">, view: PipelineView, shown: { location: vscode.ProgressLocation; title: string }, go: (options: StartOptions) => Promise<T>): Promise<T> {
  return vscode.window.withProgress({ ...shown, cancellable: true }, async (report, token) => {
    report.report({ message: t("checking packages, data and disk space") });
    const abort = new AbortController();
    token.onCancellationRequested(() => abort.abort());
    const options = await host.startOptions(view);
    return go({ ...options, signal: abort.signal, onCopy: (what, copied, total) => report.report({ message: copyText(what, copied, total) }) });
  });
}
