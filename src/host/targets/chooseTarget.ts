import * as vscode from "vscode";
import type { Target } from "../../domain/pipeline/pipelineModel.ts";
import { targetAddress } from "../../domain/targets/targetList.ts";
import { t } from "../../util/l10n.ts";
import type { NodeTarget } from "../stageNodes.ts";
import type { PipelineView } from "../workspaceModel.ts";

/** A target and the file that names it. */
export interface ChosenTarget {
  view: PipelineView;
  target: Target;
}

/** The target a command was called on, or one the person picks among those that fit; undefined when they picked none or there is none. */
export async function chooseTargetOf(views: readonly PipelineView[], called: NodeTarget | undefined, title: string, fits: (target: Target) => boolean): Promise<ChosenTarget | undefined> {
  const all = views.flatMap((view) => (view.shown?.targets ?? []).filter(fits).map((target) => ({ view, target })));
  const named = called?.on === undefined ? undefined : all.find(({ view, target }) => view.uri.fsPath === called.file && target.id === called.on);
  if (named !== undefined) return named;
  if (all.length === 0) return void vscode.window.showInformationMessage(t("{0}: seesaw.yaml names no target for this.", title));
  if (all.length === 1) return all[0];
  const items = all.map((chosen) => ({ label: chosen.target.id, description: targetAddress(chosen.target), detail: views.length > 1 ? chosen.view.label : "", chosen }));
  return (await vscode.window.showQuickPick(items, { title, placeHolder: t("Which target?"), matchOnDescription: true }))?.chosen;
}
