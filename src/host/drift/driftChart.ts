import { skillCurves, stageSpans, type CurvePoint } from "../../domain/report/reportModel.ts";
import { flagsInTimeOrder } from "../../domain/run/flagText.ts";
import { encodeNumber } from "../../protocol/numbers.ts";
import type { ChartPoint, DriftChart } from "../../protocol/webview.ts";
import { t } from "../../util/l10n.ts";
import type { ResolvedSelection } from "./driftChoices.ts";

/** The chosen skill over the whole chain, from the same numbers as the report; null when there are none yet. */
export function readChart({ pipeline, chain, skill: id }: Pick<ResolvedSelection, "pipeline" | "chain" | "skill">): DriftChart | null {
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
    flags: curves.marks.map(({ x, entry: { state, title, text, stage, step } }) => ({ x, state, title: t("{0} step {1}: {2}", stage, step, title), text })),
  };
}

function pointOf({ x, y, interval, label }: CurvePoint): ChartPoint {
  return { x, y: encodeNumber(y), low: interval?.low ?? null, high: interval?.high ?? null, label };
}
