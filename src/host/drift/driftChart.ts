import { skillCurves, stageSpans, type CurvePoint } from "../../domain/report/reportModel.ts";
import { flagsInTimeOrder, type FlagEntry } from "../../domain/run/flagText.ts";
import { encodeNumber } from "../../protocol/numbers.ts";
import type { ChartPoint, DriftChart } from "../../protocol/webview.ts";
import { t } from "../../util/l10n.ts";
import { factsOf, type FlagKnowledge } from "../flags/flagFacts.ts";
import type { ResolvedSelection } from "./driftChoices.ts";

/** The chosen skill over the whole chain, from the same numbers as the report; null when there are none yet. */
export function readChart({ view, pipeline, chain, skill: id }: Pick<ResolvedSelection, "pipeline" | "chain" | "skill"> & { view?: FlagKnowledge }): DriftChart | null {
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
    flags: curves.marks.map(({ x, entry }) => ({ x, state: entry.state, title: t("{0} step {1}: {2}", entry.stage, entry.step, entry.title), text: entry.text, facts: facts(entry, view) })),
    card: view?.card != null,
  };
}

/** What a raised flag means. */
function facts({ run: id, flag, state }: FlagEntry, view: FlagKnowledge | undefined): { label: string; text: string }[] {
  const run = view?.listing.runs.find((one) => one.id === id);
  if (run === undefined || view === undefined || (state !== "drifting" && state !== "confirmed")) return [];
  // The page that shows it reads traces anyway; what is found out is shown with the next change.
  void view.lookUp?.(run);
  return factsOf(view, run, flag).map(({ label, text }) => ({ label, text }));
}

function pointOf({ x, y, interval, label }: CurvePoint): ChartPoint {
  return { x, y: encodeNumber(y), low: interval?.low ?? null, high: interval?.high ?? null, label };
}
