import * as vscode from "vscode";
import { flagTitle } from "../domain/run/flagText.ts";
import type { CommandId, ViewId } from "../ids.ts";
import type { RunRecord } from "../storage/runs/runStore.ts";
import { messageOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import type { RunQueue } from "./runQueue.ts";
import { endText, isLive, runLine, statusBarText } from "./runWords.ts";
import type { WorkspaceModel } from "./workspaceModel.ts";

/**
 * Shows the live runs in the status bar until they end, and then says how each ended: one message an attempt at most. It
 * does not matter who started it: after the window was reloaded, the runs that went on are there again.
 */
export class RunFollower implements vscode.Disposable {
  private readonly followed = new Set<string>();
  private readonly subscription: vscode.Disposable;
  private readonly item: vscode.StatusBarItem;
  private readonly queue: RunQueue;
  private readonly log: Log;

  constructor(model: WorkspaceModel, queue: RunQueue, log: Log) {
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

  private update(all: readonly { file: string; run: RunRecord }[]): void {
    const live = all.filter(({ run }) => isLive(run.state.status)).map(({ run }) => run);
    this.show(live);
    const lives = new Set(live.map(({ dir }) => dir));
    const ended = [...this.followed].filter((dir) => !lives.has(dir));
    for (const dir of lives) this.followed.add(dir);
    for (const dir of ended) {
      this.followed.delete(dir);
      const now = all.find(({ run }) => run.dir === dir);
      if (now !== undefined) sayEnd(now.run, now.file, this.queue).catch((error: unknown) => this.log.warn(`${now.run.id}: ${messageOf(error)}`));
    }
  }

  private show(live: readonly RunRecord[]): void {
    const [first, ...others] = live;
    if (first === undefined) return this.item.hide();
    const more = [...(others.length === 0 ? [] : [`${others.length} more`]), ...(this.queue.waiting.length === 0 ? [] : [`${this.queue.waiting.length} queued`])];
    this.item.text = `$(sync~spin) ${[statusBarText(first.stage, first.state), ...more].join(" · ")}`;
    this.item.tooltip = [...live.map((run) => `${run.stage}: ${runLine(run.state)}`), ...this.queue.waiting.map(({ stage }, index) => `${stage}: queued · position ${index + 1}`), "Click to see the stages."].join("\n");
    this.item.accessibilityInformation = { label: `Seesaw: ${first.stage}, ${runLine(first.state)}`, role: "button" };
    this.item.show();
  }
}

async function sayEnd(run: RunRecord, file: string, queue: RunQueue): Promise<void> {
  const flag = run.state.flags.find(({ state }) => state === "confirmed") ?? run.state.flags.find(({ state }) => state === "drifting");
  const target = { file, stage: run.stage, run: run.id };
  if (run.state.status === "done" && flag !== undefined) {
    const show = "Show Token Drift";
    const chosen = await vscode.window.showWarningMessage(`Stage ${run.stage}: ${flagTitle(flag)}.`, show);
    if (chosen === show) await vscode.commands.executeCommand("seesaw.showDrift" satisfies CommandId, { ...target, skill: flag.skill, split: flag.split });
  } else if (run.state.status !== "done") {
    const paused = queue.isPausedBy(run.dir) ? queue : null;
    if (run.state.status === "cancelled" && paused === null) return;
    const [log, go, clear] = ["Show Run Log", "Continue Queue", "Clear Queue"];
    const why = `Stage ${run.stage}: ${ended(endText(run.state) ?? runLine(run.state))}`;
    const waiting = paused === null ? "" : ` The queue is paused: ${paused.waiting.map(({ stage }) => stage).join(", ")} ${paused.waiting.length === 1 ? "waits" : "wait"}.`;
    const say = run.state.status === "cancelled" ? vscode.window.showWarningMessage : vscode.window.showErrorMessage;
    const chosen = await say(`${why}${waiting}`, log, ...(paused === null ? [] : [go, clear]));
    if (chosen === log) await vscode.commands.executeCommand("seesaw.showRunLog" satisfies CommandId, target);
    else if (chosen === go) queue.resume();
    else if (chosen === clear) queue.clear();
  }
}

function ended(sentence: string): string {
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`;
}
