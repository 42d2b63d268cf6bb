import { AppError } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { combine, withSeeds } from "../statistics/estimates.ts";
import type { EvaluatedSystem, RoutedRow } from "./evaluatedSystem.ts";
import { changeRow, emptyRow, plainRow, rowOrReason, type EvaluationRow, type RowHead } from "./evaluationRow.ts";
import { shareOf, type PairedSet } from "./pairedSet.ts";

/**
 * Routing: share of prompts that went to their own skill's expert (and the mean over skills, which many prompts of one skill
 * do not sway), by set of prompts; and the regret, what the router's choice loses against the best expert for each prompt
 * (several experts may answer a prompt, so the label alone is no measure). earlywarning research §10.
 */
export function routingRows(systems: readonly EvaluatedSystem[]): EvaluationRow[] {
  const [first] = systems as [EvaluatedSystem];
  if (first.routing === undefined) return [emptyRow({ question: "routing", measure: "routing-accuracy", skill: null, split: null, unit: "share" }, t("There is no router: one model answers every prompt."))];
  const splits = [...new Set(first.routing.map(({ split }) => split))];
  return splits.flatMap((split) => {
    const seeds = systems.map((system) => (system.routing ?? []).filter((row) => row.split === split));
    return [accuracyRow(seeds, split), ...balancedRows(seeds, split), ...regretRows(seeds, split)];
  });
}

/** Rows and columns are skills: prompts of the row's skill that went to the column's expert. */
export function routingConfusion(rows: readonly RoutedRow[]): { skills: string[]; picked: string[]; counts: number[][] } {
  const skills = [...new Set(rows.map(({ skill }) => skill))];
  const picked = [...new Set([...skills, ...rows.map((row) => row.picked)])];
  return { skills, picked, counts: skills.map((skill) => picked.map((expert) => rows.filter((row) => row.skill === skill && row.picked === expert).length)) };
}

const right = ({ skill, picked }: RoutedRow): number => Number(skill === picked);

function accuracyRow(seeds: readonly RoutedRow[][], split: string): EvaluationRow {
  const head: RowHead = { question: "routing", measure: "routing-accuracy", skill: null, split, unit: "share" };
  return rowOrReason(head, () => {
    const { values, groups } = perRow(seeds, right);
    const estimate = withSeeds(shareOf(values, groups, seeds.length), seeds.map((rows) => rows.reduce((sum, row) => sum + right(row), 0) / rows.length));
    return plainRow(head, estimate, { n: values.length, groups: groups === null ? null : new Set(groups).size, seeds: seeds.length, method: methodOf(groups, seeds.length, "Wilson's interval") });
  });
}

function balancedRows(seeds: readonly RoutedRow[][], split: string): EvaluationRow[] {
  const skills = [...new Set(seeds[0]?.map(({ skill }) => skill))];
  if (skills.length < 2) return [];
  const head: RowHead = { question: "routing", measure: "routing-accuracy-balanced", skill: null, split, unit: "share" };
  return [rowOrReason(head, () => {
    const weight = 1 / skills.length;
    const parts = skills.map((skill) => perRow(seeds.map((rows) => rows.filter((row) => row.skill === skill)), right));
    const perSeed = seeds.map((rows) => skills.reduce((sum, skill) => {
      const own = rows.filter((row) => row.skill === skill);
      return sum + (weight * own.reduce((total, row) => total + right(row), 0)) / own.length;
    }, 0));
    const grouped = parts.some(({ groups }) => groups !== null);
    return plainRow(head, withSeeds(combine(parts.map(({ values, groups }) => ({ weight, estimate: shareOf(values, groups, seeds.length) }))), perSeed), {
      n: parts.reduce((sum, { values }) => sum + values.length, 0), groups: grouped ? parts.reduce((sum, { values, groups }) => sum + (groups === null ? values.length : new Set(groups).size), 0) : null, seeds: seeds.length, method: methodOf(grouped ? [] : null, seeds.length, "Wilson's intervals (MOVER)"),
    });
  })];
}

/** One observation a prompt: its mean over the seeds. AppError("not-comparable") when the seeds did not route the same prompts. */
function perRow(seeds: readonly RoutedRow[][], value: (row: RoutedRow) => number): { values: number[]; groups: string[] | null } {
  const [first = []] = seeds;
  const maps = seeds.map((rows) => new Map(rows.map((row) => [row.key, row])));
  if (first.length === 0 || maps.some((map) => map.size !== first.length || first.some(({ key }) => !map.has(key)))) throw new AppError("not-comparable", t("Routing is not comparable: the seeds did not route the same prompts."));
  const values = first.map(({ key }) => maps.reduce((sum, map) => sum + value(map.get(key) as RoutedRow), 0) / seeds.length);
  return { values, groups: first.some(({ group }) => group !== undefined) ? first.map(({ group, key }) => group ?? `row ${key}`) : null };
}

function methodOf(groups: readonly string[] | null, seeds: number, otherwise: string): string {
  return `${groups === null ? otherwise : "t with errors clustered by group"}${seeds > 1 ? ", and t over the seeds" : ""}`;
}

/** From the best expert for each prompt to the one that was picked: never positive. */
function regretRows(seeds: readonly RoutedRow[][], split: string): EvaluationRow[] {
  if (!seeds.every((rows) => rows.length > 0 && rows.every(({ correct }) => correct !== undefined))) return [];
  const head: RowHead = { question: "routing", measure: "routing-regret", skill: null, split };
  return [rowOrReason(head, () => {
    const { groups } = perRow(seeds, right);
    const keys = (seeds[0] ?? []).map(({ key }) => key);
    const set: PairedSet = {
      skill: "routing", split: "id", groups, leftOut: 0,
      seeds: seeds.map((rows) => {
        const map = new Map(rows.map((row) => [row.key, row]));
        return keys.map((key) => {
          const row = map.get(key) as RoutedRow;
          return { before: Object.values(row.correct ?? {}).some(Boolean), after: row.correct?.[row.picked] ?? false };
        });
      }),
    };
    const row = changeRow(head, [{ weight: 1, set }], { before: "best expert", after: "routed" });
    // A loss by construction: nothing to test, and no interval reaches beyond none.
    return { ...row, interval: row.interval && { low: row.interval.low, high: Math.min(0, row.interval.high) }, p: null, resolution: null };
  })];
}
