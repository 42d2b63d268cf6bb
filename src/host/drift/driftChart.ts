import { skillCurves, stageSpans, type CurvePoint } from "../../domain/report/reportModel.ts";
import { flagCardText, unreadReplay } from "../../domain/run/flagCard.ts";
import { flagsInTimeOrder, type FlagEntry } from "../../domain/run/flagText.ts";
import { encodeNumber } from "../../protocol/numbers.ts";
import type { ChartPoint, DriftChart } from "../../protocol/webview.ts";
import { t } from "../../util/l10n.ts";
import type { PipelineView } from "../workspaceModel.ts";
import type { ResolvedSelection } from "./driftChoices.ts";

/** The chosen skill over the whole chain, from the same numbers as the report; null when there are none yet. */
export function readChart({ view, pipeline, chain, skill: id }: Pick<ResolvedSelection, "pipeline" | "chain" | "skill"> & { view?: Pick<PipelineView, "listing" | "card"> }): DriftChart | null {
  const skill = pipeline.skills.find((one) => one.id === id);
  if (skill === undefined) return null;
  const stages = stageSpans(chain);
  const curves = skillCurves(pipeline, chain, skill, stages, flagsInTimeOrder(chain));
  const splits = curves.splits.map(({ split, accuracy, logprob }) => ({ split, accuracy: accuracy.map(pointOf), logprob: logprob.map(pointOf) }));
  if (splits.every(({ accuracy, logprob }) => accuracy.length + logprob.length === 0)) return null;
  return {
    skill: id,
    ownStage: curves.ownStage,
    stages,
    splits,
    flags: curves.marks.map(({ x, entry }) => ({ x, state: entry.state, title: t("{0} step {1}: {2}", entry.stage, entry.step, entry.title), text: [entry.text, ...facts(entry, view)].join("\n") })),
  };
}

/** What a raised flag means, a line each. */
function facts({ run: id, flag, state }: FlagEntry, view: Pick<PipelineView, "listing" | "card"> | undefined): string[] {
  const run = view?.listing.runs.find((one) => one.id === id);
  if (run === undefined || view === undefined || (state !== "drifting" && state !== "confirmed")) return [];
  return [flagCardText({ flag, run, runs: view.listing.runs, card: view.card ?? null, replay: unreadReplay(run) })];
}

function pointOf({ x, y, interval, label }: CurvePoint): ChartPoint {
  return { x, y: encodeNumber(y), low: interval?.low ?? null, high: interval?.high ?? null, label };
}
