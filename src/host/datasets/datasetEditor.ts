import * as vscode from "vscode";
import { datasetEditorIds } from "../../ids.ts";
import type { FromDatasetPage, ToDatasetPage } from "../../protocol/datasets.ts";
import { t } from "../../util/l10n.ts";
import { panelHtml, panelResources } from "../panelHtml.ts";
import type { DatasetHost, DatasetSession } from "./datasetSession.ts";

/** Files that `seesaw.openDataset` can open. */
export const datasetEndings = /\.(jsonl(\.(gz|zst))?|parquet)$/i;

/**
 * The read-only editor of dataset files. A page is thrown away while it is hidden and says `ready` when it is shown
 * again; its session keeps the file's index for as long as the tab is there.
 */
export class DatasetEditors implements vscode.CustomReadonlyEditorProvider, vscode.Disposable {
  private readonly extension: vscode.Uri;
  private readonly host: DatasetHost;
  private readonly registrations: vscode.Disposable[];
  /** Open sessions by panel. */
  private readonly sessions = new Map<vscode.WebviewPanel, DatasetSession>();

  constructor(extension: vscode.Uri, host: DatasetHost) {
    this.extension = extension;
    this.host = host;
    this.registrations = datasetEditorIds.map((id) => vscode.window.registerCustomEditorProvider(id, this, { supportsMultipleEditorsPerDocument: true }));
  }

  openCustomDocument(uri: vscode.Uri): vscode.CustomDocument {
    return { uri, dispose: () => {} };
  }

  async resolveCustomEditor({ uri }: vscode.CustomDocument, panel: vscode.WebviewPanel): Promise<void> {
    if (uri.scheme !== "file") throw new Error(t("{0} is not a file on this machine: a dataset is read from disk.", uri.toString(true)));
    const session = await this.openSession(uri.fsPath, (message) => void panel.webview.postMessage(message));
    this.sessions.set(panel, session);
    panel.webview.options = { enableScripts: true, localResourceRoots: panelResources(this.extension) };
    panel.webview.onDidReceiveMessage((message: FromDatasetPage) => session.handle(message));
    panel.onDidChangeViewState(() => {
      if (!panel.visible) session.close();
    });
    panel.onDidDispose(() => {
      this.sessions.delete(panel);
      session.dispose();
    });
    panel.webview.html = panelHtml(panel.webview, this.extension, { script: "datasets.js", title: t("Dataset"), element: "seesaw-dataset-app" });
  }

  /** Another page on a file: what the editor does, without a webview. */
  async openSession(path: string, post: (message: ToDatasetPage) => void): Promise<DatasetSession> {
    // Not imported above: nothing of this is needed before a dataset is opened.
    const { DatasetSession } = await import("./datasetSession.ts");
    return new DatasetSession(path, this.host, post);
  }

  /** Tabs that are open, for tests. */
  get open(): number {
    return this.sessions.size;
  }

  /** Runs or pipelines changed. */
  refresh(): void {
    for (const session of this.sessions.values()) session.refresh();
  }

  dispose(): void {
    for (const session of this.sessions.values()) session.dispose();
    this.sessions.clear();
    for (const registration of this.registrations) registration.dispose();
  }
}

/** Shows a file in the dataset editor; without one the file of the active tab, or one to choose. */
export async function openDatasetFile(file: string | undefined): Promise<void> {
  const uri = file !== undefined ? vscode.Uri.file(file) : (activeDataset() ?? (await chooseDataset()));
  if (uri === undefined) return;
  if (!datasetEndings.test(uri.path)) return void (await vscode.window.showWarningMessage(t("{0} is no dataset file: these end in .jsonl, .jsonl.gz, .jsonl.zst or .parquet.", vscode.workspace.asRelativePath(uri))));
  await vscode.commands.executeCommand("vscode.openWith", uri, /\.jsonl$/i.test(uri.path) ? datasetEditorIds[1] : datasetEditorIds[0]);
}

/** The active tab knows its file also where VS Code gives an extension no text of it. */
function activeDataset(): vscode.Uri | undefined {
  const input = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
  const uri = input instanceof vscode.TabInputText || input instanceof vscode.TabInputCustom ? input.uri : undefined;
  return uri !== undefined && datasetEndings.test(uri.path) ? uri : undefined;
}

async function chooseDataset(): Promise<vscode.Uri | undefined> {
  const chosen = await vscode.window.showOpenDialog({ filters: { [t("Datasets")]: ["jsonl", "gz", "zst", "parquet"] }, openLabel: t("Open as Dataset") });
  return chosen?.[0];
}
