import * as vscode from "vscode";
import type { CommandId } from "../ids.ts";
import type { StageNode } from "./stageNodes.ts";

const clicks: Record<NonNullable<StageNode["opens"]>, CommandId> = { drift: "seesaw.showDrift", pipeline: "seesaw.openPipeline", addTarget: "seesaw.addTarget", checkTarget: "seesaw.checkTarget", logIn: "seesaw.logIn", rayToken: "seesaw.setRayToken" };

/** A node of our trees as VS Code wants it. */
export function treeItem(node: StageNode): vscode.TreeItem {
  const state = vscode.TreeItemCollapsibleState;
  const item = new vscode.TreeItem(node.label, node.children.length === 0 ? state.None : node.expanded ? state.Expanded : state.Collapsed);
  item.id = node.id;
  item.description = node.description;
  item.tooltip = node.tooltip;
  item.contextValue = node.context;
  item.iconPath = new vscode.ThemeIcon(node.icon.name, node.icon.color === undefined ? undefined : new vscode.ThemeColor(node.icon.color));
  item.accessibilityInformation = { label: `${node.label}, ${node.description}` };
  if (node.opens !== null) item.command = { command: clicks[node.opens], title: node.label, arguments: [node.target] };
  return item;
}
