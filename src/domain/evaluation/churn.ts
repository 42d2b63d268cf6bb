import { withSeeds } from "../statistics/estimates.ts";
import { setOf, skillsOf, type EvaluatedSystem } from "./evaluatedSystem.ts";
import { emptyRow, plainRow, rowOrReason, type EvaluationRow, type RowHead } from "./evaluationRow.ts";
import { countsOf, shareOf, type PairedSet, type RowPair } from "./pairedSet.ts";
import { ownStageOf, sinceStage } from "./stages.ts";
import type { Split } from "../../protocol/runSpec.ts";

/**
 * Churn since each skill's own stage, which a net change hides: 1→0 forgotten = lost / passed before, 0→1 learned = gained /
 * failed before (earlywarning research §10). Wilson's interval; by group, and over seeds, as everywhere.
 */
export function churnRows(systems: readonly EvaluatedSystem[]): EvaluationRow[] {
  const [first] = systems as [EvaluatedSystem];
  return skillsOf(first).flatMap((skill) => (["id", "ood"] as const).filter((split) => setOf(first.results, skill, split) !== undefined).flatMap((split) => churnOf(systems, skill, split)));
}

function churnOf(systems: readonly EvaluatedSystem[], skill: string, split: Split): EvaluationRow[] {
  const head = (measure: string): RowHead => ({ question: "churn", measure, skill, split, unit: "share" });
  const own = ownStageOf(systems[0] as EvaluatedSystem, skill);
  // A skill that the end itself has taught has no later stage to change it.
  if (own === (systems[0]?.stages.length ?? 0) - 1 && systems[0]?.stages[own]?.label === systems[0]?.label) return [];
  const rows: EvaluationRow[] = [];
  for (const [measure, passed] of [["forgotten", true], ["learned", false]] as const) {
    rows.push(rowOrReason(head(measure), () => {
      const { set, labels } = sinceStage(systems, skill, split, own);
      const counts = countsOf(set);
      const changed = (pairs: readonly RowPair[]): { pair: RowPair; row: number }[] => pairs.map((pair, row) => ({ pair, row })).filter(({ pair }) => pair.before === passed);
      const all = set.seeds.map(changed);
      const n = (passed ? counts.kept + counts.lost : counts.n - counts.kept - counts.lost);
      if (all.some((one) => one.length === 0)) return emptyRow(head(measure), `No prompt of ${skill} ${split === "id" ? "ID" : "OOD"} ${passed ? "passed" : "failed"} at ${labels.before}.`);
      const perSeed = all.map((one) => one.filter(({ pair }) => pair.after !== passed).length / one.length);
      const estimate = withSeeds(rowsShare(set, all, passed, n), perSeed);
      return plainRow(head(measure), estimate, {
        n: Math.round(n), groups: set.groups === null ? null : new Set(all.flat().map(({ row }) => set.groups?.[row])).size, seeds: systems.length, lost: counts.lost, gained: counts.gained, leftOut: set.leftOut,
        method: `${set.groups === null ? "Wilson's interval" : "t with errors clustered by group"}${systems.length > 1 ? ", and t over the seeds" : ""}`,
      });
    }));
  }
  return rows;
}

/** The share that changed, as far as rows decide it: one observation a row, its mean over the seeds in which it counts. */
function rowsShare(set: PairedSet, all: readonly (readonly { pair: RowPair; row: number }[])[], passed: boolean, n: number): ReturnType<typeof shareOf> {
  const seen = new Map<number, number[]>();
  for (const { pair, row } of all.flat()) seen.set(row, [...(seen.get(row) ?? []), Number(pair.after !== passed)]);
  const entries = [...seen];
  const values = entries.map(([, changes]) => changes.reduce((sum, one) => sum + one, 0) / changes.length);
  if (set.groups !== null) return shareOf(values, entries.map(([row]) => set.groups?.[row] ?? ""));
  const changed = all.flat().filter(({ pair }) => pair.after !== passed).length / all.flat().length;
  // Several seeds: as many observations as one seed has on average.
  return shareOf(Array<number>(Math.max(1, Math.round(n))).fill(changed), null);
}
