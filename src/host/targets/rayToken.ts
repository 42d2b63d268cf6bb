import * as vscode from "vscode";
import { t } from "../../util/l10n.ts";
import type { NodeTarget } from "../stageNodes.ts";
import type { WorkspaceModel } from "../workspaceModel.ts";
import { chooseTargetOf } from "./chooseTarget.ts";
import { raySecret } from "./raySecret.ts";
import type { TargetsTree } from "./targetsTree.ts";

/** Set Ray Token: keeps the token of a Ray cluster in the editor's secret storage, by its address; it is in no file and no command line. */
export async function setRayToken({ model, targets, remoteRuns, secrets }: { model: WorkspaceModel; targets: TargetsTree; remoteRuns: { retry(): void }; secrets: vscode.SecretStorage }, called?: NodeTarget): Promise<void> {
  const chosen = await chooseTargetOf(model.views(), called, t("Set Ray Token"), ({ kind }) => kind === "ray");
  if (chosen === undefined || chosen.target.kind !== "ray") return;
  const { address, id } = chosen.target;
  const token = await vscode.window.showInputBox({
    title: t("Set Ray Token"),
    prompt: t("The token that {0} wants (RAY_AUTH_TOKEN). It is kept in the editor's secret storage and sent to this address only. Empty: forget it.", address),
    password: true,
    ignoreFocusOut: true,
    validateInput: (value) => (/[\u0000-\u001f\u007f]/.test(value.trim()) ? t("A token has no line breaks or control characters in it.") : null),
  });
  if (token === undefined) return;
  if (token.trim() === "") await secrets.delete(raySecret(address));
  else await secrets.store(raySecret(address), token.trim());
  remoteRuns.retry();
  void targets.check(chosen.view.uri.fsPath, id);
}
