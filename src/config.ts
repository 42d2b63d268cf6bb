import * as vscode from "vscode";
import type { SettingKey, Settings } from "./ids.ts";

/** Reads one setting of ours for a file. Restricted settings of untrusted folders never arrive here. */
export function readSetting<K extends SettingKey>(key: K, scope?: vscode.Uri): Settings[K] {
  const cut = key.lastIndexOf(".");
  const value = vscode.workspace.getConfiguration(key.slice(0, cut), scope ?? null).get<Settings[K]>(key.slice(cut + 1));
  if (value === undefined) throw new Error(`${key} is not declared in package.json.`);
  return value;
}

/**
 * Whether VS Code finds the proxies of what extensions ask for: unless `http.proxySupport` is off, its own agents stand before
 * those that a request brings, and follow `http.proxy`, `http.noProxy`, the environment and the system.
 */
export function editorFindsProxies(): boolean {
  return vscode.workspace.getConfiguration("http").get<string>("proxySupport", "override") !== "off";
}
