import * as vscode from "vscode";
import { loginHost } from "../../domain/targets/targetList.ts";
import { t } from "../../util/l10n.ts";
import type { Log } from "../../util/log.ts";
import type { NodeTarget } from "../stageNodes.ts";
import type { WorkspaceModel } from "../workspaceModel.ts";
import { chooseTargetOf } from "./chooseTarget.ts";
import type { TargetsTree } from "./targetsTree.ts";

export interface LogInHost {
  model: WorkspaceModel;
  targets: TargetsTree;
  remoteRuns: { retry(): void };
  /** The ssh command that logs in to a host and may ask, sharing its connection with ours where ssh can. */
  loginArgv(host: string): Promise<string[]>;
  log: Log;
}

/**
 * Open Terminal to Log In: ssh in a terminal, where it can ask for a password, a second factor or whether a host key is
 * right. Seesaw itself never answers such a question. The program and its words are data: no shell reads them.
 */
export async function logIn({ model, targets, remoteRuns, loginArgv, log }: LogInHost, called?: NodeTarget): Promise<vscode.Terminal | undefined> {
  const chosen = await chooseTargetOf(model.views(), called, t("Open Terminal to Log In"), (target) => loginHost(target) !== null);
  const host = chosen === undefined ? null : loginHost(chosen.target);
  if (chosen === undefined || host === null) return undefined;
  const [shellPath = "ssh", ...shellArgs] = await loginArgv(host);
  const terminal = vscode.window.createTerminal({
    name: t("Log in to {0}", host),
    shellPath,
    shellArgs,
    cwd: vscode.Uri.joinPath(chosen.view.uri, ".."),
    isTransient: true,
    iconPath: new vscode.ThemeIcon("server"),
    message: t("Log in here as {0} asks. When it works without a question, Seesaw can use it too; leave with `exit`.", host),
  });
  terminal.show();
  log.info(`Opened a terminal: ${[shellPath, ...shellArgs].join(" ")}`);
  const closed = vscode.window.onDidCloseTerminal((one) => {
    if (one !== terminal) return;
    closed.dispose();
    // They did something about it: see whether it helped.
    remoteRuns.retry();
    void targets.check(chosen.view.uri.fsPath, chosen.target.id);
  });
  return terminal;
}
