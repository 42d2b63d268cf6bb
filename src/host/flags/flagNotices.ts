import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as vscode from "vscode";
import { readSetting } from "../../config.ts";
import { flagNews, type FlagNews } from "../../domain/run/flagNews.ts";
import { flagTitle } from "../../domain/run/flagText.ts";
import type { CommandId } from "../../ids.ts";
import { messageOf } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import type { Log } from "../../util/log.ts";
import { isLive } from "../runWords.ts";
import type { WorkspaceModel } from "../workspaceModel.ts";
import { webhookSecret } from "./webhookSecret.ts";

/**
 * Tells what a flag says outside the views, where the person asked for it: one message a run, and a webhook. Of several
 * windows on one workspace exactly one tells each piece of news: the one that makes its file in `.seesaw/cache/told`.
 */
export class FlagNotices implements vscode.Disposable {
  private readonly subscription: vscode.Disposable;
  private readonly secrets: vscode.SecretStorage;
  private readonly log: Log;
  /** Runs that were seen alive: what older ones say is no news. */
  private readonly watched = new Set<string>();
  private readonly handled = new Set<string>();
  private readonly messaged = new Set<string>();
  /** The person was told that the webhook does not work. */
  private complained = false;

  constructor(model: WorkspaceModel, secrets: vscode.SecretStorage, log: Log) {
    this.secrets = secrets;
    this.log = log;
    this.subscription = model.onDidChange(() => {
      for (const view of model.views()) for (const run of view.listing.runs) this.look(view.uri, run);
    });
  }

  /** True when this window has said already that the run lost something: one message a run is enough. */
  hasTold(runDir: string): boolean {
    return this.messaged.has(runDir);
  }

  dispose(): void {
    this.subscription.dispose();
  }

  private look(file: vscode.Uri, run: FlagNews["run"]): void {
    if (isLive(run.state.status)) this.watched.add(run.dir);
    if (!this.watched.has(run.dir)) return;
    for (const news of flagNews(run)) {
      if (this.handled.has(news.key)) continue;
      this.handled.add(news.key);
      this.tell(file, news).catch((error: unknown) => this.log.warn(`${news.key}: ${messageOf(error)}`));
    }
  }

  private async tell(file: vscode.Uri, news: FlagNews): Promise<void> {
    if (!vscode.workspace.isTrusted) return;
    const { run, flag, key } = news;
    const name = readSetting("seesaw.flags.webhook", file);
    if (name !== "" && (await claim(run.dir, `${key}.webhook`))) await this.post(name, news);
    if (flag.state === "confirmed" && readSetting("seesaw.flags.notify", file) && (await claim(run.dir, `${run.id}.message`))) {
      this.messaged.add(run.dir);
      const show = t("Show Token Drift");
      const chosen = await vscode.window.showWarningMessage(t("Stage {0}: {1}.", run.stage, flagTitle(flag)), show);
      if (chosen === show) await vscode.commands.executeCommand("seesaw.showDrift" satisfies CommandId, { file: file.fsPath, stage: run.stage, run: run.id, skill: flag.skill, split: flag.split });
    }
  }

  private async post(name: string, news: FlagNews): Promise<void> {
    const { postWebhook, webhookBody } = await import("./webhook.ts");
    const address = await this.secrets.get(webhookSecret(name));
    const problem = address === undefined ? t("It has no address yet.") : await postWebhook(address, webhookBody(news));
    if (problem === null) {
      this.complained = false;
      return this.log.info(`Told the webhook "${name}": ${news.key}.`);
    }
    this.log.warn(`The webhook "${name}" was not told of ${news.key}. ${problem}`);
    // Once until it works again: what it was to tell is in the views as well, and a run has many flags.
    if (this.complained) return;
    this.complained = true;
    const [set, show] = [t("Set Webhook Address"), t("Show Log")];
    // Nobody waits for the answer: there may be more to tell.
    void vscode.window.showWarningMessage(t("The webhook \"{0}\" was not told of a flag. {1}", name, problem), set, show).then((chosen) => {
      if (chosen !== undefined) void vscode.commands.executeCommand(chosen === set ? ("seesaw.setWebhook" satisfies CommandId) : ("seesaw.showLog" satisfies CommandId));
    });
  }
}

/** True for the first who asks, in whatever window. */
async function claim(runDir: string, name: string): Promise<boolean> {
  const told = join(runDir, "..", "..", "cache", "told");
  await mkdir(told, { recursive: true });
  try {
    await writeFile(join(told, name), "", { flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}
