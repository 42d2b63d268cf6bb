import * as vscode from "vscode";
import type { Target } from "../../domain/pipeline/pipelineModel.ts";
import type { ViewId } from "../../ids.ts";
import type { TargetReport } from "../../protocol/remote.ts";
import { AppError, messageOf } from "../../util/errors.ts";
import type { Log } from "../../util/log.ts";
import { NodeTree } from "../nodeTree.ts";
import type { StageNode } from "../stageNodes.ts";
import type { PipelineView, WorkspaceModel } from "../workspaceModel.ts";
import { targetNodes, type TargetState } from "./targetNodes.ts";

export interface TargetsHost {
  model: WorkspaceModel;
  check(view: PipelineView, target: string, signal: AbortSignal): Promise<TargetReport>;
  trusted(): boolean;
  log: Log;
}

const viewId = "seesaw.targets" satisfies ViewId;

/**
 * The Targets view. It contacts nothing before the person opens it or asks, each target once, and never anything in a
 * workspace that is not trusted. A target that is changed in seesaw.yaml is not checked by itself: half an address is one too.
 */
export class TargetsTree extends NodeTree {
  private readonly subscriptions: vscode.Disposable[];
  private readonly host: TargetsHost;
  private readonly states = new Map<string, TargetState>();
  private readonly checks = new Map<string, Promise<void>>();
  private readonly abort = new AbortController();
  private opened = false;

  constructor(host: TargetsHost) {
    super();
    this.host = host;
    const view = vscode.window.createTreeView<StageNode>(viewId, { treeDataProvider: this, showCollapseAll: true });
    this.subscriptions = [
      view,
      view.onDidChangeVisibility(({ visible }) => visible && this.open()),
      host.model.onDidChange(() => {
        this.update();
        if (view.visible) this.open();
      }),
      vscode.workspace.onDidGrantWorkspaceTrust(() => {
        this.update();
        if (view.visible) this.open();
      }),
    ];
  }

  /** What was found out about a target, as it stands in seesaw.yaml now. */
  state(file: string, id: string): TargetState {
    const target = this.host.model.view(file)?.shown?.targets.find((one) => one.id === id);
    return (target === undefined ? undefined : this.states.get(keyOf(file, target))) ?? { kind: "unchecked" };
  }

  /** Checks one target, or all of a file, or all there are. A check that is under way is shared. Resolves when all have answered. */
  async check(file?: string, id?: string): Promise<void> {
    if (!this.host.trusted()) return;
    this.opened = true;
    const asked = this.host.model.views().flatMap((view) => (file === undefined || view.uri.fsPath === file ? (view.shown?.targets ?? []).filter((target) => id === undefined || target.id === id).map((target) => ({ view, target })) : []));
    await vscode.window.withProgress({ location: { viewId } }, () => Promise.all(asked.map(({ view, target }) => this.checkOne(view, target))));
  }

  override dispose(): void {
    this.abort.abort();
    for (const item of this.subscriptions) item.dispose();
    super.dispose();
  }

  /** The person sees the view for the first time, or something in it that is there since. */
  private open(): void {
    if (this.opened || !this.host.trusted() || this.host.model.views().every(({ shown }) => shown === null)) return;
    void this.check();
  }

  private checkOne(view: PipelineView, target: Target): Promise<void> {
    const key = keyOf(view.uri.fsPath, target);
    const running = this.checks.get(key);
    if (running !== undefined) return running;
    const known = this.states.get(key);
    this.set(key, { kind: "checking", report: known?.kind === "checked" ? known.report : null });
    const check = this.host.check(view, target.id, this.abort.signal).then(
      (report) => this.set(key, { kind: "checked", report, at: Date.now() / 1000 }),
      (error: unknown) => {
        if (this.abort.signal.aborted) return;
        this.host.log.warn(`Target ${target.id}: ${error instanceof Error && !AppError.is(error) ? (error.stack ?? error.message) : messageOf(error)}`);
        this.set(key, { kind: "failed", message: messageOf(error), at: Date.now() / 1000 });
      },
    ).finally(() => this.checks.delete(key));
    this.checks.set(key, check);
    return check;
  }

  private set(key: string, state: TargetState): void {
    if (this.abort.signal.aborted) return;
    this.states.set(key, state);
    this.update();
  }

  private update(): void {
    const views = this.host.model.views();
    this.show(targetNodes(views, (file, id) => this.state(file, id), Date.now() / 1000, this.host.trusted()));
  }
}

/** A target is what seesaw.yaml says of it: what was found out about another address says nothing. */
function keyOf(file: string, target: Target): string {
  return JSON.stringify([file, target]);
}
