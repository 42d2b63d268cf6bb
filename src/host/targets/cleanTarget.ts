import * as vscode from "vscode";
import { formatBytes } from "../../domain/format.ts";
import { cleaningSum, inOrder, kindText, shortName } from "../../domain/targets/cleaning.ts";
import type { CleaningPlan, StoreCleared } from "../../protocol/cleaning.ts";
import { AppError } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { showFailure } from "../errorMessages.ts";
import type { Host } from "../createHost.ts";
import type { NodeTarget } from "../stageNodes.ts";
import { chooseTargetOf } from "./chooseTarget.ts";

/** A modal message holds about so many lines. */
const most = 12;

/** Clean Up Target: shows what on a target nobody needs any more, and removes it once the person has said yes to the sum. */
export async function cleanTarget({ model, targets, targetDesk, startOptions, log }: Pick<Host, "model" | "targets" | "targetDesk" | "startOptions" | "log">, called?: NodeTarget, agreed = askToRemove): Promise<void> {
  await model.refresh();
  const title = t("Clean Up Target");
  const chosen = await chooseTargetOf(model.views(), called, title, ({ kind }) => kind !== "local");
  const pipeline = chosen?.view.shown ?? null;
  if (chosen === undefined || pipeline === null) return;
  const { view, target } = chosen;
  const busy = <T>(what: string, work: (options: Awaited<ReturnType<typeof startOptions>>) => Promise<T>): Thenable<T> =>
    vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title: what, cancellable: true }, async (_report, token) => {
      const abort = new AbortController();
      token.onCancellationRequested(() => abort.abort());
      return work({ ...(await startOptions(view)), signal: abort.signal });
    });
  try {
    const plan = await busy(t("Looking at what lies on {0}", target.id), (options) => targetDesk.cleaning(pipeline, target.id, options));
    if (plan.items.length === 0) return void vscode.window.showInformationMessage([t("On {0} there is nothing that nobody needs.", target.id), ...plan.notes].join(" "));
    if (!(await agreed(t("Remove {0} from {1}?", cleaningSum(plan.items), target.id), detailOf(plan)))) return;
    const cleared = await busy(t("Removing {0} from {1}", cleaningSum(plan.items), target.id), (options) => targetDesk.clean(pipeline, target.id, plan.items, options));
    void vscode.window[cleared.failed.length > 0 ? "showWarningMessage" : "showInformationMessage"](endOf(target.id, cleared));
    void targets.check(view.uri.fsPath, target.id); // its disk has more room now
  } catch (error) {
    if (!AppError.is(error, "cancelled")) await showFailure(title, error, log);
  }
}

async function askToRemove(message: string, detail: string): Promise<boolean> {
  const remove = t("Remove");
  return (await vscode.window.showWarningMessage(message, { modal: true, detail }, remove)) === remove;
}

function detailOf(plan: CleaningPlan): string {
  const items = inOrder(plan.items);
  const lines = items.slice(0, most).map(({ kind, name, bytes, why }) => `• ${kindText(kind)} ${shortName(name)}, ${formatBytes(bytes)}: ${why}`);
  if (items.length > most) lines.push(t("… and {0} more", items.length - most));
  return [...lines, "", t("This cannot be undone. What was copied of these runs to this machine stays; {0} runs stay in {1} on {2}.", plan.kept.runs, plan.dir, plan.address), ...plan.notes].join("\n");
}

function endOf(target: string, { removed, failed, left }: StoreCleared): string {
  const said = [removed.length === 0 ? t("Nothing was removed from {0}.", target) : t("Removed {0} from {1}.", cleaningSum(removed), target)];
  if (left > 0) said.push(t("{0} of what was listed is needed by now, and stays.", left));
  const [first] = failed;
  if (first !== undefined) said.push(t("{0} could not be removed: {1}.", first.path, first.detail));
  return said.join(" ");
}
