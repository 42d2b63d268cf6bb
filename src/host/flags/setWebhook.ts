import * as vscode from "vscode";
import { readSetting } from "../../config.ts";
import type { SettingKey } from "../../ids.ts";
import { t } from "../../util/l10n.ts";
import { webhookProblem } from "./webhook.ts";
import { webhookSecret } from "./webhookSecret.ts";

const setting = "seesaw.flags.webhook" satisfies SettingKey;
const firstName = "flags";

/** Set Webhook Address: keeps the address in the editor's secret storage; the setting turns it on by its name. */
export async function setWebhook({ secrets }: { secrets: vscode.SecretStorage }): Promise<void> {
  const named = readSetting(setting);
  const name = named === "" ? firstName : named;
  const address = await vscode.window.showInputBox({
    title: t("Set Webhook Address"),
    prompt: t("Where a confirmed loss is told: run, stage, skill, state, step and points, nothing else. Empty: forget the address."),
    placeHolder: "https://…",
    password: true,
    ignoreFocusOut: true,
    validateInput: (value) => (value.trim() === "" ? null : webhookProblem(value.trim())),
  });
  if (address === undefined) return;
  if (address.trim() === "") return secrets.delete(webhookSecret(name));
  await secrets.store(webhookSecret(name), address.trim());
  if (named !== "") return void vscode.window.showInformationMessage(t("The address of the webhook \"{0}\" is kept.", name));
  const open = t("Open Settings");
  const chosen = await vscode.window.showInformationMessage(t("The address is kept. To use it, write \"{0}\" into the setting {1}.", name, setting), open);
  if (chosen === open) await vscode.commands.executeCommand("workbench.action.openSettings", setting);
}
