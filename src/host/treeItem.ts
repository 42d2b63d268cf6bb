import * as vscode from "vscode";
import type { CommandId } from "../ids.ts";
import { flagHoverCommand } from "./flags/flagFacts.ts";
import type { StageNode } from "./stageNodes.ts";

const clicks: Record<NonNullable<StageNode["opens"]>, CommandId> = { drift: "seesaw.showDrift", pipeline: "seesaw.openPipeline", addTarget: "seesaw.addTarget", checkTarget: "seesaw.checkTarget", logIn: "seesaw.logIn", rayToken: "seesaw.setRayToken" };

/** The hover of a flag: its only link opens the report card. */
export function flagMarkdown(text: string): vscode.MarkdownString {
  const markdown = new vscode.MarkdownString(text);
  markdown.isTrusted = { enabledCommands: [flagHoverCommand] };
  return markdown;
}

/** The tooltip of an item that somebody points at. */
export async function resolveItem(item: vscode.TreeItem, node: StageNode): Promise<vscode.TreeItem> {
  if (node.hover !== undefined) item.tooltip = flagMarkdown(await node.hover());
  return item;
}

/** A node of our trees as VS Code wants it. */
export function treeItem(node: StageNode): vscode.TreeItem {
  const state = vscode.TreeItemCollapsibleState;
  const item = new vscode.TreeItem(node.label, node.children.length === 0 ? state.None : node.expanded ? state.Expanded : state.Collapsed);
  item.id = node.id;
  item.description = node.description;
  // Left out, it is asked for when somebody points at the item.
  if (node.hover === undefined) item.tooltip = node.tooltip;
  item.contextValue = node.context;
  item.iconPath = new vscode.ThemeIcon(node.icon.name, node.icon.color === undefined ? undefined : new vscode.ThemeColor(node.icon.color));
  item.accessibilityInformation = { label: `${node.label}, ${node.description}` };
  if (node.opens !== null) item.command = { command: clicks[node.opens], title: node.label, arguments: [node.target] };
  return item;
}
