import * as vscode from "vscode";
import type { RemoteKind } from "../../protocol/remote.ts";
import { AppError } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import type { NodeTarget } from "../stageNodes.ts";
import type { WorkspaceModel } from "../workspaceModel.ts";

/** Add Target to Pipeline File: writes one into `seesaw.yaml` as an edit that is seen and can be undone, with the cursor on what is to be filled in. Nothing is contacted. */
export async function addTarget({ model }: { model: WorkspaceModel }, called?: NodeTarget): Promise<void> {
  const views = model.views();
  const view = views.find(({ uri }) => uri.fsPath === called?.file) ?? (views.length <= 1 ? views[0] : await chooseFile(views));
  if (view === undefined) return;
  const kind = await chooseKind();
  if (kind === undefined) return;
  const document = await vscode.workspace.openTextDocument(view.uri);
  const { newTargetEdit } = await import("../../domain/pipeline/pipeline.ts");
  const made = newTargetEdit(document.getText(), kind);
  if (made === null) throw new AppError("bad-pipeline", t("{0} has errors: correct them first, see the Problems view.", view.label));
  const edit = new vscode.WorkspaceEdit();
  for (const { offset, length, text } of made.changes) edit.replace(view.uri, new vscode.Range(document.positionAt(offset), document.positionAt(offset + length)), text);
  await vscode.workspace.applyEdit(edit);
  const { offset, length } = made.fill;
  await vscode.window.showTextDocument(document, { selection: new vscode.Range(document.positionAt(offset), document.positionAt(offset + length)) });
}

async function chooseFile<T extends { label: string }>(views: readonly T[]): Promise<T | undefined> {
  return (await vscode.window.showQuickPick(views.map((view) => ({ label: view.label, view })), { title: t("Add Target to Pipeline File"), placeHolder: t("To which file?") }))?.view;
}

async function chooseKind(): Promise<RemoteKind | undefined> {
  const items: (vscode.QuickPickItem & { remote: RemoteKind })[] = [
    { label: "SSH", description: t("a machine that you log in to with ssh"), remote: "ssh" },
    { label: "Slurm", description: t("a cluster with sbatch, on this machine or on a login node"), remote: "slurm" },
    { label: "Ray", description: t("a Ray cluster whose dashboard this machine reaches"), remote: "ray" },
  ];
  return (await vscode.window.showQuickPick(items, { title: t("Add Target to Pipeline File"), placeHolder: t("What kind of machine?"), matchOnDescription: true }))?.remote;
}
