import * as vscode from "vscode";
import { readSetting } from "../../config.ts";
import type { SettingKey, ViewId } from "../../ids.ts";
import { toRange } from "../pipelineDiagnostics.ts";
import type { QueueView } from "../runQueue.ts";
import type { WorkspaceModel } from "../workspaceModel.ts";
import { stageLenses, type StageLens } from "./stageLenses.ts";

const setting = "seesaw.pipeline.codeLens" satisfies SettingKey;
const focusStages = `${"seesaw.stages" satisfies ViewId}.focus`;

/** A lens that is redrawn cannot be clicked for a moment: the words of a live run change at most so often, in ms. */
const pauseMs = 1000;

/** Run Stage, state and Token Drift over every stage of a `seesaw.yaml`. */
export class StageLensProvider implements vscode.CodeLensProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeCodeLenses = this.changed.event;
  private readonly subscriptions: vscode.Disposable[];
  private readonly model: WorkspaceModel;
  private readonly queue: QueueView;
  private shown = "";
  private offered = "";
  private timer: NodeJS.Timeout | undefined;

  constructor(model: WorkspaceModel, queue: QueueView) {
    this.model = model;
    this.queue = queue;
    this.subscriptions = [
      this.changed,
      vscode.languages.registerCodeLensProvider({ scheme: "file", pattern: "**/seesaw.yaml" }, this),
      model.onDidChange(() => this.update()),
      vscode.workspace.onDidGrantWorkspaceTrust(() => this.update()),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration(setting)) this.changed.fire();
      }),
    ];
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    if (!readSetting(setting, document.uri)) return [];
    const view = this.model.view(document.uri.fsPath);
    const lenses = view === undefined ? [] : stageLenses(view, this.queue, vscode.workspace.isTrusted);
    return lenses.filter(({ range }) => range.line <= document.lineCount).map(toLens);
  }

  /** The runs or the queue changed. */
  update(): void {
    const lenses = this.model.views().flatMap((view) => stageLenses(view, this.queue, vscode.workspace.isTrusted));
    const now = JSON.stringify(lenses);
    if (now === this.shown) return;
    this.shown = now;
    const offered = JSON.stringify(lenses.map(({ command, range }) => [command, range.line]));
    if (offered !== this.offered) return this.redraw(offered);
    this.timer ??= setTimeout(() => this.redraw(offered), pauseMs);
  }

  private redraw(offered: string): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.offered = offered;
    this.changed.fire();
  }

  dispose(): void {
    clearTimeout(this.timer);
    for (const item of this.subscriptions) item.dispose();
  }
}

function toLens({ range, title, tooltip, command, target }: StageLens): vscode.CodeLens {
  const call = command === "focus" ? { command: focusStages, arguments: [] } : { command, arguments: [target] };
  return new vscode.CodeLens(toRange(range), { title, tooltip, ...call });
}
