import { open, writeFile } from "node:fs/promises";
import { basename } from "node:path";
import * as vscode from "vscode";
import { openProbeSet } from "../../domain/drift/driftSelection.ts";
import type { Pipeline } from "../../domain/pipeline/pipelineModel.ts";
import { buildChain } from "../../domain/run/chain.ts";
import { emptySelection, type DriftSelection } from "../../protocol/webview.ts";
import { AppError } from "../../util/errors.ts";
import { inEnglish } from "../../util/l10n.ts";
import { resolveSelection, type ResolvedSelection } from "../drift/driftChoices.ts";
import type { DriftPicture } from "../drift/driftSession.ts";
import { openExported, replaceFile } from "../exportedFile.ts";
import type { WorkspaceModel } from "../workspaceModel.ts";
import { scoredChain, type ScoreSource } from "./scores.ts";

/** What exports need of the host. */
export interface ExportHost {
  model: WorkspaceModel;
  drift: { readonly selection: DriftSelection; picture(): Promise<DriftPicture> };
  driftEditors: { readonly active: { picture(): Promise<DriftPicture> } | undefined };
  scores: ScoreSource;
  ready: Promise<void>;
}

/** Characters written before the editor gets a turn. */
const batch = 256 * 1024;

/** Export Report: the page of `seesaw report`, for the pipeline that Token Drift shows. */
export async function exportReport(host: ExportHost): Promise<void> {
  const chosen = await current(host);
  const file = await askWhere(chosen, "report", "html", "HTML");
  if (file === undefined) return;
  await withExportProgress(file, () => writeReport(host, chosen, file.fsPath));
}

/** Export Tokens as CSV: every probe of the shown skill and split, under every checkpoint, token by token. */
export async function exportCsv(host: ExportHost): Promise<void> {
  const chosen = await current(host);
  const file = await askWhere(chosen, `${chosen.skill}.${chosen.split}`, "csv", "CSV");
  if (file === undefined) return;
  await withExportProgress(file, (signal) => writeCsv(host, chosen, file.fsPath, signal));
}

/** Export Picture: what the Token Drift tab in front shows, else the view, as a PNG. */
export async function exportPicture(host: ExportHost): Promise<void> {
  await host.ready;
  const title = vscode.l10n.t("Drawing Token Drift");
  const { png, resolved } = await vscode.window.withProgress({ location: vscode.ProgressLocation.Window, title }, () => (host.driftEditors.active ?? host.drift).picture());
  const file = await askWhere(resolved, `${resolved.skill}.${resolved.split}`, "png", "PNG");
  if (file === undefined) return;
  await withExportProgress(file, () => replaceFile(file.fsPath, (temporary) => writeFile(temporary, png)));
}

/** Writes the report of the chain that `chosen` belongs to. */
export async function writeReport(host: Pick<ExportHost, "scores">, { view }: ResolvedSelection, file: string): Promise<void> {
  const [{ renderReport }, { reportInput }] = await Promise.all([import("../../domain/report/renderReport.ts"), import("../../domain/report/reportInput.ts")]);
  // The report is English throughout, so its chain must not be told in the language of the window.
  const data = await scoredChain({ ...view, chain: view.shown === null ? null : inEnglish(() => buildChain(view.shown as Pipeline, view.listing.runs)) }, host.scores);
  const replay = await host.scores.replay(data);
  const facts = await host.scores.flagFacts(data.runs);
  const page = inEnglish(() => renderReport(reportInput(data, replay, Date.now(), facts)));
  await replaceFile(file, (temporary) => writeFile(temporary, page));
}

/** Writes the tokens of one probe set, a batch at a time. */
export async function writeCsv(host: Pick<ExportHost, "scores">, { view, pipeline, chain, skill, split, reference }: ResolvedSelection, file: string, signal?: AbortSignal): Promise<void> {
  const { driftCsv } = await import("../../domain/report/driftCsv.ts");
  const { traces } = await scoredChain(view, host.scores);
  const { opened, close } = openProbeSet(chain, { skill, split }, (path) => traces.open(path));
  try {
    if (opened.readers.size === 0) throw new AppError("not-found", [...opened.problems.values()][0] ?? vscode.l10n.t("No checkpoint has scored {0} yet: run a stage first.", `${skill}.${split}`));
    await replaceFile(file, async (temporary) => {
      const handle = await open(temporary, "w");
      // The mark tells a spreadsheet that it is UTF-8.
      let text = "\ufeff";
      const flush = async (): Promise<void> => {
        if (signal?.aborted === true) throw new AppError("cancelled", vscode.l10n.t("The export was cancelled."));
        await handle.writeFile(text);
        text = "";
      };
      try {
        const lines = driftCsv(pipeline, opened, reference);
        for (let next = inEnglish(() => lines.next()); next.done !== true; next = inEnglish(() => lines.next())) {
          text += next.value;
          if (text.length >= batch) await flush();
        }
        await flush();
      } finally {
        await handle.close();
      }
    });
  } finally {
    close();
  }
}

/** What Token Drift shows; what it would show, before it was opened. */
async function current(host: ExportHost): Promise<ResolvedSelection> {
  await host.ready;
  const { resolved } = resolveSelection(host.model.views(), { ...emptySelection, ...host.drift.selection });
  if (resolved === null) throw new AppError("not-found", vscode.l10n.t("There is nothing to export yet: open a folder with a seesaw.yaml that has no errors."));
  return resolved;
}

async function askWhere({ view, pipeline }: ResolvedSelection, what: string, extension: string, kind: string): Promise<vscode.Uri | undefined> {
  return vscode.window.showSaveDialog({
    defaultUri: vscode.Uri.joinPath(view.uri, "..", `${pipeline.name}.${what}.${extension}`),
    filters: { [kind]: [extension] },
    title: vscode.l10n.t("Export"),
    saveLabel: vscode.l10n.t("Export"),
  });
}

async function withExportProgress(file: vscode.Uri, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const name = basename(file.fsPath);
  await vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title: vscode.l10n.t("Writing {0}", name), cancellable: true }, async (_, token) => {
    const abort = new AbortController();
    token.onCancellationRequested(() => abort.abort());
    await work(abort.signal);
  });
  const label = vscode.l10n.t("Open");
  // Not waited for: the command is done, the message may stay.
  void vscode.window.showInformationMessage(vscode.l10n.t("Wrote {0}.", file.fsPath), label).then((answer) => (answer === label ? openExported(file) : undefined));
}
