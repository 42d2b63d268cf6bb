import * as vscode from "vscode";
import type { CommandId } from "../../ids.ts";
import { AppError } from "../../util/errors.ts";
import type { PipelineView } from "../workspaceModel.ts";
import { isProbeFile, planFor } from "./livePlan.ts";
import { LiveRuns, type LiveDeps } from "./liveRuns.ts";
import type { EditedRow } from "./scoreRows.ts";

/** What live scoring needs of the rest of the extension. */
export interface LiveHost extends LiveDeps {
  views(): readonly PipelineView[];
  /** Brings Token Drift to the front, with the keyboard in it. */
  reveal(): Promise<void>;
}

/** A selection of more rows than this is cut. */
const mostRows = 20;

/** Scores rows as they stand in the editor and shows them in Token Drift, as the recorded ones are shown. */
export class LiveScoring implements vscode.Disposable {
  private readonly host: LiveHost;
  private readonly runs: LiveRuns;
  private readonly registered: vscode.Disposable;

  constructor(host: LiveHost) {
    this.host = host;
    this.runs = new LiveRuns(host);
    this.registered = vscode.languages.registerCodeActionsProvider({ scheme: "file", pattern: "**/*.jsonl" }, { provideCodeActions: (document, range) => this.actions(document, range) });
  }

  /** Probes the selected rows, or the one at the cursor. A newer call ends the one before. */
  async probe(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (editor === undefined) throw new AppError("usage", vscode.l10n.t("Open a .jsonl file and put the cursor on a row."));
    const { document } = editor;
    const plan = planFor(this.host.views(), document.uri.fsPath);
    const selected = selectedRows(editor);
    if (selected.length === 0) throw new AppError("usage", vscode.l10n.t("There is no row at the cursor."));
    const revealed = this.host.reveal();
    await this.runs.score({ file: document.uri.fsPath, name: vscode.workspace.asRelativePath(document.uri), edited: document.isDirty, rows: selected.slice(0, mostRows), selected: selected.length, plan });
    await revealed;
  }

  /** Ends what is being scored. */
  cancel(): void {
    this.runs.cancel();
  }

  dispose(): void {
    this.runs.cancel();
    this.registered.dispose();
  }

  private actions(document: vscode.TextDocument, range: vscode.Range): vscode.CodeAction[] {
    if (!vscode.workspace.isTrusted || !isProbeFile(this.host.views(), document.uri.fsPath) || document.lineAt(range.start.line).isEmptyOrWhitespace) return [];
    const action = new vscode.CodeAction(vscode.l10n.t("Probe This Row Across Checkpoints"), vscode.CodeActionKind.Empty.append("seesaw"));
    action.command = { title: action.title, command: "seesaw.probeSelection" satisfies CommandId };
    return [action];
  }
}

/** The selected rows, or the one at the cursor. A selection that ends before a line's first character does not mean that line. */
function selectedRows({ document, selection }: vscode.TextEditor): EditedRow[] {
  const last = selection.isEmpty || selection.end.character > 0 ? selection.end.line : selection.end.line - 1;
  return Array.from({ length: last - selection.start.line + 1 }, (_, index) => document.lineAt(selection.start.line + index))
    .filter(({ isEmptyOrWhitespace }) => !isEmptyOrWhitespace)
    .map(({ lineNumber, text }) => ({ line: lineNumber + 1, text }));
}
