import { bootstrap } from "../statistics/bootstrap.ts";
import { skillsOf, type EvaluatedSystem, type SetResult } from "./evaluatedSystem.ts";
import { emptyRow, rowOrReason, type EvaluationRow, type RowHead } from "./evaluationRow.ts";
import { ends, pairSet, sumOfChanges, unitsOf, type PairedSet } from "./pairedSet.ts";
import { withSeeds } from "../statistics/estimates.ts";

export interface SeesawIndex {
  /** 0: all changes in one direction; 1: as much won as lost; null: every change is inside its error. */
  index: number | null;
  /** Sum of the changes that count, up and down, over the number of skills. */
  magnitude: number;
}

/**
 * How much a stage behaves like a seesaw. Δ_k = R[s][k] − R[s−1][k] over the K skills (in-domain), soft-thresholded at its error:
 * Δ̃ = sign(Δ)·max(|Δ| − 1.96·SE, 0); P = Σ Δ̃⁺, L = Σ Δ̃⁻; index = 2·min(P, L) / (P + L), magnitude = (P + L) / K. Without the
 * threshold pure noise reads 0.49 (K = 4) to 0.75 (K = 16). earlywarning research §10.
 */
export function seesawIndex(changes: readonly { change: number; error: number }[]): SeesawIndex {
  let [up, down] = [0, 0];
  for (const { change, error } of changes) {
    const sure = Math.max(0, Math.abs(change) - 1.96 * error);
    if (change > 0) up += sure;
    else down += sure;
  }
  return { index: up + down > 0 ? (2 * Math.min(up, down)) / (up + down) : null, magnitude: changes.length === 0 ? 0 : (up + down) / changes.length };
}

/** One row a stage, and one for all stages together (P and L summed over them). Interval: bootstrap of rows (or groups) crossed with seeds, errors kept. */
export function seesawRows(systems: readonly EvaluatedSystem[]): EvaluationRow[] {
  const [first] = systems as [EvaluatedSystem];
  const skills = skillsOf(first);
  const places: { label: string; results: (system: EvaluatedSystem) => readonly SetResult[] }[] = first.stages.map(({ label }, index) => ({ label, results: (system) => system.stages[index]?.results ?? [] }));
  if (places.at(-1)?.label !== first.label) places.push({ label: first.label, results: ({ results }) => results });
  const steps = places.slice(1).map(({ label, results }, index) => ({ before: places[index] as (typeof places)[number], label, results }));
  const known: PairedSet[][] = [];
  const rows = steps.map(({ before, label, results }) => {
    const head: RowHead = { question: "seesaw", measure: "seesaw-index", skill: null, split: `${before.label} → ${label}`, unit: "index" };
    return rowOrReason(head, () => {
      const labels = { before: before.label, after: label };
      const sets = skills.map((skill) => pairSet(ends(skill, "id", systems.map((system) => ({ before: before.results(system), after: results(system) })), labels)));
      known.push(sets);
      return indexRow(head, [sets], labels);
    });
  });
  if (known.length < 2) return rows;
  const head: RowHead = { question: "seesaw", measure: "seesaw-index-all", skill: null, split: `${places[0]?.label ?? ""} … ${first.label}`, unit: "index" };
  return [...rows, indexRow(head, known, { before: places[0]?.label ?? "", after: first.label })];
}

function indexRow(head: RowHead, steps: readonly (readonly PairedSet[])[], labels: { before: string; after: string }): EvaluationRow {
  const sets = steps.flat();
  const seeds = sets[0]?.seeds.length ?? 1;
  const error = sets.map((set) => {
    const { rows, perSeed } = sumOfChanges([{ weight: 1, set }]);
    const { low, high } = withSeeds(rows, perSeed).interval(0.95);
    return (high - low) / 2 / 1.96;
  });
  const resampling = resampler(sets, steps[0]?.length ?? 0, seeds);
  const indexOf = (drawn: Float64Array): SeesawIndex => seesawIndex(sets.map((_, index) => ({ change: resampling.change(index, drawn), error: error[index] ?? 0 })));
  // Large sets need fewer: each resample draws every row.
  const resamples = Math.max(200, Math.min(1000, Math.floor(2e7 / resampling.strata.reduce((sum, size) => sum + size, 0))));
  const all = indexOf(new Float64Array(resampling.strata.reduce((sum, size) => sum + size, 0)).fill(1));
  const found: Omit<EvaluationRow, "estimate" | "interval" | "why"> = {
    ...emptyRow(head, ""), unit: "index", n: sets.reduce((sum, set) => sum + (set.seeds[0]?.length ?? 0), 0), seeds, groups: sets.some(({ groups }) => groups !== null) ? sets.reduce((sum, set) => sum + unitsOf(set), 0) : null,
    from: null, to: null, method: `bootstrap of ${seeds > 1 ? "rows and seeds" : "rows"}, ${resamples} resamples; magnitude ${(100 * all.magnitude).toFixed(1)} points`,
  };
  if (all.index === null) return { ...found, estimate: null, interval: null, why: `From ${labels.before} to ${labels.after} every change is inside its error: there is no seesaw to measure.` };
  // A resample without any sure change has no swing in it: it counts as 0.
  const { interval } = bootstrap(resampling.strata, (drawn) => indexOf(drawn).index ?? 0, { resamples, seed: 1 });
  return { ...found, estimate: all.index, interval, why: null };
}

/** Draws rows or groups of each skill once for all stages (they are the same prompts), and seeds. */
function resampler(sets: readonly PairedSet[], perStep: number, seeds: number): { strata: number[]; change(index: number, drawn: Float64Array): number } {
  const summed = sets.map(unitSums);
  const sizes = summed.slice(0, perStep).map(({ rows }) => rows.length);
  const seedsFrom = sizes.reduce((sum, size) => sum + size, 0);
  return {
    strata: [...sizes, ...(seeds > 1 ? [seeds] : [])],
    change(index, drawn) {
      const { rows, changes } = summed[index] as (typeof summed)[number];
      const first = sizes.slice(0, index % perStep).reduce((sum, size) => sum + size, 0);
      let [sum, weight] = [0, 0];
      changes.forEach((ofSeed, seed) => {
        const times = seeds > 1 ? (drawn[seedsFrom + seed] as number) : 1;
        for (let unit = 0; times > 0 && unit < rows.length; unit += 1) {
          const count = times * (drawn[first + unit] as number);
          weight += count * (rows[unit] as number);
          sum += count * (ofSeed[unit] as number);
        }
      });
      return weight > 0 ? sum / weight : 0;
    },
  };
}

/** Rows of each unit (a row, or a group), and the sum of their changes in each seed. */
function unitSums({ groups, seeds }: PairedSet): { rows: Float64Array; changes: Float64Array[] } {
  const names = groups ?? (seeds[0] ?? []).map((_, row) => String(row));
  const place = new Map([...new Set(names)].map((name, index) => [name, index]));
  const rows = new Float64Array(place.size);
  const changes = seeds.map(() => new Float64Array(place.size));
  names.forEach((name, row) => {
    const unit = place.get(name) as number;
    rows[unit] = (rows[unit] as number) + 1;
    seeds.forEach((pairs, seed) => {
      const sums = changes[seed] as Float64Array;
      sums[unit] = (sums[unit] as number) + Number(pairs[row]?.after) - Number(pairs[row]?.before);
    });
  });
  return { rows, changes };
}
