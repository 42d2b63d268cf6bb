import * as vscode from "vscode";
import { diagnosticCollectionName, type CommandId } from "../../ids.ts";
import { t } from "../../util/l10n.ts";
import type { NodeTarget } from "../stageNodes.ts";
import type { WorkspaceModel } from "../workspaceModel.ts";
import { flagHover } from "../flags/flagFacts.ts";
import { toRange } from "../pipelineDiagnostics.ts";
import { flagMarkdown } from "../treeItem.ts";
import { flagFindings, type FlagFinding } from "./flagFindings.ts";

/** Lines around a flag that are taken to be in sight. */
const near = 12;

/** What is known of a flag where the pointer rests on its diagnostic, and what can be changed in `seesaw.yaml` about it. Every fix is an edit that is seen and can be undone, or a question first; none starts anything by itself. */
export class FlagFixes implements vscode.CodeActionProvider, vscode.HoverProvider, vscode.Disposable {
  private readonly model: WorkspaceModel;
  private readonly registration: vscode.Disposable;

  constructor(model: WorkspaceModel) {
    this.model = model;
    const files = { scheme: "file", pattern: "**/seesaw.yaml" };
    this.registration = vscode.Disposable.from(
      vscode.languages.registerCodeActionsProvider(files, this, { providedCodeActionKinds: [vscode.CodeActionKind.QuickFix] }),
      vscode.languages.registerHoverProvider(files, this),
    );
  }

  dispose(): void {
    this.registration.dispose();
  }

  /** The finding itself is the diagnostic's, which is shown above it. */
  async provideHover(document: vscode.TextDocument, position: vscode.Position): Promise<vscode.Hover | null> {
    const view = this.model.view(document.uri.fsPath);
    const here = (): FlagFinding[] => (view === undefined ? [] : flagFindings(view).filter(({ range }) => toRange(range).contains(position)));
    const named = here();
    if (view === undefined || named.length === 0) return null;
    await Promise.all(view.listing.runs.filter(({ id }) => named.some(({ run }) => run === id)).map((run) => view.lookUp?.(run)));
    const found = here();
    return new vscode.Hover(found.map(({ name, facts }) => flagMarkdown(flagHover(found.length === 1 ? [] : [name], facts, view))), toRange((found[0] as FlagFinding).range));
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
        // A change that is out of sight is shown: nobody saves what they have not seen.
        const first = changes[0];
        const line = first === undefined ? 0 : document.positionAt(first.offset).line + (/^\s*\n/.exec(first.text)?.[0].split("\n").length ?? 1) - 1;
        if (Math.abs(line - diagnostic.range.start.line) > near) action.command = { command: "revealLine", title: "", arguments: [{ lineNumber: line, at: "center" }] };
        return action;
      });
      // It asks for the prompts first, and may start nothing in a workspace that is not trusted.
      return vscode.workspace.isTrusted ? [confirm, ...edits] : edits;
    });
  }
}
