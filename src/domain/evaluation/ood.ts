import { t } from "../../util/l10n.ts";
import { combine, withSeeds } from "../statistics/estimates.ts";
import { setOf, skillsOf, type EvaluatedSystem, type ResultSplit } from "./evaluatedSystem.ts";
import { changeRow, emptyRow, plainRow, rowOrReason, type EvaluationRow, type RowHead } from "./evaluationRow.ts";
import { ends, pairSet, rateOf, shareOfPassed, unitsOf, type PairedSet } from "./pairedSet.ts";
import { sinceStage } from "./stages.ts";

/**
 * OOD robustness: the shift (R_ood[end] − R_ood[base]) − (R_id[end] − R_id[base]) of each skill and its mean (negative: what was
 * learned does not carry over), and the OOD pass rate itself.
 */
export function oodRows(systems: readonly EvaluatedSystem[]): EvaluationRow[] {
  const [first] = systems as [EvaluatedSystem];
  const skills = skillsOf(first).filter((skill) => setOf(first.results, skill, "ood") !== undefined);
  if (skills.length === 0) return [emptyRow({ question: "ood", measure: "ood-shift", skill: null, split: "ood" }, t("No skill has OOD probes: add `ood` to a skill."))];
  const all: { ood: PairedSet; id: PairedSet }[] = [];
  const rows = skills.map((skill) => {
    const head: RowHead = { question: "ood", measure: "ood-shift", skill, split: "ood" };
    return rowOrReason(head, () => {
      const ood = sinceStage(systems, skill, "ood", 0);
      const id = sinceStage(systems, skill, "id", 0);
      all.push({ ood: ood.set, id: id.set });
      return changeRow(head, [{ weight: 1, set: ood.set }, { weight: -1, set: id.set }], ood.labels);
    });
  });
  if (all.length > 1) {
    const weight = 1 / all.length;
    rows.push(changeRow({ question: "ood", measure: "ood-shift", skill: null, split: "ood" }, all.flatMap(({ ood, id }) => [{ weight, set: ood }, { weight: -weight, set: id }]), { before: "", after: first.label }));
  }
  return [...rows, levelRow(systems, { question: "ood", measure: "ood-accuracy", skill: null, split: "ood", unit: "share" }, skills, "ood")];
}

/** The mean pass rate of some skills at the end. */
export function levelRow(systems: readonly EvaluatedSystem[], head: RowHead, skills: readonly string[], split: ResultSplit): EvaluationRow {
  return rowOrReason(head, () => {
    const weight = 1 / skills.length;
    // A set paired with itself: the rows that every seed has.
    const sets = skills.map((skill) => pairSet(ends(skill, split, systems.map(({ results }) => ({ before: results, after: results })), { before: systems[0]?.label ?? "", after: systems[0]?.label ?? "" })));
    const parts = sets.map((set) => ({ weight, estimate: rateOf(set, "after") }));
    const estimate = withSeeds(combine(parts), systems.map((_, seed) => sets.reduce((sum, set) => sum + weight * shareOfPassed((set.seeds[seed] ?? []).map(({ after }) => after)), 0)));
    const grouped = sets.some(({ groups }) => groups !== null);
    return plainRow(head, estimate, { n: sets.reduce((sum, set) => sum + (set.seeds[0]?.length ?? 0), 0), groups: grouped ? sets.reduce((sum, set) => sum + unitsOf(set), 0) : null, seeds: systems.length, method: `${grouped ? "t with errors clustered by group" : "Wilson's intervals (MOVER)"}${systems.length > 1 ? ", and t over the seeds" : ""}` });
  });
}
