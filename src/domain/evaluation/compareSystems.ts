import { t } from "../../util/l10n.ts";
import { AppError } from "../../util/errors.ts";
import type { Correction } from "../statistics/corrections.ts";
import { setOf, skillsOf, type EvaluatedSystem, type ResultSplit } from "./evaluatedSystem.ts";
import { changeRow, correctTable, emptyRow, rowOrReason, type EvaluationRow, type RowHead } from "./evaluationRow.ts";
import { ends, pairSet } from "./pairedSet.ts";
import { rolesOf } from "./stages.ts";

/** What a remedy changed against the baseline, prompt by prompt. */
export interface Comparison {
  baseline: string;
  rows: (EvaluationRow & { system: string })[];
  correction: Correction;
  /** Seeds that only one side has: left out. Sentences. */
  notes: string[];
}

/**
 * Every system against the baseline on the same prompts: the mean of the old skills (what a remedy is to restore), the new skill
 * (what it must keep), the mean of the OOD sets, of all skills, and each skill. Runs are paired by seed; the p-values of the
 * whole table are corrected together. Throws AppError("usage") when a system has no seed in common with the baseline.
 */
export function compareSystems(baseline: readonly EvaluatedSystem[], others: readonly (readonly EvaluatedSystem[])[], options: { correction?: Correction } = {}): Comparison {
  const { correction = "holm" } = options;
  const notes: string[] = [];
  const name = baseline[0]?.name ?? "";
  const rows = others.flatMap((other) => {
    const pairs = other.flatMap((after) => baseline.filter(({ seed }) => seed === after.seed).map((before) => ({ before, after })));
    const system = other[0]?.name ?? "";
    if (pairs.length === 0) throw new AppError("usage", `${system} and ${name} have no seed in common (${other.map(({ seed }) => seed).join(", ")} against ${baseline.map(({ seed }) => seed).join(", ")}): run both with the same seeds.`);
    const single = [...new Set([...baseline, ...other].map(({ seed }) => seed))].filter((seed) => !pairs.some(({ after }) => after.seed === seed));
    if (single.length > 0) notes.push(`${system}: seed ${single.join(", ")} ${single.length === 1 ? "was" : "were"} run on one side only and ${single.length === 1 ? "is" : "are"} left out.`);
    return measures(pairs).map((row) => ({ ...row, system }));
  });
  const corrected = correctTable(rows, correction);
  return { baseline: name, rows: corrected.map((row, index) => ({ ...row, system: rows[index]?.system ?? "" })), correction, notes };
}

function measures(pairs: readonly { before: EvaluatedSystem; after: EvaluatedSystem }[]): EvaluationRow[] {
  const [{ before, after }] = pairs as [{ before: EvaluatedSystem; after: EvaluatedSystem }];
  const { old, newest } = rolesOf(before);
  const skills = skillsOf(before);
  const ood = skills.filter((skill) => setOf(before.results, skill, "ood") !== undefined);
  const labels = { before: before.name, after: after.name };
  const mean = (measure: string, skill: string | null, of: readonly string[], split: ResultSplit): EvaluationRow[] => {
    if (of.length === 0) return [];
    const head: RowHead = { question: "against-baseline", measure, skill, split };
    return [rowOrReason(head, () => {
      const sets = of.map((one) => pairSet(ends(one, split, pairs.map((pair) => ({ before: pair.before.results, after: pair.after.results })), labels)));
      return changeRow(head, sets.map((set) => ({ weight: 1 / of.length, set })), labels);
    })];
  };
  const rows = [
    ...mean("old-skills", null, old, "id"),
    ...(newest === null ? [] : mean("new-skill", newest, [newest], "id")),
    ...mean("ood", null, ood, "ood"),
    ...mean("all-skills", null, skills, "id"),
    ...skills.filter((skill) => skill !== newest).flatMap((skill) => mean("skill", skill, [skill], "id")),
  ];
  for (const { skill, split } of before.results.filter((set) => set.split === "benchmark" && setOf(after.results, set.skill, "benchmark") !== undefined)) rows.push(...mean("benchmark", skill, [skill], split));
  return rows.length > 0 ? rows : [emptyRow({ question: "against-baseline", measure: "all-skills", skill: null, split: "id" }, t("{0} was not checked.", before.name))];
}
