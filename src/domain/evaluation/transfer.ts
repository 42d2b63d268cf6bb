import { t } from "../../util/l10n.ts";
import { AppError } from "../../util/errors.ts";
import type { EvaluatedSystem } from "./evaluatedSystem.ts";
import { changeRow, emptyRow, rowOrReason, type EvaluationRow, type RowHead } from "./evaluationRow.ts";
import type { PairedSet } from "./pairedSet.ts";
import { betweenStages, sinceStage } from "./stages.ts";

/**
 * Backward and forward transfer of Lopez-Paz & Ranzato 2017 (arXiv 1706.08840, eq. 3–4) over the S stages that teach a skill;
 * R[s][i] is the in-domain pass rate of the skill of stage i after stage s.
 *
 * BWT = 1/(S−1) Σ_{i<S} (R[end][i] − R[i][i]); FWT = 1/(S−1) Σ_{i≥2} (R[before i][i] − b_i). Their b_i is a randomly
 * initialised model; ours is the base M0, so FWT is what the stages before taught of a skill beyond what the base knew.
 */
export function transferRows(systems: readonly EvaluatedSystem[]): EvaluationRow[] {
  const [first] = systems as [EvaluatedSystem];
  // A skill that is taught twice counts from its last stage on, as for retention.
  const taught = first.stages.flatMap(({ teaches, label }, index) => (teaches !== null && first.stages.findLastIndex((stage) => stage.teaches === teaches) === index ? [{ skill: teaches, index, label }] : []));
  const heads: [RowHead, RowHead] = [{ question: "transfer", measure: "bwt", skill: null, split: "id" }, { question: "transfer", measure: "fwt", skill: null, split: "id" }];
  if (taught.length < 2) return heads.map((head) => emptyRow(head, t("Transfer needs at least two stages that teach a skill.")));
  const weight = 1 / (taught.length - 1);
  const [bwt, fwt] = heads;
  return [
    rowOrReason(bwt, () => changeRow(bwt, each(taught.slice(0, -1), weight, ({ skill, index }) => sinceStage(systems, skill, "id", index).set), { before: "own stages", after: first.label })),
    rowOrReason(fwt, () => {
      if (first.stages[0]?.teaches !== null) throw new AppError("not-found", t("The base was not checked."));
      return changeRow(fwt, each(taught.slice(1), weight, ({ skill, index }) => betweenStages(systems, skill, "id", 0, index - 1).set), { before: first.stages[0].label, after: "before own stages" });
    }),
  ];
}

function each<T>(items: readonly T[], weight: number, make: (item: T) => PairedSet): { weight: number; set: PairedSet }[] {
  return items.map((item) => ({ weight, set: make(item) }));
}
