import { t } from "../../util/l10n.ts";
import { combine, ratio, withSeeds, type Estimate } from "../statistics/estimates.ts";
import { correlation } from "../statistics/pairs.ts";
import type { EvaluatedSystem } from "./evaluatedSystem.ts";
import { changeRow, clamped, emptyRow, rowOrReason, type EvaluationRow, type RowHead } from "./evaluationRow.ts";
import { countsOf, rateOf, shareOfPassed, type PairedSet } from "./pairedSet.ts";
import { formatPercent } from "../format.ts";
import { ownStageOf, rolesOf, sinceStage } from "./stages.ts";

/**
 * Retention ρ = (R[end] − c) / (R[own] − c) of each old skill, R[own] right after its own stage, c the chance level; the mean
 * over the skills below (earlywarning research §10). Interval: MOVER-R on Wilson's limits with the rows' correlation.
 */
export function retentionRows(systems: readonly EvaluatedSystem[]): EvaluationRow[] {
  const [first] = systems as [EvaluatedSystem];
  const { old } = rolesOf(first);
  if (old.length === 0) return [emptyRow({ question: "retention", measure: "retention", skill: null, split: "id", unit: "ratio" }, t("There is no older skill to retain: the chain teaches one skill."))];
  const ratios: { estimate: Estimate; perSeed: number[]; set: PairedSet; row: EvaluationRow }[] = [];
  const rows = old.map((skill) => {
    const head: RowHead = { question: "retention", measure: "retention", skill, split: "id", unit: "ratio" };
    return rowOrReason(head, () => {
      const { set, labels } = sinceStage(systems, skill, "id", ownStageOf(first, skill));
      const change = changeRow(head, [{ weight: 1, set }], labels);
      const chance = first.chance?.[skill] ?? 0;
      const before = rateOf(set, "before", chance);
      const half = change.from === null ? 0 : 3 * Math.sqrt((change.from.accuracy * (1 - change.from.accuracy)) / change.n);
      if (before.value <= Math.max(half, 1e-9)) return { ...change, estimate: null, interval: null, p: null, why: `${skill} was not known at ${labels.before} (${formatPercent(change.from?.accuracy, 0)}): there was nothing to retain.` };
      const estimate = ratio(rateOf(set, "after", chance), before, correlation(countsOf(set)));
      const perSeed = set.seeds.map((pairs) => (shareOfPassed(pairs.map(({ after }) => after)) - chance) / (shareOfPassed(pairs.map(({ before: passed }) => passed)) - chance));
      const whole = withSeeds(estimate, perSeed);
      const row = { ...change, estimate: whole.value, interval: clamped(whole, 0, Infinity) };
      ratios.push({ estimate, perSeed, set, row });
      return row;
    });
  });
  if (ratios.length < 2) return rows;
  const weight = 1 / ratios.length;
  const joined = withSeeds(combine(ratios.map(({ estimate }) => ({ weight, estimate }))), systems.map((_, seed) => ratios.reduce((sum, { perSeed }) => sum + weight * (perSeed[seed] ?? NaN), 0)));
  const change = changeRow({ question: "retention", measure: "retention", skill: null, split: "id", unit: "ratio" }, ratios.map(({ set }) => ({ weight, set })), { before: "own stages", after: first.label });
  return [...rows, { ...change, estimate: joined.value, interval: clamped(joined, 0, Infinity) }];
}

/** New-skill gain G = R[end][new] − R[before its stage][new]. */
export function newSkillRows(systems: readonly EvaluatedSystem[]): EvaluationRow[] {
  const [first] = systems as [EvaluatedSystem];
  const { newest } = rolesOf(first);
  const head: RowHead = { question: "new-skill", measure: "gain", skill: newest, split: "id" };
  if (newest === null) return [emptyRow(head, t("No stage has the name of a skill, so none is known to teach one."))];
  return [rowOrReason(head, () => {
    const own = ownStageOf(first, newest);
    if (own === 0) return emptyRow(head, t("The checkpoint before the stage of {0} is not known.", newest));
    const { set, labels } = sinceStage(systems, newest, "id", own - 1);
    return changeRow(head, [{ weight: 1, set }], labels);
  })];
}
