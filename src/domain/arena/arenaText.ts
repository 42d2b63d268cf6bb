import type { EvaluationRow } from "../evaluation/evaluationRow.ts";
import { verdictOf } from "../evaluation/evaluationText.ts";
import { formatNumber } from "../format.ts";
import type { TestedMeasure } from "./arenaCharts.ts";
import type { ArenaEntry, Share } from "./arenaResult.ts";

/** The pass rate that a test is about. */
export function measuredShare({ scores }: ArenaEntry, measure: TestedMeasure): Share | null {
  if (scores === null) return null;
  return { "old-skills": scores.oldSkills, "new-skill": scores.newSkill, ood: scores.ood }[measure];
}

/** The share of prompts that a router sent to the expert of their skill: the mean over the skills. null: no router. */
export function routingAccuracy({ confusion }: ArenaEntry): number | null {
  if (confusion === null) return null;
  const skills = [...new Set(confusion.flatMap(({ bySkill }) => Object.keys(bySkill)))];
  const right = skills.map((skill) => confusion.find(({ expert }) => expert === skill)?.bySkill[skill] ?? 0);
  return skills.length === 0 ? null : right.reduce((sum, one) => sum + one, 0) / skills.length;
}

/** `gain`, `loss`, or `unsure` for what the corrected test does not show. */
export function verdictClass(row: EvaluationRow): "gain" | "loss" | "unsure" {
  const verdict = verdictOf(row);
  return verdict === "gain" || verdict === "loss" ? verdict : "unsure";
}

/** `< 0.001`, `0.031`: corrected where it is. */
export function pText({ adjusted, p }: Pick<EvaluationRow, "adjusted" | "p">): string {
  const shown = adjusted ?? p;
  return shown === null ? "" : shown < 0.001 ? "< 0.001" : formatNumber(shown, 3);
}

/** `2.5e11`: orders of magnitude are what one compares. */
export function flopsText(flops: number | null): string {
  return flops === null ? "–" : flops === 0 ? "0" : flops.toExponential(1).replace("e+", "e");
}
