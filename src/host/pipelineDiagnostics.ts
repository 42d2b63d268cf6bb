import * as vscode from "vscode";
import type { Diagnostic, SourceRange } from "../domain/pipeline/pipelineModel.ts";
import { diagnosticCollectionName } from "../ids.ts";
import { reportCardLink } from "./flags/flagFacts.ts";
import { flagFindings, type FlagFinding } from "./pipelineFile/flagFindings.ts";
import type { WorkspaceModel } from "./workspaceModel.ts";

const severities: Record<Diagnostic["severity"], vscode.DiagnosticSeverity> = {
  error: vscode.DiagnosticSeverity.Error,
  warning: vscode.DiagnosticSeverity.Warning,
  info: vscode.DiagnosticSeverity.Information,
};

/** Shows the findings about every `seesaw.yaml`, and the flags of its stages, in the Problems view, and takes them back when they are mended. */
export class PipelineDiagnostics implements vscode.Disposable {
  private readonly collection = vscode.languages.createDiagnosticCollection(diagnosticCollectionName);
  private readonly subscription: vscode.Disposable;
  private readonly reportCard: vscode.Uri;
  private shown = "";

  /** `reportCard`: where what is known of the detector can be read at length. */
  constructor(model: WorkspaceModel, reportCard: vscode.Uri) {
    this.reportCard = reportCard;
    this.subscription = model.onDidChange(() => this.update(model));
  }

  dispose(): void {
    this.subscription.dispose();
    this.collection.dispose();
  }

  private update(model: WorkspaceModel): void {
    const findings = model.views().flatMap((view): (Diagnostic | FlagFinding)[] => [...view.diagnostics, ...flagFindings(view)]);
    // A live run changes the model with every step, its findings hardly ever.
    const now = JSON.stringify(findings);
    if (now === this.shown) return;
    this.shown = now;
    const byFile = new Map<string, vscode.Diagnostic[]>();
    for (const finding of findings) {
      const uri = vscode.Uri.file(finding.file).toString();
      byFile.set(uri, [...(byFile.get(uri) ?? []), toVscode(finding, this.reportCard)]);
    }
    this.collection.clear();
    for (const [uri, diagnostics] of byFile) this.collection.set(vscode.Uri.parse(uri), diagnostics);
  }
}

function toVscode(finding: Diagnostic | FlagFinding, reportCard: vscode.Uri): vscode.Diagnostic {
  const diagnostic = new vscode.Diagnostic(toRange(finding.range), finding.message, severities[finding.severity]);
  diagnostic.source = diagnosticCollectionName;
  diagnostic.code = finding.code;
  if ("probes" in finding) {
    const at = (uri: vscode.Uri, message: string): vscode.DiagnosticRelatedInformation => new vscode.DiagnosticRelatedInformation(new vscode.Location(uri, new vscode.Position(0, 0)), message);
    const related = [...(finding.probes === null ? [] : [at(vscode.Uri.file(finding.probes.file), finding.probes.message)]), ...(finding.hasCard ? [at(reportCard, reportCardLink())] : [])];
    if (related.length > 0) diagnostic.relatedInformation = related;
  }
  return diagnostic;
}

/** Ours count from 1, VS Code's from 0. */
export function toRange(range: SourceRange): vscode.Range {
  return new vscode.Range(range.line - 1, range.column - 1, range.endLine - 1, range.endColumn - 1);
}
