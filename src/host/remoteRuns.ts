import * as vscode from "vscode";
import type { Log } from "../util/log.ts";
import type { WorkspaceModel } from "./workspaceModel.ts";

/** Follows the runs that are on other machines. */
export interface RunsElsewhere {
  watch(root: string): () => Promise<void>;
  poke(root?: string): void;
  readonly troubles: readonly { run: string; message: string }[];
  onTrouble(listener: () => void): () => void;
}

/** While a trusted workspace is open, the runs of its pipelines that are on other machines are followed. Where there is none, nothing is contacted and no code for it is loaded. */
export class RemoteRuns implements vscode.Disposable {
  private readonly model: WorkspaceModel;
  private readonly remotes: RunsElsewhere;
  private readonly watched = new Map<string, () => Promise<void>>();
  private readonly subscriptions: vscode.Disposable[];

  constructor(model: WorkspaceModel, remotes: RunsElsewhere, log: Log) {
    this.model = model;
    this.remotes = remotes;
    const told = new Set<string>();
    const quiet = remotes.onTrouble(() => {
      for (const { run, message } of remotes.troubles) if (!told.has(message)) log.warn(`${run}: ${message}`);
      told.clear();
      for (const { message } of remotes.troubles) told.add(message);
    });
    this.subscriptions = [model.onDidChange(() => this.update()), vscode.workspace.onDidGrantWorkspaceTrust(() => this.update()), { dispose: quiet }];
  }

  /** Tries again at once wherever nobody answered: the person did something about it. */
  retry(): void {
    this.remotes.poke();
  }

  dispose(): void {
    for (const item of this.subscriptions) item.dispose();
    for (const stop of this.watched.values()) void stop();
    this.watched.clear();
  }

  private update(): void {
    if (!vscode.workspace.isTrusted) return;
    const roots = new Set(this.model.views().map(({ uri }) => vscode.Uri.joinPath(uri, "..").fsPath));
    for (const root of roots) if (!this.watched.has(root)) this.watched.set(root, this.remotes.watch(root));
    for (const [root, stop] of this.watched) {
      if (roots.has(root)) continue;
      this.watched.delete(root);
      void stop();
    }
  }
}
