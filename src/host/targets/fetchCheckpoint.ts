import * as vscode from "vscode";
import { copyText } from "../../domain/targets/copyText.ts";
import { t } from "../../util/l10n.ts";
import { chooseRun } from "../choices.ts";
import { showFailure } from "../errorMessages.ts";
import type { RunCommandHost } from "../runStage.ts";
import type { NodeTarget } from "../stageNodes.ts";

/** Fetch Checkpoint to This Machine: copies the weights of a checkpoint that lies on a target into the run's folder here. What was copied before it was stopped stays, and is gone on from. */
export async function fetchCheckpoint(host: RunCommandHost, called?: NodeTarget): Promise<void> {
  await host.model.refresh();
  const title = t("Fetch Checkpoint");
  const chosen = await chooseRun(host.model.views(), called, title, ({ state }) => state.remote !== null && state.checkpoints.length > 0);
  if (chosen === undefined) return;
  const { view, run } = chosen;
  const step = called?.step ?? (await chooseStep(title, run.state.checkpoints.map((checkpoint) => checkpoint.step)));
  if (step === undefined) return;
  try {
    const progress = { location: vscode.ProgressLocation.Notification, title: t("Fetching step {0} of {1}", step, run.stage), cancellable: true };
    const { folder, fetched } = await vscode.window.withProgress(progress, async (report, token) => {
      const abort = new AbortController();
      token.onCancellationRequested(() => abort.abort());
      let before = 0;
      const onCopy = (what: string, copied: number, total: number): void => {
        const share = total > 0 ? (100 * copied) / total : 0;
        report.report({ message: copyText(what, copied, total), ...(share > before ? { increment: share - before } : {}) });
        before = Math.max(before, share);
      };
      return host.launcher.fetchCheckpoint(vscode.Uri.joinPath(view.uri, "..").fsPath, run.id, step, { ...(await host.startOptions(view)), signal: abort.signal, onCopy });
    });
    const reveal = t("Reveal");
    const said = fetched ? t("Step {0} of {1} is in {2}.", step, run.stage, folder) : t("Step {0} of {1} is here already: {2}.", step, run.stage, folder);
    void vscode.window.showInformationMessage(said, reveal).then((answer) => (answer === reveal ? vscode.commands.executeCommand("revealInExplorer", vscode.Uri.file(folder)) : undefined));
  } catch (error) {
    await showFailure(title, error, host.log);
  } finally {
    await host.model.refresh();
  }
}

async function chooseStep(title: string, steps: readonly number[]): Promise<number | undefined> {
  if (steps.length === 1) return steps[0];
  const items = [...steps].reverse().map((step) => ({ label: t("step {0}", step), step }));
  return (await vscode.window.showQuickPick(items, { title, placeHolder: t("Which checkpoint?") }))?.step;
}
