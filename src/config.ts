import * as vscode from "vscode";
import type { SettingKey, Settings } from "./ids.ts";

/** Reads one setting for a file; the only `getConfiguration` call. Restricted settings of untrusted folders never arrive here. */
export function readSetting<K extends SettingKey>(key: K, scope?: vscode.Uri): Settings[K] {
  const cut = key.lastIndexOf(".");
  const value = vscode.workspace.getConfiguration(key.slice(0, cut), scope ?? null).get<Settings[K]>(key.slice(cut + 1));
  if (value === undefined) throw new Error(`${key} is not declared in package.json.`);
  return value;
}
