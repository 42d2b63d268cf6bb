import * as vscode from "vscode";
import type { CommandId } from "../../ids.ts";
import type { Scorer } from "../../inference/scorer.ts";
import { AppError } from "../../util/errors.ts";
import type { PipelineView } from "../workspaceModel.ts";
import { isProbeFile, planFor, requestFor } from "./livePlan.ts";
import { liveLegend, liveText } from "./liveText.ts";

/** What live scoring needs of the rest of the extension. */
export interface LiveHost {
  views(): readonly PipelineView[];
  /** Starts no thread before the first request. */
  scorer(): Promise<Scorer>;
}

const scheme = "seesaw-live";
const page = vscode.Uri.from({ scheme, path: "/Live Scores" });
/** A selection of more rows than this is cut. */
const mostRows = 20;

/** Scores the row at the cursor, as it stands in the editor, and shows it token by token in a page beside. */
export class LiveScoring implements vscode.Disposable {
  private readonly host: LiveHost;
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  private readonly registered: vscode.Disposable;
  private text = "";
  private running: AbortController | null = null;

  constructor(host: LiveHost) {
    this.host = host;
    this.registered = vscode.Disposable.from(
      this.changed,
      vscode.workspace.registerTextDocumentContentProvider(scheme, { onDidChange: this.changed.event, provideTextDocumentContent: () => this.text }),
      vscode.languages.registerCodeActionsProvider({ scheme: "file", pattern: "**/*.jsonl" }, { provideCodeActions: (document, range) => this.actions(document, range) }),
    );
  }

  /** Probes the selected rows, or the one at the cursor. A newer call ends the one before. */
  async probe(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (editor === undefined) throw new AppError("usage", "Open a .jsonl file and put the cursor on a row.");
    const { document, selection } = editor;
    const plan = planFor(this.host.views(), document.uri.fsPath);
    const last = selection.isEmpty || selection.end.character > 0 ? selection.end.line : selection.end.line - 1;
    const lines = Array.from({ length: last - selection.start.line + 1 }, (_, index) => selection.start.line + index).filter((line) => !document.lineAt(line).isEmptyOrWhitespace);
    if (lines.length === 0) throw new AppError("usage", "There is no row at the cursor.");
    this.running?.abort();
    const abort = (this.running = new AbortController());
    const scorer = await this.host.scorer();
    const parts = await vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title: "Scoring under every checkpoint", cancellable: true }, async (_, token) => {
      token.onCancellationRequested(() => abort.abort());
      const pages: string[] = [];
      for (const line of lines.slice(0, mostRows)) {
        const scores = await scorer.score(requestFor(plan, document.lineAt(line).text), abort.signal);
        const results = scores.map((one) => ({ ...one, against: plan.checkpoints.find(({ label }) => label === one.label)?.against ?? null }));
        const [why] = results.map((one) => one.why);
        if (lines.length === 1 && why != null && results.every(({ scored }) => scored === null)) throw new AppError("not-found", why);
        pages.push(liveText(results, { line: line + 1 }));
      }
      return pages;
    });
    const cut = lines.length > mostRows ? [`Only the first ${mostRows} of ${lines.length} rows were scored.`, ""] : [];
    const name = vscode.workspace.asRelativePath(document.uri);
    this.text = [`${name}${document.isDirty ? " (as edited, not saved)" : ""}`, "", ...parts, ...cut, ...liveLegend, ""].join("\n");
    this.changed.fire(page);
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(page), { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true, preview: true });
  }

  dispose(): void {
    this.running?.abort();
    this.registered.dispose();
  }

  private actions(document: vscode.TextDocument, range: vscode.Range): vscode.CodeAction[] {
    if (!vscode.workspace.isTrusted || !isProbeFile(this.host.views(), document.uri.fsPath) || document.lineAt(range.start.line).isEmptyOrWhitespace) return [];
    const action = new vscode.CodeAction("Probe This Row Across Checkpoints", vscode.CodeActionKind.Empty.append("seesaw"));
    action.command = { title: action.title, command: "seesaw.probeSelection" satisfies CommandId };
    return [action];
  }
}
