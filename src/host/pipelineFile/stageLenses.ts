import { skillsTable } from "../../domain/drift/skillsTable.ts";
import { formatPercent } from "../../domain/format.ts";
import type { Pipeline, SourceRange, Stage } from "../../domain/pipeline/pipelineModel.ts";
import type { ChainRun } from "../../domain/run/chain.ts";
import type { CommandId } from "../../ids.ts";
import type { Split } from "../../protocol/runSpec.ts";
import { t } from "../../util/l10n.ts";
import { queuePosition, type QueueView } from "../runQueue.ts";
import { isLive, isResumable, runLine } from "../runWords.ts";
import { liveIcon, queuedWords, type NodeTarget } from "../stageNodes.ts";
import type { PipelineView } from "../workspaceModel.ts";

/** One lens over a stage, as data. A plain blank after an icon is not seen in the editor, so titles have a hard one there. */
export interface StageLens {
  range: SourceRange;
  title: string;
  tooltip: string;
  /** `focus`: shows the Stages view. */
  command: CommandId | "focus";
  target: NodeTarget;
}

/** The lenses over every stage of a pipeline file. Nothing that would start something is offered where it may not. */
export function stageLenses(view: PipelineView, queue: QueueView, trusted: boolean): StageLens[] {
  const { pipeline } = view;
  if (pipeline === null) return [];
  return [...pipeline.stages.flatMap((stage) => [...(trusted ? actions(view, stage, queue) : []), state(view, pipeline, stage, queue), ...drift(view, pipeline, stage)]), ...arena(view, pipeline)];
}

/** Over `arena:`, where the remedies to compare are named. */
function arena(view: PipelineView, { arena: named }: Pipeline): StageLens[] {
  if (named?.range === undefined) return [];
  return [{ range: named.range, title: `$(graph)\u00a0${t("Open Arena")}`, tooltip: t("Compare the remedies on the same chain, budget and prompts"), command: "seesaw.openArena", target: { file: view.uri.fsPath } }];
}

function actions(view: PipelineView, stage: Stage, queue: QueueView): StageLens[] {
  const newest = view.chain?.newest[stage.id] ?? null;
  const on = (title: string, command: CommandId, tooltip: string, run?: ChainRun): StageLens => ({ range: stage.range, title, tooltip, command, target: targetOf(view, stage, run) });
  if (newest !== null && isLive(newest.state.status)) return [on(`$(debug-stop)\u00a0${t("Stop")}`, "seesaw.stopRun", t("Ask the run to stop; it can be resumed from its last checkpoint"), newest)];
  if (queuePosition(queue, view.uri.fsPath, stage.id) !== null) {
    const go = queue.paused === null ? [] : [on(`$(debug-continue)\u00a0${t("Continue Queue")}`, "seesaw.continueQueue", queue.paused)];
    return [...go, on(`$(close)\u00a0${t("Cancel")}`, "seesaw.cancelQueued", t("Take this stage out of the queue"))];
  }
  const run = on(`$(play)\u00a0${t("Run Stage")}`, "seesaw.runStage", t("See the exact command, then start it"));
  return newest !== null && isResumable(newest.state.status) && newest.state.checkpoints.length > 0 ? [on(`$(debug-continue)\u00a0${t("Resume")}`, "seesaw.resumeRun", t("Go on from the last checkpoint"), newest), run] : [run];
}

/** `done · M1 · 100 % math`, `step 40 of 150 · 12 s left`, `queued · position 1`. */
function state(view: PipelineView, pipeline: Pipeline, stage: Stage, queue: QueueView): StageLens {
  const newest = view.chain?.newest[stage.id] ?? null;
  const position = queuePosition(queue, view.uri.fsPath, stage.id);
  const live = newest !== null && isLive(newest.state.status);
  const title = !live && position !== null ? queuedWords(position, queue) : newest === null ? t("not run yet") : live ? runLine(newest.state) : endedLine(view, pipeline, stage, newest);
  const tooltip = newest === null ? t("This stage has not been run") : `${newest.id}: ${runLine(newest.state)}`;
  return { range: stage.range, title: live ? `$(${liveIcon(newest.state.status)})\u00a0${title}` : title, tooltip, command: "focus", target: targetOf(view, stage) };
}

function endedLine(view: PipelineView, pipeline: Pipeline, stage: Stage, newest: ChainRun): string {
  if (newest.state.status !== "done" || view.chain === null) return runLine(newest.state);
  const index = view.chain.checkpoints.findIndex((one) => one.stage === stage.id);
  const checkpoint = view.chain.checkpoints[index];
  if (checkpoint === undefined || checkpoint.status === "missing") return runLine(newest.state);
  const rows = skillsTable(pipeline.skills, view.chain).rows.filter(({ split }) => split === "id");
  const flagged = new Set(raisedFlags(newest).map(({ skill }) => skill));
  const shown = rows.filter(({ skill }) => skill === stage.id || flagged.has(skill)).sort((a, b) => Number(b.skill === stage.id) - Number(a.skill === stage.id));
  const accuracies = shown.flatMap(({ skill, cells }) => (cells[index]?.accuracy == null ? [] : `${flagged.has(skill) ? "⚑ " : ""}${formatPercent(cells[index].accuracy, 0)} ${skill}`));
  return [checkpoint.status === "stale" ? t("done, stale") : t("done"), checkpoint.label, ...accuracies].join(" · ");
}

/** Where there are scores: of the skill that fell, else of the stage's own. */
function drift(view: PipelineView, pipeline: Pipeline, stage: Stage): StageLens[] {
  const newest = view.chain?.newest[stage.id];
  if (newest === undefined || newest.state.probes.length === 0) return [];
  const flag = raisedFlags(newest)[0];
  const skill = flag?.skill ?? pipeline.skills.find(({ id }) => id === stage.id)?.id ?? pipeline.skills[0]?.id;
  if (skill === undefined) return [];
  const split: Split = flag?.split ?? "id";
  return [{ range: stage.range, title: `$(pulse)\u00a0${t("Show Token Drift")}`, tooltip: t("Which tokens of {0} changed", skill), command: "seesaw.showDrift", target: { ...targetOf(view, stage, newest), skill, split } }];
}

function raisedFlags(run: ChainRun): ChainRun["state"]["flags"] {
  const raised = run.state.flags.filter((flag) => flag.state === "confirmed" || flag.state === "drifting");
  return raised.sort((a, b) => Number(b.state === "confirmed") - Number(a.state === "confirmed"));
}

function targetOf(view: PipelineView, stage: Stage, run?: ChainRun): NodeTarget {
  return { file: view.uri.fsPath, stage: stage.id, ...(run === undefined ? {} : { run: run.id }) };
}
