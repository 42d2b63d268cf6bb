import { basename } from "node:path";
import * as vscode from "vscode";
import { formatBytes } from "../../domain/format.ts";
import type { RunnerSetup, SetupOptions, SetupPlan } from "../../targets/runnerSetup.ts";
import { AppError } from "../../util/errors.ts";
import type { Log } from "../../util/log.ts";
import type { StartOptions } from "../../targets/launcher.ts";
import { commandText } from "../stageDetail.ts";
import type { PipelineView, WorkspaceModel } from "../workspaceModel.ts";

/** What Set Up Runner needs of the host. */
export interface SetupHost {
  model: WorkspaceModel;
  setup: RunnerSetup;
  startOptions(view: PipelineView): Promise<StartOptions>;
  log: Log;
  ready: Promise<void>;
}

/** One at a time: two would write into the same environment. */
let working = false;

/** Set Up Runner: shows what will be made and installed, asks, and does it with a log and a way out. */
export async function setUpRunner(host: SetupHost): Promise<void> {
  if (working) return void vscode.window.showInformationMessage(vscode.l10n.t("The runner is being set up already: see the progress."));
  working = true;
  try {
    await host.ready;
    const folder = await chooseFolder();
    if (folder === undefined) return;
    const options = await optionsFor(host, folder);
    const plan = await vscode.window.withProgress({ location: vscode.ProgressLocation.Window, title: vscode.l10n.t("Looking for a Python") }, () => host.setup.plan(folder.uri.fsPath, options));
    if (await confirmed(plan)) await install(host, plan, options);
  } finally {
    working = false;
  }
}

async function chooseFolder(): Promise<vscode.WorkspaceFolder | undefined> {
  const folders = vscode.workspace.workspaceFolders ?? [];
  if (folders.length === 0) throw new AppError("not-found", vscode.l10n.t("Open the folder of your project first: the environment is made in it."));
  return folders.length === 1 ? folders[0] : vscode.window.showWorkspaceFolderPick({ placeHolder: vscode.l10n.t("In which folder?") });
}

/** The same places as for a run: the setting and the Python extensions' choice come first. */
async function optionsFor(host: SetupHost, folder: vscode.WorkspaceFolder): Promise<SetupOptions> {
  const view = host.model.views().find(({ uri }) => vscode.workspace.getWorkspaceFolder(uri)?.uri.toString() === folder.uri.toString());
  const trusted = vscode.workspace.isTrusted;
  return { trusted, python: view === undefined ? { top: folder.uri.fsPath } : ((await host.startOptions(view)).python ?? {}) };
}

/** The question: folder, Python, packages, size and the exact commands. */
async function confirmed({ folder, venv, base, packages, commands, free }: SetupPlan): Promise<boolean> {
  const go = vscode.l10n.t("Set Up");
  const detail = [
    base === null ? vscode.l10n.t("Folder: {0}, which has a Python environment already; what is missing in it is installed.", venv) : vscode.l10n.t("Folder: {0}, a new Python environment.", venv),
    ...(base === null ? [] : [vscode.l10n.t("Python: {0} ({1}, {2}).", base.version, base.how, base.command)]),
    vscode.l10n.t("Packages: {0}, with what they need.", packages.join(", ")),
    process.platform === "linux" && process.arch === "x64"
      ? vscode.l10n.t("Size: about 2 GB where pip finds torch for the CPU, several GB more with the CUDA libraries that PyPI's torch brings on Linux.")
      : vscode.l10n.t("Size: about 2 GB."),
    ...(free === null ? [] : [vscode.l10n.t("Free on this disk: {0}.", formatBytes(free))]),
    vscode.l10n.t("pip downloads from the index it is configured for. Apart from its cache, nothing outside of the folder is changed."),
    "",
    ...commands.map((argv) => commandText(argv)),
  ].join("\n");
  return (await vscode.window.showInformationMessage(vscode.l10n.t("Set up the runner in {0}?", basename(folder)), { modal: true, detail }, go)) === go;
}

async function install(host: SetupHost, plan: SetupPlan, options: SetupOptions): Promise<void> {
  const title = vscode.l10n.t("Setting up the runner");
  const choice = await vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title, cancellable: true }, async (progress, token) => {
    const abort = new AbortController();
    token.onCancellationRequested(() => abort.abort());
    return host.setup.run(plan, { ...options, signal: abort.signal }, {
      step: (name) => progress.report({ message: name === "venv" ? vscode.l10n.t("making the environment") : vscode.l10n.t("installing packages, which takes minutes") }),
      line(text) {
        host.log.info(text);
        const found = /^\s*(Collecting|Downloading|Installing collected packages:?)\s+([\w.-]+)?/.exec(text);
        if (found?.[2] !== undefined) progress.report({ message: found[1]?.startsWith("Installing") === true ? vscode.l10n.t("installing") : vscode.l10n.t("fetching {0}", found[2]) });
      },
    });
  });
  host.log.info(`The runner is set up: ${choice.command ?? ""}, Python ${choice.version ?? ""}.`);
  const named = options.python.explicit?.command;
  if (named !== undefined && named !== plan.python) {
    // It goes first in the chain, complete or not.
    return void vscode.window.showWarningMessage(vscode.l10n.t("The runner is set up in {0}, but the setting seesaw.python.path names {1}, which is used instead: clear it.", plan.venv, named));
  }
  const run = vscode.l10n.t("Run Stage");
  void vscode.window.showInformationMessage(vscode.l10n.t("The runner is set up: Python {0} in {1}.", choice.version ?? "", plan.venv), run).then((answer) => (answer === run ? vscode.commands.executeCommand("seesaw.runStage") : undefined));
}
