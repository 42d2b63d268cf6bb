import * as vscode from "vscode";
import { copyText } from "../domain/targets/copyText.ts";
import type { StartedRun } from "../targets/launcher.ts";
import type { RunRecord } from "../storage/runs/runStore.ts";
import { recipeArgv } from "../targets/runnerEnv.ts";
import { t } from "../util/l10n.ts";
import { chooseRun } from "./choices.ts";
import { showFailure } from "./errorMessages.ts";
import { startOrQueue, type RunCommandHost } from "./runStage.ts";
import { isLive, isResumable, runLine } from "./runWords.ts";
import { commandText } from "./stageDetail.ts";
import type { NodeTarget } from "./stageNodes.ts";

/** Asks a live run to stop, after a question: what it learned since its last checkpoint is lost. */
export async function stopRun(host: RunCommandHost, target?: NodeTarget): Promise<void> {
  await host.model.refresh();
  const chosen = await chooseRun(host.model.views(), target, t("Stop Run"), (run) => isLive(run.state.status));
  if (chosen === undefined) return;
  const { view, run } = chosen;
  const stop = t("Stop Run");
  const last = run.state.checkpoints.at(-1)?.step;
  const detail = `${standing(run.state)} ${last === undefined ? t("It has saved no checkpoint yet.") : t("It can be resumed from its checkpoint at step {0}.", last)}`;
  if ((await vscode.window.showWarningMessage(t("Stop {0}?", run.stage), { modal: true, detail }, stop)) !== stop) return;
  try {
    const options = await host.startOptions(view);
    // Here that is a moment; another machine has to answer first.
    const location = run.state.remote === null ? vscode.ProgressLocation.Window : vscode.ProgressLocation.Notification;
    await vscode.window.withProgress({ location, title: t("Stopping {0}", run.stage) }, () => host.launcher.stopRun(rootOf(view), run.id, options));
  } catch (error) {
    await showFailure(t("Stop {0}", run.stage), error, host.log);
  } finally {
    await host.model.refresh();
  }
}

/** Where a run is that is about to be stopped, as a sentence. */
function standing(state: RunRecord["state"]): string {
  if (state.status === "queued") return t("It is {0}; its job is taken out of the queue.", runLine(state));
  return state.status === "unreachable" ? t("It is {0}; its machine has to answer before it can be stopped.", runLine(state)) : t("It is at {0}.", runLine(state));
}

/** Goes on with a run that ended before it was done. */
export async function resumeRun(host: RunCommandHost, target?: NodeTarget): Promise<void> {
  await host.model.refresh();
  const chosen = await chooseRun(host.model.views(), target, t("Resume Run"), (run) => isResumable(run.state.status));
  if (chosen === undefined) return;
  const { view, run } = chosen;
  try {
    await host.queue.update();
    const item = { file: view.uri.fsPath, stage: run.stage, resume: run.id };
    const go = async (): Promise<StartedRun> =>
      vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title: t("Resuming {0}", run.stage), cancellable: run.state.remote !== null }, async (report, token) => {
        const abort = new AbortController();
        token.onCancellationRequested(() => abort.abort());
        const onCopy = (what: string, copied: number, total: number): void => report.report({ message: copyText(what, copied, total) });
        return host.launcher.resumeRun(rootOf(view), run.id, { ...(await host.startOptions(view)), signal: abort.signal, onCopy });
      });
    // The queue is of this machine; others have their own.
    if (run.state.remote !== null) await go();
    else await startOrQueue(host, item, host.queue.busy ? host.queue.live() : null, go);
  } catch (error) {
    await showFailure(t("Resume {0}", run.stage), error, host.log);
  } finally {
    await host.model.refresh();
  }
}

/** Opens what a run printed; when it printed nothing, its agent's own log, or else its journal. */
export async function showRunLog(host: RunCommandHost, target?: NodeTarget): Promise<void> {
  const chosen = await chooseRun(host.model.views(), target, t("Show Run Log"), () => true);
  if (chosen === undefined) return;
  const dir = vscode.Uri.file(chosen.run.dir);
  const attempt = `attempt-${String(Math.max(1, chosen.run.state.attempt)).padStart(4, "0")}`;
  for (const file of [vscode.Uri.joinPath(dir, "out.log"), vscode.Uri.joinPath(dir, attempt, "agent.log"), vscode.Uri.joinPath(dir, "journal.jsonl")]) {
    try {
      if ((await vscode.workspace.fs.stat(file)).size === 0) continue;
    } catch {
      continue; // not written (yet)
    }
    return void (await vscode.window.showTextDocument(file, { preview: true }));
  }
  void vscode.window.showInformationMessage(t("{0} has written nothing yet.", chosen.run.id));
}

/** Shows a run's folder: in the system's file manager, or where there is none, in the Explorer. */
export async function revealRun(host: RunCommandHost, target?: NodeTarget): Promise<void> {
  const chosen = await chooseRun(host.model.views(), target, t("Reveal Run Folder"), () => true);
  if (chosen === undefined) return;
  const here = vscode.env.uiKind === vscode.UIKind.Desktop && vscode.env.remoteName === undefined;
  await vscode.commands.executeCommand(here ? "revealFileInOS" : "revealInExplorer", vscode.Uri.file(chosen.run.dir));
}

/** Copies the command line of a run as its agent started it. */
export async function copyCommand(host: RunCommandHost, target?: NodeTarget): Promise<void> {
  const chosen = await chooseRun(host.model.views(), target, t("Copy Command"), () => true);
  if (chosen === undefined) return;
  const { spec, dir } = chosen.run;
  await vscode.env.clipboard.writeText(commandText(recipeArgv(spec.target.python, spec.recipe, dir, spec.launch)));
  vscode.window.setStatusBarMessage(t("The command of {0} was copied", chosen.run.id), 3000);
}

/** Takes a waiting stage out of the queue; called without one, the stage that waits longest. */
export async function cancelQueued({ queue }: RunCommandHost, target?: NodeTarget): Promise<void> {
  const item = target?.stage === undefined ? queue.waiting[0] : { file: target.file, stage: target.stage };
  if (item !== undefined) await queue.remove(item.file, item.stage);
}

export async function continueQueue({ queue }: RunCommandHost): Promise<void> {
  await queue.resume();
}

function rootOf(view: { uri: vscode.Uri }): string {
  return vscode.Uri.joinPath(view.uri, "..").fsPath;
}
