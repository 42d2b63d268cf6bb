import * as vscode from "vscode";
import { DrawnNodes } from "./drawnNodes.ts";
import type { StageNode } from "./stageNodes.ts";
import { resolveItem, treeItem } from "./treeItem.ts";

/** The words of an item change at most so often, in ms. */
const wordsMs = 1000;
/** Who points at an item reads its hover so long, in ms: what stands above it, which is redrawn with it, keeps its words meanwhile. */
const readingMs = 10_000;

/** Nodes as a tree of VS Code, in which nothing is drawn again but the items that look different. */
export abstract class NodeTree implements vscode.TreeDataProvider<StageNode>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<StageNode[] | undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly drawn = new DrawnNodes();
  /** When somebody pointed at an item, by id. */
  private readonly pointed = new Map<string, number>();
  private timer: NodeJS.Timeout | undefined;
  private disposed = false;

  getChildren(parent?: StageNode): StageNode[] {
    return parent?.children ?? this.drawn.nodes;
  }

  getTreeItem(node: StageNode): vscode.TreeItem {
    return treeItem(node);
  }

  async resolveTreeItem(item: vscode.TreeItem, node: StageNode): Promise<vscode.TreeItem> {
    if (node.hover !== undefined) this.pointed.set(node.id, Date.now());
    const resolved = await resolveItem(item, node);
    // What was looked up for the hover is in it: that is no reason to take it away again.
    this.drawn.hovered(node);
    return resolved;
  }

  dispose(): void {
    this.disposed = true;
    clearTimeout(this.timer);
    this.changed.dispose();
  }

  /** Draws what differs: at once where more than words does. */
  protected show(nodes: readonly StageNode[]): void {
    if (this.disposed) return;
    this.drawn.set(nodes);
    const { all, nodes: changed, shape, held } = this.drawn.changes(this.read());
    if (all || shape) this.redraw();
    else if (changed.length + held.length > 0) this.timer ??= setTimeout(() => this.redraw(), wordsMs);
  }

  private redraw(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const { all, nodes, held } = this.drawn.take(this.read());
    if (all) this.changed.fire(undefined);
    else if (nodes.length > 0) this.changed.fire(nodes);
    if (held.length > 0) this.timer = setTimeout(() => this.redraw(), wordsMs);
  }

  /** Ids of the items whose hover is being read. */
  private read(): ReadonlySet<string> {
    for (const [id, at] of this.pointed) if (Date.now() - at > readingMs) this.pointed.delete(id);
    return new Set(this.pointed.keys());
  }
}
