import * as vscode from "vscode";
import { flagTitle } from "../domain/run/flagText.ts";
import type { CommandId } from "../ids.ts";
import type { RunRecord } from "../storage/runs/runStore.ts";
import { messageOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { endText, isLive, runLine } from "./runWords.ts";
import type { WorkspaceModel } from "./workspaceModel.ts";

interface Followed {
  show(run: RunRecord): void;
  end(): void;
}

/**
 * Shows every live run in the status bar until it ends, and then says how it ended: one message an attempt at most. It
 * does not matter who started it: after the window was reloaded, the runs that went on are there again.
 */
export class RunFollower implements vscode.Disposable {
  private readonly followed = new Map<string, Followed>();
  private readonly subscription: vscode.Disposable;
  private readonly log: Log;

  constructor(model: WorkspaceModel, log: Log) {
    this.log = log;
    this.subscription = model.onDidChange(() => this.update(model.views().flatMap((view) => view.listing.runs.map((run) => ({ file: view.uri.fsPath, run })))));
  }

  /** How many runs are shown. */
  get count(): number {
    return this.followed.size;
  }

  dispose(): void {
    this.subscription.dispose();
    for (const { end } of this.followed.values()) end();
    this.followed.clear();
  }

  private update(all: readonly { file: string; run: RunRecord }[]): void {
    const byDir = new Map(all.map((one) => [one.run.dir, one]));
    for (const { run } of all) if (isLive(run.state.status) && !this.followed.has(run.dir)) this.followed.set(run.dir, begin(run));
    for (const [dir, followed] of this.followed) {
      const now = byDir.get(dir);
      if (now !== undefined && isLive(now.run.state.status)) {
        followed.show(now.run);
        continue;
      }
      followed.end();
      this.followed.delete(dir);
      if (now !== undefined) sayEnd(now.run, now.file).catch((error: unknown) => this.log.warn(`${now.run.id}: ${messageOf(error)}`));
    }
  }
}

function begin(run: RunRecord): Followed {
  const followed: Followed = { show: () => {}, end: () => {} };
  void vscode.window.withProgress({ location: vscode.ProgressLocation.Window, title: run.stage }, (progress) => {
    followed.show = ({ state }) => progress.report({ message: runLine(state) });
    return new Promise<void>((resolve) => (followed.end = resolve));
  });
  return followed;
}

async function sayEnd(run: RunRecord, file: string): Promise<void> {
  const flag = run.state.flags.find(({ state }) => state === "confirmed") ?? run.state.flags.find(({ state }) => state === "drifting");
  const target = { file, stage: run.stage, run: run.id };
  if (run.state.status === "done" && flag !== undefined) {
    const show = "Show Token Drift";
    const chosen = await vscode.window.showWarningMessage(`Stage ${run.stage}: ${flagTitle(flag)}.`, show);
    if (chosen === show) await vscode.commands.executeCommand("seesaw.showDrift" satisfies CommandId, { ...target, skill: flag.skill, split: flag.split });
  } else if (run.state.status !== "done" && run.state.status !== "cancelled") {
    const log = "Show Run Log";
    const chosen = await vscode.window.showErrorMessage(`Stage ${run.stage}: ${endText(run.state) ?? runLine(run.state)}`, log);
    if (chosen === log) await vscode.commands.executeCommand("seesaw.showRunLog" satisfies CommandId, target);
  }
}
