import * as vscode from "vscode";
import type { ViewId } from "../../ids.ts";
import type { StageNode } from "../stageNodes.ts";
import { resolveItem, treeItem } from "../treeItem.ts";
import type { WorkspaceModel } from "../workspaceModel.ts";
import { skillNodes } from "./skillNodes.ts";

/** The Skills view: `skillNodes` as tree items. It is drawn again only when something in it changed. */
export class SkillsTree implements vscode.TreeDataProvider<StageNode>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly subscriptions: vscode.Disposable[];
  private readonly model: WorkspaceModel;
  private nodes: StageNode[] = [];
  private shown = "";

  constructor(model: WorkspaceModel) {
    this.model = model;
    const view = vscode.window.createTreeView<StageNode>("seesaw.skills" satisfies ViewId, { treeDataProvider: this, showCollapseAll: true });
    this.subscriptions = [this.changed, view, model.onDidChange(() => this.update())];
  }

  getChildren(parent?: StageNode): StageNode[] {
    return parent?.children ?? this.nodes;
  }

  resolveTreeItem(item: vscode.TreeItem, node: StageNode): Promise<vscode.TreeItem> {
    return resolveItem(item, node);
  }

  getTreeItem(node: StageNode): vscode.TreeItem {
    return treeItem(node);
  }

  dispose(): void {
    for (const item of this.subscriptions) item.dispose();
  }

  private update(): void {
    this.nodes = skillNodes(this.model.views());
    const now = JSON.stringify(this.nodes);
    if (now === this.shown) return;
    this.shown = now;
    this.changed.fire();
  }
}
