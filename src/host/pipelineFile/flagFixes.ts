import * as vscode from "vscode";
import { diagnosticCollectionName, type CommandId } from "../../ids.ts";
import { t } from "../../util/l10n.ts";
import type { NodeTarget } from "../stageNodes.ts";
import type { WorkspaceModel } from "../workspaceModel.ts";
import { flagFindings } from "./flagFindings.ts";

/** What can be changed in `seesaw.yaml` about a flag, offered on its diagnostic. Every fix is an edit that is seen and can be undone, or a question first; none starts anything by itself. */
export class FlagFixes implements vscode.CodeActionProvider, vscode.Disposable {
  private readonly model: WorkspaceModel;
  private readonly registration: vscode.Disposable;

  constructor(model: WorkspaceModel) {
    this.model = model;
    this.registration = vscode.languages.registerCodeActionsProvider({ scheme: "file", pattern: "**/seesaw.yaml" }, this, { providedCodeActionKinds: [vscode.CodeActionKind.QuickFix] });
  }

  dispose(): void {
    this.registration.dispose();
  }

  async provideCodeActions(document: vscode.TextDocument, _range: vscode.Range, { diagnostics }: vscode.CodeActionContext): Promise<vscode.CodeAction[]> {
    const view = this.model.view(document.uri.fsPath);
    const flags = diagnostics.filter(({ source, code }) => source === diagnosticCollectionName && (code === "flag-confirmed" || code === "flag-drifting"));
    if (view === undefined || flags.length === 0) return [];
    const { flagEdits } = await import("../../domain/pipeline/pipeline.ts");
    // As it stands in the editor, which may be newer than what was last saved.
    const text = document.getText();
    const findings = flagFindings(view);
    return flags.flatMap((diagnostic) => {
      const finding = findings.find(({ message }) => message === diagnostic.message);
      if (finding === undefined) return [];
      const confirm = new vscode.CodeAction(t("Confirm the loss of {0} on more prompts…", finding.flagged.skill), vscode.CodeActionKind.QuickFix);
      confirm.diagnostics = [diagnostic];
      confirm.command = { command: "seesaw.confirmFlag" satisfies CommandId, title: confirm.title, arguments: [{ file: document.uri.fsPath, stage: finding.flagged.stage, run: finding.run, skill: finding.flagged.skill } satisfies NodeTarget] };
      const edits = flagEdits(text, document.uri.fsPath, finding.flagged).map(({ title, changes }) => {
        const action = new vscode.CodeAction(title, vscode.CodeActionKind.QuickFix);
        action.diagnostics = [diagnostic];
        action.edit = new vscode.WorkspaceEdit();
        for (const { offset, length, text: put } of changes) action.edit.replace(document.uri, new vscode.Range(document.positionAt(offset), document.positionAt(offset + length)), put);
        return action;
      });
      // It asks for the prompts first, and may start nothing in a workspace that is not trusted.
      return vscode.workspace.isTrusted ? [confirm, ...edits] : edits;
    });
  }
}
