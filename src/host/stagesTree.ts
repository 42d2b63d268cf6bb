import * as vscode from "vscode";
import type { ViewId } from "../ids.ts";
import { t } from "../util/l10n.ts";
import type { QueueView } from "./runQueue.ts";
import { stageNodes, type StageNode } from "./stageNodes.ts";
import { resolveItem, treeItem } from "./treeItem.ts";
import type { WorkspaceModel } from "./workspaceModel.ts";

/** The words of a live run change at most so often, in ms: every redraw takes the buttons of a row from under the mouse. */
const progressMs = 1000;

/** The Stages view: `stageNodes` as tree items, with a badge that counts the stages with a flag. */
export class StagesTree implements vscode.TreeDataProvider<StageNode>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly subscription: vscode.Disposable;
  private readonly view: vscode.TreeView<StageNode>;
  private readonly model: WorkspaceModel;
  private readonly queue: QueueView;
  private nodes: StageNode[] = [];
  private shown = "";
  private timer: NodeJS.Timeout | undefined;

  constructor(model: WorkspaceModel, queue: QueueView) {
    this.model = model;
    this.queue = queue;
    this.view = vscode.window.createTreeView<StageNode>("seesaw.stages" satisfies ViewId, { treeDataProvider: this, showCollapseAll: true });
    this.subscription = model.onDidChange(() => this.update());
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
    clearTimeout(this.timer);
    this.subscription.dispose();
    this.view.dispose();
    this.changed.dispose();
  }

  /** The runs or the queue changed. */
  update(): void {
    const flagged = this.model.views().flatMap((view) => Object.values(view.chain?.newest ?? {})).filter((run) => run.state.flags.some(({ state }) => state === "drifting" || state === "confirmed"));
    this.view.badge = flagged.length === 0 ? undefined : { value: flagged.length, tooltip: flagged.length === 1 ? t("1 stage has a flag") : t("{0} stages have a flag", flagged.length) };
    this.nodes = stageNodes(this.model.views(), this.queue);
    const shape = shapeOf(this.nodes);
    if (shape !== this.shown) {
      this.shown = shape;
      this.redraw();
    } else {
      this.timer ??= setTimeout(() => this.redraw(), progressMs);
    }
  }

  private redraw(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.changed.fire();
  }
}

/** Everything of the nodes but the words that a live run changes with every step. */
function shapeOf(nodes: readonly StageNode[]): string {
  return JSON.stringify(nodes, (key, value: unknown) => (key === "description" || key === "tooltip" ? undefined : value));
}
