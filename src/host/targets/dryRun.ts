import * as vscode from "vscode";
import { dryRunText } from "../../domain/targets/dryRunText.ts";
import { targetAddress } from "../../domain/targets/targetList.ts";
import { AppError } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { chooseStage, chooseTarget, type ChosenStage } from "../choices.ts";
import { showFailure } from "../errorMessages.ts";
import type { RunCommandHost } from "../runStage.ts";
import type { NodeTarget } from "../stageNodes.ts";
import type { TextPages } from "../textPages.ts";

/** Show What Run Stage Would Do: choose a stage and a target, then the page. */
export async function chooseDryRun(host: RunCommandHost, called?: NodeTarget): Promise<void> {
  await host.model.refresh();
  const stage = await chooseStage(host.model.views(), called);
  const chosen = stage === undefined ? undefined : await chooseTarget(stage);
  if (chosen !== undefined) await host.showDryRun(chosen);
}

/** Asks what starting a stage would do, and shows it as a page to read: commands, files, job script. Nothing is started or copied. */
export async function showDryRun(host: Omit<RunCommandHost, "showDryRun">, pages: TextPages, { view, pipeline, stage, seeds }: ChosenStage): Promise<void> {
  const title = t("Looking up what running {0} would do", stage.id);
  try {
    const description = await vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title, cancellable: true }, async (_report, token) => {
      const abort = new AbortController();
      token.onCancellationRequested(() => abort.abort());
      return host.launcher.describeStage(pipeline, view.diagnostics, stage.id, { ...(await host.startOptions(view)), signal: abort.signal }, seeds);
    });
    const target = pipeline.targets.find(({ id }) => id === stage.on);
    const place = target === undefined || target.kind === "local" ? t("this machine") : `${target.id} (${targetAddress(target)})`;
    await pages.show(`${stage.id}.dry-run.txt`, dryRunText(stage.id, place, description));
  } catch (error) {
    if (!AppError.is(error, "cancelled")) await showFailure(t("Run {0}", stage.id), error, host.log);
  }
}
