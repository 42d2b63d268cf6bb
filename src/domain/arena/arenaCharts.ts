import type { EvaluationRow } from "../evaluation/evaluationRow.ts";
import type { ArenaEntry, ArenaResult, RoutedCount, Share } from "./arenaResult.ts";

/** Kinds that look alike in a picture: by colour and by the shape of their mark. */
export const families = ["chain", "replay", "tuning", "distill", "merge", "experts", "joint"] as const;
export type Family = (typeof families)[number];

const familyOfKind: Readonly<Record<ArenaEntry["kind"], Family>> = { chain: "chain", replay: "replay", "self-distill": "tuning", "oracle-sft": "tuning", distill: "distill", merge: "merge", experts: "experts", together: "experts", joint: "joint" };

export function familyOf({ kind }: Pick<ArenaEntry, "kind">): Family {
  return familyOfKind[kind];
}

/** A system on the plane: how much of the old it has, and of the new. Shares, 0 to 1. */
export interface PlanePoint {
  id: string;
  title: string;
  family: Family;
  x: Share;
  y: Share;
  /** What every seed gave. */
  seeds: { seed: number; x: number; y: number }[];
  /** Tokens that its own stages trained on: the area of the mark. null: not known. */
  tokens: number | null;
}

export interface Plane {
  points: PlanePoint[];
  /** What the axes show, as shares; they need not begin at 0. */
  x: { low: number; high: number };
  y: { low: number; high: number };
}

/** Restored old skills against the kept new one. Further points of a sensitivity curve have a picture of their own. null: nothing to draw. */
export function planeOf({ entries }: ArenaResult): Plane | null {
  const points = entries.flatMap((entry): PlanePoint[] => {
    const { id, title, scores, cost, sweep } = entry;
    if (scores?.oldSkills == null || scores.newSkill === null || (sweep !== null && sweep.of !== id)) return [];
    const { oldSkills: x, newSkill: y } = scores;
    const seeds = x.seeds.flatMap(({ seed, value }) => y.seeds.filter((one) => one.seed === seed).map((one) => ({ seed, x: value, y: one.value })));
    return [{ id, title, family: familyOf(entry), x, y, seeds, tokens: cost.own?.tokens ?? null }];
  });
  if (points.length === 0) return null;
  const range = (of: (point: PlanePoint) => number[]): { low: number; high: number } => rangeOf(points.flatMap(of));
  return {
    points,
    x: range(({ x, seeds }) => [x.interval.low, x.interval.high, ...seeds.map((one) => one.x)]),
    y: range(({ y, seeds }) => [y.interval.low, y.interval.high, ...seeds.map((one) => one.y)]),
  };
}

/** Whole tenths around all values, and at least three of them: nothing small is blown up to look large. */
function rangeOf(values: readonly number[]): { low: number; high: number } {
  const least = 0.3;
  let low = Math.max(0, Math.floor(Math.min(...values) * 10 + 1e-9) / 10);
  const high = Math.min(1, Math.max(Math.ceil(Math.max(...values) * 10 - 1e-9) / 10, low + least));
  low = Math.max(0, Math.min(low, high - least));
  return { low: Math.round(low * 10) / 10, high: Math.round(high * 10) / 10 };
}

/** Radius of a mark whose area is proportional to the tokens; what cost none keeps a mark that can be seen. */
export function radiusOf(tokens: number | null, most: number, { least, largest } = { least: 3.5, largest: 12 }): number {
  return tokens === null || most <= 0 ? least : Math.max(least, largest * Math.sqrt(tokens / most));
}

/** The order in which marks are drawn: no small one is hidden by a large one. */
export function drawingOrder(points: readonly PlanePoint[]): PlanePoint[] {
  return [...points].sort((a, b) => (b.tokens ?? 0) - (a.tokens ?? 0));
}

export function mostTokens(points: readonly PlanePoint[]): number {
  return Math.max(0, ...points.map(({ tokens }) => tokens ?? 0));
}

/** How a merge's coefficient decides, skill by skill. */
export interface SweepCurve {
  id: string;
  title: string;
  skills: string[];
  points: { system: string; weight: number; skills: Record<string, Share | null> }[];
}

