import * as vscode from "vscode";
import { formatPlural } from "../domain/format.ts";
import type { Launcher, PythonHints, StageOutlook, StartOptions, StartedRun } from "../targets/launcher.ts";
import { requirePython, type PythonChoice } from "../targets/python.ts";
import { recipeArgv } from "../targets/runnerEnv.ts";
import { readSetting } from "../config.ts";
import { AppError } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { chooseStage, type ChosenStage } from "./choices.ts";
import { showFailure } from "./errorMessages.ts";
import { pythonCandidates } from "./pythonExtensions.ts";
import { runLine } from "./runWords.ts";
import type { NodeTarget } from "./stageNodes.ts";
import type { PipelineView, WorkspaceModel } from "./workspaceModel.ts";

/** What the commands on runs need. */
export interface RunCommandHost {
  model: WorkspaceModel;
  launcher: Launcher;
  /** Trust, the setting and the Python extensions' choice, for whatever starts a program in `view`. */
  startOptions(view: PipelineView): Promise<StartOptions>;
  log: Log;
}

/** Run Stage: choose, see exactly what will happen, start detached. RunFollower then shows it in the status bar. */
export async function runStage(host: RunCommandHost, target?: NodeTarget): Promise<void> {
  await host.model.refresh();
  let title = "Run Stage";
  try {
    const chosen = await chooseStage(host.model.views(), target);
    if (chosen === undefined) return;
    title = `Run ${chosen.stage.id}`;
    const current = await saved(host, chosen);
    const { outlook, python } = await preview(host, current);
    if (!(await confirmed(current, outlook, python))) return;
    await start(host, current);
  } catch (error) {
    await showFailure(title, error, host.log);
  } finally {
    await host.model.refresh();
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

async function preview(host: RunCommandHost, { view, pipeline, stage }: ChosenStage): Promise<{ outlook: StageOutlook; python: PythonChoice & { command: string } }> {
  return vscode.window.withProgress({ location: vscode.ProgressLocation.Window, title: `$(loading~spin) Checking what ${stage.id} needs` }, async () => {
    const options = await host.startOptions(view);
    const outlook = await host.launcher.outlook(pipeline, stage.id);
    if (outlook.active !== null) throw new AppError("already-running", `${stage.id} is already running: ${runLine(outlook.active.state)}.`);
    return { outlook, python: requirePython(await host.launcher.python(pipeline, stage.id, options)) };
  });
}

/** Shows the exact command, the start checkpoint, the steps and what will be written. */
async function confirmed({ view, stage }: ChosenStage, { plan, upToDate }: StageOutlook, python: PythonChoice & { command: string }): Promise<boolean> {
  const folder = `.seesaw/runs/${stage.id}-<time>`;
  const argv = recipeArgv(python.command, stage.recipe, folder, stage.launch);
  const steps = stage.args["max_steps"];
  const detail = [
    ...(upToDate === null ? [] : [`Up to date: ${upToDate.id} has the same inputs. Running again repeats it.`, ""]),
    `Starts from ${plan.start.label}${plan.start.run === null ? ", the base model" : ` of ${plan.start.run}`}.`,
    `${typeof steps === "number" ? formatPlural(steps, "step") : "Steps as the data and arguments give"} of ${stage.recipe} on ${vscode.workspace.asRelativePath(stage.data)}${plan.replay === null ? "" : `, ${Math.round((stage.replay?.ratio ?? 0) * 100)} % replay from ${plan.replay.buffer}`}.`,
    `Writes checkpoints, traces and a journal to ${folder}, next to ${view.label}. Nothing is overwritten.`,
    "",
    argv.map(quoted).join(" "),
    "",
    `Python${python.version === null ? "" : ` ${python.version}`} from ${python.how}. The run goes on when this window is closed.`,
  ].join("\n");
  const go = "Start";
  return (await vscode.window.showInformationMessage(`Run stage ${stage.id}?`, { modal: true, detail }, go)) === go;
}

async function start(host: RunCommandHost, { view, pipeline, stage }: ChosenStage): Promise<StartedRun> {
  const progress = { location: vscode.ProgressLocation.Notification, title: `Starting ${stage.id}`, cancellable: true };
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

/** As a shell would need it: only for reading, nothing is ever run through a shell. */
function quoted(argument: string): string {
  return /^[\w./:=@%+<>-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`;
}
