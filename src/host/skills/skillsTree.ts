import * as vscode from "vscode";
import type { ViewId } from "../../ids.ts";
import { NodeTree } from "../nodeTree.ts";
import type { StageNode } from "../stageNodes.ts";
import type { WorkspaceModel } from "../workspaceModel.ts";
import { skillNodes } from "./skillNodes.ts";

/** The Skills view: `skillNodes` as tree items. */
export class SkillsTree extends NodeTree {
  private readonly subscriptions: vscode.Disposable[];

  constructor(model: WorkspaceModel) {
    super();
    const view = vscode.window.createTreeView<StageNode>("seesaw.skills" satisfies ViewId, { treeDataProvider: this, showCollapseAll: true });
    this.subscriptions = [view, model.onDidChange(() => this.show(skillNodes(model.views())))];
  }

  override dispose(): void {
    for (const item of this.subscriptions) item.dispose();
    super.dispose();
  }
}
