import * as vscode from "vscode";
import type { ViewId } from "../ids.ts";
import { t } from "../util/l10n.ts";
import { NodeTree } from "./nodeTree.ts";
import type { QueueView } from "./runQueue.ts";
import { stageNodes, type StageNode } from "./stageNodes.ts";
import type { WorkspaceModel } from "./workspaceModel.ts";

/** The Stages view: `stageNodes` as tree items, with a badge that counts the stages with a flag. */
export class StagesTree extends NodeTree {
  private readonly subscription: vscode.Disposable;
  private readonly view: vscode.TreeView<StageNode>;
  private readonly model: WorkspaceModel;
  private readonly queue: QueueView;

  constructor(model: WorkspaceModel, queue: QueueView) {
    super();
    this.model = model;
    this.queue = queue;
    this.view = vscode.window.createTreeView<StageNode>("seesaw.stages" satisfies ViewId, { treeDataProvider: this, showCollapseAll: true });
    this.subscription = model.onDidChange(() => this.update());
  }

  override dispose(): void {
    this.subscription.dispose();
    this.view.dispose();
    super.dispose();
  }

  /** The runs or the queue changed. */
  update(): void {
    const flagged = this.model.views().flatMap((view) => Object.values(view.chain?.newest ?? {})).filter((run) => run.state.flags.some(({ state }) => state === "drifting" || state === "confirmed"));
    this.view.badge = flagged.length === 0 ? undefined : { value: flagged.length, tooltip: flagged.length === 1 ? t("1 stage has a flag") : t("{0} stages have a flag", flagged.length) };
    this.show(stageNodes(this.model.views(), this.queue));
  }
}
