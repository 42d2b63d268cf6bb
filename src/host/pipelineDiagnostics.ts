import * as vscode from "vscode";
import type { Diagnostic, SourceRange } from "../domain/pipeline/pipelineModel.ts";
import { diagnosticCollectionName } from "../ids.ts";
import type { WorkspaceModel } from "./workspaceModel.ts";

const severities: Record<Diagnostic["severity"], vscode.DiagnosticSeverity> = {
  error: vscode.DiagnosticSeverity.Error,
  warning: vscode.DiagnosticSeverity.Warning,
  info: vscode.DiagnosticSeverity.Information,
};

/** Shows the findings about every `seesaw.yaml` in the Problems view, and takes them back when they are mended. */
export class PipelineDiagnostics implements vscode.Disposable {
  private readonly collection = vscode.languages.createDiagnosticCollection(diagnosticCollectionName);
  private readonly subscription: vscode.Disposable;

  constructor(model: WorkspaceModel) {
    this.subscription = model.onDidChange(() => this.update(model));
  }

  dispose(): void {
    this.subscription.dispose();
    this.collection.dispose();
  }

  private update(model: WorkspaceModel): void {
    const byFile = new Map<string, vscode.Diagnostic[]>();
    for (const finding of model.views().flatMap((view) => view.diagnostics)) {
      const uri = vscode.Uri.file(finding.file).toString();
      byFile.set(uri, [...(byFile.get(uri) ?? []), toVscode(finding)]);
    }
    this.collection.clear();
    for (const [uri, diagnostics] of byFile) this.collection.set(vscode.Uri.parse(uri), diagnostics);
  }
}

function toVscode(finding: Diagnostic): vscode.Diagnostic {
  const diagnostic = new vscode.Diagnostic(toRange(finding.range), finding.message, severities[finding.severity]);
  diagnostic.source = "Seesaw";
  diagnostic.code = finding.code;
  return diagnostic;
}

/** Ours count from 1, VS Code's from 0. */
export function toRange(range: SourceRange): vscode.Range {
  return new vscode.Range(range.line - 1, range.column - 1, range.endLine - 1, range.endColumn - 1);
}
