import * as vscode from "vscode";
import type { CommandId, SettingKey } from "../ids.ts";
import type { ReachReason } from "../protocol/remote.ts";
import { reachOf } from "../targets/remote/reachError.ts";
import { AppError, messageOf, type ErrorReason } from "../util/errors.ts";
import type { Log } from "../util/log.ts";

interface MessageAction {
  label: string;
  run(): Thenable<unknown>;
}

const command = (label: string, id: string, ...args: unknown[]): MessageAction => ({ label, run: () => vscode.commands.executeCommand(id, ...args) });
const showLog = command(vscode.l10n.t("Show Log"), "seesaw.showLog" satisfies CommandId);
const openSetting = command(vscode.l10n.t("Open Setting"), "workbench.action.openSettings", "seesaw.python.path" satisfies SettingKey);
const setUp = command(vscode.l10n.t("Set Up Runner"), "seesaw.setUpRunner" satisfies CommandId);

/** What the person can do about an error, by its reason. Every message can also show the log. */
const actionsByReason: Partial<Record<ErrorReason, MessageAction[]>> = {
  "no-python": [setUp, openSetting],
  "python-packages": [setUp, openSetting],
  "bad-pipeline": [command(vscode.l10n.t("Open Pipeline File"), "seesaw.openPipeline" satisfies CommandId)],
  "already-running": [command(vscode.l10n.t("Show Stages"), "seesaw.stages.focus")],
  untrusted: [command(vscode.l10n.t("Manage Workspace Trust"), "workbench.trust.manage")],
};

const logIn = command(vscode.l10n.t("Open Terminal to Log In"), "seesaw.logIn" satisfies CommandId);
const setToken = command(vscode.l10n.t("Set Ray Token"), "seesaw.setRayToken" satisfies CommandId);
const checkTargets = command(vscode.l10n.t("Check Targets"), "seesaw.checkTarget" satisfies CommandId);

/** The way from a target that cannot be reached or used to what can be done about it. */
function reachActions(reach: ReachReason): MessageAction[] {
  switch (reach) {
    case "login":
    case "host-key":
      return [logIn, checkTargets];
    case "refused":
      return [logIn, setToken];
    case "expired":
      return [setToken, checkTargets];
    case "no-python":
    case "not-writable":
      return [...(actionsByReason["bad-pipeline"] ?? []), checkTargets];
    case "no-route":
    case "no-scheduler":
    case "other":
      return [checkTargets];
  }
}

/** Logs an error and shows it with what can be done about it. A cancelled request is not an error. */
export async function showFailure(what: string, error: unknown, log: Log): Promise<void> {
  if (AppError.is(error, "cancelled")) return log.info(`${what}: cancelled.`);
  log.error(`${what}: ${error instanceof Error && !AppError.is(error) ? (error.stack ?? error.message) : messageOf(error)}`);
  const reach = reachOf(error);
  const actions = [...(AppError.is(error) ? actionsByReason[error.reason] ?? [] : []), ...(reach === null ? [] : reachActions(reach)), showLog];
  const [first, ...rest] = messageOf(error).split("\n");
  const more = rest.length === 0 ? "" : vscode.l10n.t(" (and {0} more, see the log)", rest.length);
  const chosen = await vscode.window.showErrorMessage(`${what}: ${first}${more}`, ...actions.map(({ label }) => label));
  await actions.find(({ label }) => label === chosen)?.run();
}