export function sweepsOf({ entries }: ArenaResult): SweepCurve[] {
  const heads = [...new Set(entries.flatMap(({ sweep }) => sweep?.of ?? []))];
  return heads.flatMap((id) => {
    const all = entries.filter(({ sweep, scores }) => sweep?.of === id && scores !== null);
    const points = all.map(({ id: system, sweep, scores }) => ({ system, weight: sweep?.weight ?? 0, skills: Object.fromEntries(Object.entries(scores?.skills ?? {}).map(([skill, share]) => [skill, share.id])) }));
    const title = (entries.find((entry) => entry.id === id)?.title ?? id).replace(/, weight [\d.]+$/, "");
    return points.length === 0 ? [] : [{ id, title, skills: Object.keys(points[0]?.skills ?? {}), points: points.sort((a, b) => a.weight - b.weight) }];
  });
}

/** Which expert the router gave the prompts of each skill, all sets together: the mean of the seeds' shares. */
export interface ConfusionTable {
  id: string;
  title: string;
  skills: string[];
  rows: { expert: string; shares: number[] }[];
  /** How well it routed each set of prompts. */
  sets: RoutedSet[];
}

/** Of one set of prompts: the share that went to their own skill's expert, the same with every skill counting alike, and what other choices would have got right besides. */
export interface RoutedSet {
  split: string;
  accuracy: EvaluationRow;
  balanced: EvaluationRow | null;
  regret: EvaluationRow | null;
}

export function routedSetsOf({ questions }: Pick<ArenaEntry, "questions">): RoutedSet[] {
  const row = (measure: string, split: string | null): EvaluationRow | null => questions.find((one) => one.measure === measure && one.split === split) ?? null;
  return questions.filter(({ measure }) => measure === "routing-accuracy").map((accuracy) => ({ split: accuracy.split ?? "", accuracy, balanced: row("routing-accuracy-balanced", accuracy.split), regret: row("routing-regret", accuracy.split) }));
}

export function confusionsOf({ entries }: ArenaResult): ConfusionTable[] {
  return entries.flatMap((entry) => {
    const { id, title, routing } = entry;
    if (routing === null || routing.length === 0) return [];
    const of = (name: (one: RoutedCount) => string | number): (string | number)[] => [...new Set(routing.map(name))];
    const [skills, experts, seeds] = [of(({ skill }) => skill) as string[], of(({ expert }) => expert) as string[], of(({ seed }) => seed) as number[]];
    const sum = (wanted: (one: RoutedCount) => boolean): number => routing.filter(wanted).reduce((total, { prompts }) => total + prompts, 0);
    const share = (expert: string, skill: string): number => seeds.reduce((total, seed) => total + sum((one) => one.seed === seed && one.skill === skill && one.expert === expert) / Math.max(1, sum((one) => one.seed === seed && one.skill === skill)), 0) / seeds.length;
    return [{ id, title, skills, rows: experts.map((expert) => ({ expert, shares: skills.map((skill) => share(expert, skill)) })), sets: routedSetsOf(entry) }];
  });
}

/** The skills that any system was judged on, in order. */
export function skillsIn({ entries }: ArenaResult): string[] {
  return [...new Set(entries.flatMap(({ scores }) => Object.keys(scores?.skills ?? {})))];
}

/** What the table shows of the tests against the chain; `--json` has the others too. */
export const testedMeasures = ["old-skills", "new-skill", "ood"] as const;
export type TestedMeasure = (typeof testedMeasures)[number];

/** The paired comparison of a system with the chain; undefined for the chain, and where they have no seed in common. */
export function testOf({ comparison }: ArenaResult, system: string, measure: TestedMeasure): EvaluationRow | undefined {
  return comparison?.rows.find((row) => row.system === system && row.measure === measure);
}

/** Entries with something to show, the points of sensitivity curves after their own merge. */
export function shownEntries({ entries }: ArenaResult): ArenaEntry[] {
  return entries.filter(({ scores }) => scores !== null);
}
