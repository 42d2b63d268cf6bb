import * as vscode from "vscode";
import { copySample, folderName } from "./copySample.ts";

/** Open the Sample: copies the sample workspace into a folder of the person's choice and opens it. Never writes into what is there. */
export async function openSample(extension: vscode.Uri): Promise<void> {
  const [parent] = (await vscode.window.showOpenDialog({ canSelectFiles: false, canSelectFolders: true, canSelectMany: false, openLabel: vscode.l10n.t("Copy Sample Here"), title: vscode.l10n.t("Where should the folder {0} be made?", folderName) })) ?? [];
  if (parent === undefined) return;
  const target = await copySample(extension.fsPath, parent.fsPath);
  const [here, newWindow] = [vscode.l10n.t("Open"), vscode.l10n.t("Open in New Window")];
  const answer = await vscode.window.showInformationMessage(vscode.l10n.t("The sample is in {0}.", target), here, newWindow);
  if (answer !== undefined) await vscode.commands.executeCommand("vscode.openFolder", vscode.Uri.file(target), { forceNewWindow: answer === newWindow });
}
