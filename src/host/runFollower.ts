import * as vscode from "vscode";
import { flagTitle } from "../domain/run/flagText.ts";
import type { CommandId, ViewId } from "../ids.ts";
import type { RunRecord } from "../storage/runs/runStore.ts";
import { messageOf } from "../util/errors.ts";
import { t } from "../util/l10n.ts";
import type { Log } from "../util/log.ts";
import type { RunQueue } from "./runQueue.ts";
import { endText, isLive, runLine, statusBarText, whereLines } from "./runWords.ts";
import { liveIcon } from "./stageNodes.ts";
import type { WorkspaceModel } from "./workspaceModel.ts";

/**
 * Shows the live runs in the status bar until they end, and then says how each ended: one message an attempt at most. It
 * does not matter who started it: after the window was reloaded, the runs that went on are there again.
 */
export class RunFollower implements vscode.Disposable {
  private readonly followed = new Set<string>();
  private live: readonly RunRecord[] = [];
  private readonly subscription: vscode.Disposable;
  private readonly item: vscode.StatusBarItem;
  private readonly queue: RunQueue;
  private readonly log: Log;
  private readonly notices: { hasTold(runDir: string): boolean };

  constructor(model: WorkspaceModel, queue: RunQueue, notices: { hasTold(runDir: string): boolean }, log: Log) {
    this.notices = notices;
    this.queue = queue;
    this.log = log;
    this.item = vscode.window.createStatusBarItem("seesaw.run", vscode.StatusBarAlignment.Left, 10);
    this.item.name = "Seesaw";
    this.item.command = `${"seesaw.stages" satisfies ViewId}.focus`;
    this.subscription = model.onDidChange(() => this.update(model.views().flatMap((view) => view.listing.runs.map((run) => ({ file: view.uri.fsPath, run })))));
  }

  /** What the status bar says; null while no run lives. */
  get text(): string | null {
    return this.followed.size === 0 ? null : this.item.text;
  }

  dispose(): void {
    this.subscription.dispose();
    this.item.dispose();
    this.followed.clear();
  }

  /** The queue changed. */
  queueChanged(): void {
    this.show(this.live);
  }

  private update(all: readonly { file: string; run: RunRecord }[]): void {
    const live = all.filter(({ run }) => isLive(run.state.status)).map(({ run }) => run);
    this.show(live);
    const lives = new Set(live.map(({ dir }) => dir));
    const ended = [...this.followed].filter((dir) => !lives.has(dir));
    for (const dir of lives) this.followed.add(dir);
    for (const dir of ended) {
      this.followed.delete(dir);
      const now = all.find(({ run }) => run.dir === dir);
      if (now === undefined || (now.run.state.status === "done" && this.notices.hasTold(dir))) continue;
      sayEnd(now.run, now.file, this.queue).catch((error: unknown) => this.log.warn(`${now.run.id}: ${messageOf(error)}`));
    }
  }

  private show(live: readonly RunRecord[]): void {
    this.live = live;
    const [first, ...others] = live;
    if (first === undefined) return this.showPause();
    const more = [...(others.length === 0 ? [] : [t("{0} more", others.length)]), ...(this.queue.waiting.length === 0 ? [] : [t("{0} queued", this.queue.waiting.length)])];
    this.item.text = `$(${liveIcon(first.state.status)}) ${[statusBarText(first.stage, first.state), ...more].join(" · ")}`;
    this.item.tooltip = [...live.flatMap((run) => [`${run.stage}: ${runLine(run.state)}`, ...whereLines(run.state)]), ...this.queue.waiting.map(({ stage }, index) => `${stage}: ${t("queued · position {0}", index + 1)}`), t("Click to see the stages.")].join("\n");
    this.item.accessibilityInformation = { label: `Seesaw: ${first.stage}, ${runLine(first.state)}`, role: "button" };
    this.item.show();
  }

  /** Nothing runs; while the queue is paused, what waits is still told. */
  private showPause(): void {
    const { paused, waiting } = this.queue;
    if (paused === null) return this.item.hide();
    const text = t("{0} queued", waiting.length);
    this.item.text = `$(debug-pause) Seesaw: ${text}`;
    this.item.tooltip = [paused, ...waiting.map(({ stage }, index) => `${stage}: ${t("queued · position {0}", index + 1)}`), t("Click to see the stages.")].join("\n");
    this.item.accessibilityInformation = { label: `Seesaw: ${text}. ${paused}`, role: "button" };
    this.item.show();
  }
}

async function sayEnd(run: RunRecord, file: string, queue: RunQueue): Promise<void> {
  // The queue decides first whether this end pauses it.
  await queue.update();
  const flag = run.state.flags.find(({ state }) => state === "confirmed") ?? run.state.flags.find(({ state }) => state === "drifting");
  const target = { file, stage: run.stage, run: run.id };
  if (run.state.status === "done" && flag !== undefined) {
    const show = t("Show Token Drift");
    const chosen = await vscode.window.showWarningMessage(t("Stage {0}: {1}.", run.stage, flagTitle(flag)), show);
    if (chosen === show) await vscode.commands.executeCommand("seesaw.showDrift" satisfies CommandId, { ...target, skill: flag.skill, split: flag.split });
  } else if (run.state.status === "paused") {
    const [go, show] = [t("Resume"), t("Show Token Drift")];
    const waits = queue.isPausedBy(run.dir) ? ` ${t("What is queued waits with it.")}` : "";
    const chosen = await vscode.window.showWarningMessage(`${t("Stage {0}: {1}", run.stage, ended(endText(run.state) ?? runLine(run.state)))}${waits}`, go, show);
    if (chosen === go) await vscode.commands.executeCommand("seesaw.resumeRun" satisfies CommandId, target);
    else if (chosen === show) await vscode.commands.executeCommand("seesaw.showDrift" satisfies CommandId, { ...target, ...(flag !== undefined && { skill: flag.skill, split: flag.split }) });
  } else if (run.state.status !== "done") {
    const paused = queue.isPausedBy(run.dir) ? queue : null;
    if (run.state.status === "cancelled" && paused === null) return;
    const [log, go, clear] = [t("Show Run Log"), t("Continue Queue"), t("Clear Queue")];
    const why = t("Stage {0}: {1}", run.stage, ended(endText(run.state) ?? runLine(run.state)));
    const waiting = paused === null ? "" : ` ${paused.waiting.length === 1 ? t("The queue is paused: {0} waits.", paused.waiting[0]?.stage ?? "") : t("The queue is paused: {0} wait.", paused.waiting.map(({ stage }) => stage).join(", "))}`;
    const say = run.state.status === "cancelled" ? vscode.window.showWarningMessage : vscode.window.showErrorMessage;
    const chosen = await say(`${why}${waiting}`, log, ...(paused === null ? [] : [go, clear]));
    if (chosen === log) await vscode.commands.executeCommand("seesaw.showRunLog" satisfies CommandId, target);
    else if (chosen === go) await queue.resume();
    else if (chosen === clear) await queue.clear();
  }
}

function ended(sentence: string): string {
  return /[.!?。！？]$/.test(sentence) ? sentence : `${sentence}.`;
}
