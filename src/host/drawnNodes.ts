import type { StageNode } from "./stageNodes.ts";

/** What VS Code was told last of an item: how it looks and what it does, and the words that a live run changes with every step. */
interface Drawn {
  shape: string;
  description: string;
  /** Of an item with a hover of its own: what that hover is about. */
  tooltip: string;
}

/** What is to be drawn again: the whole tree, or these items with all below them. */
export interface Redraw {
  all: boolean;
  nodes: StageNode[];
  /** More than words changed. */
  shape: boolean;
  /** The words of these changed too, but somebody points at an item below them. */
  held: StageNode[];
}

/**
 * The items of a tree, the same objects as long as their ids stay, and what VS Code has drawn of each. A redraw of an item takes
 * hovers and buttons from under the mouse, its own and those of all items below it, so only what looks different is drawn again.
 */
export class DrawnNodes {
  nodes: StageNode[] = [];
  private readonly drawn = new Map<string, Drawn>();
  private top = "[]";

  /** The items as they are now. What is drawn of them is up to `take`. */
  set(fresh: readonly StageNode[]): void {
    this.nodes = merged(this.nodes, fresh);
  }

  /** What looks different from what was drawn. `pointed`: ids of items that somebody points at. */
  changes(pointed: ReadonlySet<string> = new Set()): Redraw {
    const found: Redraw = { all: idsOf(this.nodes) !== this.top, nodes: [], shape: false, held: [] };
    if (found.all) return { ...found, shape: true };
    for (const node of this.nodes) this.look(node, pointed, found);
    return found;
  }

  /** The same, and from now on it counts as drawn. */
  take(pointed?: ReadonlySet<string>): Redraw {
    const found = this.changes(pointed);
    if (found.all) {
      this.drawn.clear();
      this.top = idsOf(this.nodes);
    }
    for (const node of found.all ? this.nodes : found.nodes) this.mark(node);
    return found;
  }

  /** The item's hover was made just now: it says what is known by now. */
  hovered(node: StageNode): void {
    const drawn = this.drawn.get(node.id);
    if (drawn !== undefined) drawn.tooltip = node.tooltip;
  }

  private look(node: StageNode, pointed: ReadonlySet<string>, found: Redraw): void {
    const [was, now] = [this.drawn.get(node.id), drawnOf(node)];
    const shape = was?.shape !== now.shape;
    if (shape || was?.description !== now.description || was.tooltip !== now.tooltip) {
      if (shape || !node.children.some((child) => contains(child, pointed))) {
        found.nodes.push(node);
        found.shape ||= shape || node.children.some((child) => this.differs(child));
        return;
      }
      found.held.push(node);
    }
    for (const child of node.children) this.look(child, pointed, found);
  }

  /** The item or one below it has another shape than is drawn. */
  private differs(node: StageNode): boolean {
    return this.drawn.get(node.id)?.shape !== drawnOf(node).shape || node.children.some((child) => this.differs(child));
  }

  private mark(node: StageNode): void {
    this.drawn.set(node.id, drawnOf(node));
    for (const child of node.children) this.mark(child);
  }
}

function drawnOf({ label, description, tooltip, hover, icon, context, expanded, target, opens, children }: StageNode): Drawn {
  return { shape: JSON.stringify([label, icon, context, expanded, target, opens, hover !== undefined, children.map(({ id }) => id)]), description, tooltip };
}

function idsOf(nodes: readonly StageNode[]): string {
  return JSON.stringify(nodes.map(({ id }) => id));
}

function contains(node: StageNode, ids: ReadonlySet<string>): boolean {
  return ids.size > 0 && (ids.has(node.id) || node.children.some((child) => contains(child, ids)));
}

/** VS Code knows an item by its object: one with the same id takes over what the new one says. */
function merged(old: readonly StageNode[], fresh: readonly StageNode[]): StageNode[] {
  const known = new Map(old.map((node) => [node.id, node]));
  return fresh.map((node) => {
    const before = known.get(node.id);
    if (before === undefined) return node;
    const children = merged(before.children, node.children);
    if (node.hover === undefined) delete before.hover;
    return Object.assign(before, node, { children });
  });
}
