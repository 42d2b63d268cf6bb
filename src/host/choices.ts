import * as vscode from "vscode";
import { fromName } from "../domain/run/chain.ts";
import type { Pipeline, Stage, Target } from "../domain/pipeline/pipelineModel.ts";
import type { SeedList } from "../domain/pipeline/seedList.ts";
import { startsTogether, targetAddress } from "../domain/targets/targetList.ts";
import { AppError } from "../util/errors.ts";
import type { RunRecord } from "../storage/runs/runStore.ts";
import { t } from "../util/l10n.ts";
import { statusIcon, type NodeTarget } from "./stageNodes.ts";
import type { PipelineView } from "./workspaceModel.ts";
import { runLine } from "./runWords.ts";

/** A stage of a pipeline that can be run. */
export interface ChosenStage {
  view: PipelineView;
  pipeline: Pipeline;
  stage: Stage;
  /** A run for each of these instead of the one with the file's seed; only where the target starts them together. */
  seeds?: SeedList;
}

/** A run and where it belongs. */
export interface ChosenRun {
  view: PipelineView;
  run: RunRecord;
}

/** The stage a command was called on, or one the person picks; undefined when they picked none. AppError("bad-pipeline") when none can be run. */
export async function chooseStage(views: readonly PipelineView[], target?: NodeTarget): Promise<ChosenStage | undefined> {
  const all = views.flatMap((view) => (view.pipeline === null ? [] : view.pipeline.stages.map((stage) => ({ view, pipeline: view.pipeline as Pipeline, stage }))));
  const named = all.find(({ view, stage }) => view.uri.fsPath === target?.file && stage.id === target.stage);
  if (named !== undefined) return named;
  const within = target === undefined ? all : all.filter(({ view }) => view.uri.fsPath === target.file);
  if (within.length === 0) throw new AppError("bad-pipeline", whyNone(target === undefined ? views : views.filter(({ uri }) => uri.fsPath === target.file)));
  const several = new Set(within.map(({ view }) => view)).size > 1;
  const items: (vscode.QuickPickItem & { chosen?: ChosenStage })[] = [];
  for (const chosen of within) {
    const { view, stage, pipeline } = chosen;
    if (several && stage === pipeline.stages[0]) items.push({ label: view.label, kind: vscode.QuickPickItemKind.Separator });
    const newest = view.chain?.newest[stage.id];
    const from = fromName(stage) ?? t("the base model");
    const icon = newest === undefined ? "circle-large-outline" : statusIcon(newest.state.status).name;
    items.push({ label: `$(${icon}) ${stage.id}`, description: newest === undefined ? t("not run yet") : runLine(newest.state), detail: `${t("{0} from {1}", stage.recipe, from)} · ${stage.data === null ? t("no data of its own") : vscode.workspace.asRelativePath(stage.data)}`, chosen });
  }
  const picked = await vscode.window.showQuickPick(items, { title: t("Run Stage"), placeHolder: t("Which stage?"), matchOnDescription: true, matchOnDetail: true });
  return picked?.chosen;
}

/**
 * The stage on the target that the person picks, where the file names several; with several seeds where they want that and the
 * target can. undefined when they picked none.
 */
export async function chooseTarget(chosen: ChosenStage): Promise<ChosenStage | undefined> {
  const { pipeline, stage } = chosen;
  if (pipeline.targets.length < 2) return chosen;
  const own = (id: string): boolean => id === stage.on;
  const items = [...pipeline.targets].sort((a, b) => Number(own(b.id)) - Number(own(a.id))).flatMap((target) => [
    { label: target.id, description: own(target.id) ? t("as the file says") : "", detail: [targetAddress(target), ...(target.python === null ? [] : [target.python])].join(" · "), on: target.id, several: false },
    ...(startsTogether(target) ? [{ label: t("Run with Several Seeds…"), description: target.id, detail: t("One job array on {0}: for each seed a run of its own.", targetAddress(target)), on: target.id, several: true }] : []),
  ]);
  const picked = await vscode.window.showQuickPick(items, { title: t("Run {0}", stage.id), placeHolder: t("On which target?"), matchOnDescription: true, matchOnDetail: true });
  if (picked === undefined) return undefined;
  const there = onTarget(chosen, picked.on);
  return picked.several ? (await import("./targets/severalSeeds.ts")).askSeeds(there) : there;
}

/** The machine a stage runs on, where that is another one; null for this machine. */
export function placeOf({ pipeline, stage }: Pick<ChosenStage, "pipeline" | "stage">): Exclude<Target, { kind: "local" }> | null {
  const target = pipeline.targets.find(({ id }) => id === stage.on);
  return target === undefined || target.kind === "local" ? null : target;
}

/** The same stage on another target, for this once: the file stays as it is. */
export function onTarget(chosen: ChosenStage, on: string): ChosenStage {
  if (chosen.stage.on === on) return chosen;
  const stage = { ...chosen.stage, on };
  return { ...chosen, stage, pipeline: { ...chosen.pipeline, stages: chosen.pipeline.stages.map((one) => (one.id === stage.id ? stage : one)) } };
}

function whyNone(views: readonly PipelineView[]): string {
  const broken = views.find(({ pipeline }) => pipeline === null);
  const first = broken?.diagnostics.find(({ severity }) => severity === "error");
  if (broken === undefined) return t("There is no seesaw.yaml with stages in this workspace.");
  return first === undefined ? t("{0} has errors", broken.label) : t("{0} has errors, the first in line {1}: {2}", broken.label, first.range.line, first.message);
}

/** The run a command was called on (or the newest run of that stage), or one the person picks among those that fit. */
export async function chooseRun(views: readonly PipelineView[], target: NodeTarget | undefined, title: string, fits: (run: RunRecord) => boolean): Promise<ChosenRun | undefined> {
  const all = views.flatMap((view) => view.listing.runs.filter(fits).map((run) => ({ view, run })));
  const named = all.find(({ view, run }) => view.uri.fsPath === target?.file && (target.run === undefined ? run.stage === target.stage : run.id === target.run));
  if (named !== undefined) return named;
  if (target === undefined && all.length === 1) return all[0];
  if (all.length === 0) return void vscode.window.showInformationMessage(t("{0}: there is no run for this.", title));
  const items = all.map(({ view, run }) => ({ label: run.id, description: runLine(run.state), detail: views.length > 1 ? view.label : "", chosen: { view, run } }));
  return (await vscode.window.showQuickPick(items, { title, placeHolder: t("Which run?"), matchOnDescription: true }))?.chosen;
}
