import * as vscode from "vscode";
import type { ContextKey, ContextKeys } from "../ids.ts";

const known = new Map<ContextKey, unknown>();

/** Sets a key for `when` clauses; only a change is sent. */
export function setContext<K extends ContextKey>(key: K, value: ContextKeys[K]): void {
  if (known.get(key) === value) return;
  known.set(key, value);
  void vscode.commands.executeCommand("setContext", key, value);
}
