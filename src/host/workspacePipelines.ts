import * as vscode from "vscode";
import type { Log } from "../util/log.ts";
import { messageOf } from "../util/errors.ts";

/** One `seesaw.yaml` of the workspace and its text as it is now: the editor's when it is open and changed, else the file's. */
export interface PipelineFile {
  uri: vscode.Uri;
  text: string;
  /** To tell pipelines apart: its path relative to the workspace, with the folder's name when there are several. */
  label: string;
}

const pattern = "**/seesaw.yaml";
const excluded = "**/{node_modules,.venv,.git,.seesaw}/**";
const searchLimit = 200;

/** Finds the `seesaw.yaml` files of all workspace folders and tells when one appears, changes or goes. */
export class WorkspacePipelines implements vscode.Disposable {
  private readonly subscriptions: vscode.Disposable[] = [];
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  private files: PipelineFile[] = [];
  private searches = 0;
  private timer: NodeJS.Timeout | undefined;
  private readonly log: Log;

  constructor(log: Log) {
    this.log = log;
    const watcher = vscode.workspace.createFileSystemWatcher(pattern);
    // A folder that appears or goes as a whole is told of only by its own name, not by the files in it.
    const folders = vscode.workspace.createFileSystemWatcher("**", false, true, false);
    const again = (): void => this.searchSoon();
    this.subscriptions.push(
      this.changed,
      watcher,
      watcher.onDidCreate(again),
      watcher.onDidChange(again),
      watcher.onDidDelete(again),
      folders,
      folders.onDidCreate((uri) => this.noticeFolder(uri)),
      folders.onDidDelete((uri) => {
        if (this.files.some((file) => file.uri.path.startsWith(`${uri.path}/`))) again();
      }),
      vscode.workspace.onDidChangeWorkspaceFolders(again),
      vscode.workspace.onDidChangeTextDocument((event) => {
        if (isPipelineFile(event.document.uri)) again();
      }),
      vscode.workspace.onDidCloseTextDocument((document) => {
        if (isPipelineFile(document.uri)) again();
      }),
    );
  }

  /** The files of the last search, ordered by folder and path. */
  list(): readonly PipelineFile[] {
    return this.files;
  }

  /** Searches now. A later search wins over an earlier, slower one. */
  async search(): Promise<void> {
    const turn = ++this.searches;
    const uris = await vscode.workspace.findFiles(pattern, excluded, searchLimit);
    const found = await Promise.all(uris.map((uri) => this.read(uri)));
    if (turn !== this.searches) return;
    this.files = found.filter((file) => file !== null).sort((a, b) => depth(a.uri) - depth(b.uri) || a.label.localeCompare(b.label));
    this.changed.fire();
  }

  dispose(): void {
    this.searches++;
    clearTimeout(this.timer);
    for (const item of this.subscriptions) item.dispose();
  }

  private searchSoon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.search().catch((error: unknown) => this.log.error(`Could not search for seesaw.yaml: ${messageOf(error)}`));
    }, 150);
  }

  /** Searches again when what appeared is a folder with a pipeline in it. Run folders and packages are passed over. */
  private noticeFolder(uri: vscode.Uri): void {
    if (/\/(node_modules|\.venv|\.git|\.seesaw)(\/|$)/.test(uri.path)) return;
    vscode.workspace.fs.stat(vscode.Uri.joinPath(uri, "seesaw.yaml")).then(() => this.searchSoon(), () => {});
  }

  private async read(uri: vscode.Uri): Promise<PipelineFile | null> {
    try {
      const open = vscode.workspace.textDocuments.find((document) => document.uri.toString() === uri.toString());
      const text = open?.getText() ?? new TextDecoder().decode(await vscode.workspace.fs.readFile(uri));
      return { uri, text, label: vscode.workspace.asRelativePath(uri) };
    } catch (error) {
      this.log.warn(`${uri.fsPath} cannot be read: ${messageOf(error)}`);
      return null;
    }
  }
}

/** True for a file that describes a pipeline. */
export function isPipelineFile(uri: vscode.Uri): boolean {
  return uri.scheme === "file" && uri.path.endsWith("/seesaw.yaml");
}

function depth(uri: vscode.Uri): number {
  return uri.path.split("/").length;
}
