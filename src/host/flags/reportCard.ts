import * as vscode from "vscode";
import { AppError } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";

/** Open Report Card: what the battery measured of the early warning, as this installation has it, ready to be read. */
export async function openReportCard({ extension }: { extension: vscode.Uri }): Promise<void> {
  const file = vscode.Uri.joinPath(extension, "REPORT_CARD.md");
  try {
    await vscode.workspace.fs.stat(file);
  } catch {
    throw new AppError("not-found", t("This installation has no report card: it is made by `npm run battery`."));
  }
  try {
    // Its tables are there to be read, not their source.
    await vscode.commands.executeCommand("markdown.showPreview", file);
  } catch {
    // Nothing here shows Markdown.
    await vscode.window.showTextDocument(file);
  }
}
