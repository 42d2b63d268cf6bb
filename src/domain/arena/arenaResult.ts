import { compareSystems, type Comparison } from "../evaluation/compareSystems.ts";
import { correctTable, type EvaluationRow } from "../evaluation/evaluationRow.ts";
import { oodRows } from "../evaluation/ood.ts";
import { newSkillRows, retentionRows } from "../evaluation/retention.ts";
import { routingRows } from "../evaluation/routing.ts";
import { transferRows } from "../evaluation/transfer.ts";
import { setOf, skillsOf, type EvaluatedSystem } from "../evaluation/evaluatedSystem.ts";
import { shareOf } from "../evaluation/pairedSet.ts";
import { rolesOf } from "../evaluation/stages.ts";
import { combine, withSeeds, type Estimate } from "../statistics/estimates.ts";
import type { Interval } from "../statistics/shares.ts";
import type { FinishReason } from "../../protocol/journal.ts";
import type { Split } from "../../protocol/runSpec.ts";
import type { RunStatus } from "../run/runState.ts";
import type { Remedy } from "./arenaModel.ts";

/** A share with its interval over prompts and seeds, and what each seed gave. */
export interface Share {
  value: number;
  interval: Interval;
  seeds: { seed: number; value: number }[];
}

/** What a system's own stages took, as a mean over the seeds. */
export interface ArenaCost {
  tokens: number;
  flops: number | null;
  /** Training, without probes and start-up. */
  seconds: number;
  /** Bytes: the most of any of its stages. */
  peakMemory: number;
  optimizerSteps: number;
}

/** Why a system is not there under a seed: a stage that has not been run (status null) or did not end done, or a sentence. */
export type Missing = { stage: string; status: RunStatus | null; reason: FinishReason | null } | { sentence: string };

/** How many prompts of a skill and set the router of one seed sent to an expert. */
export interface RoutedCount {
  seed: number;
  skill: string;
  split: string;
  expert: string;
  prompts: number;
}

/** One line of the table, one point of the plane. */
export interface ArenaEntry {
  id: string;
  title: string;
  kind: Remedy["kind"] | "chain";
  seeds: number[];
  /** Why there is nothing to show, or not of every seed. */
  missing: { seed: number; why: Missing }[];
  /** null where no seed has finished. */
  scores: {
    oldSkills: Share | null;
    newSkill: Share | null;
    all: Share | null;
    ood: Share | null;
    skills: Record<string, { id: Share | null; ood: Share | null }>;
  } | null;
  /** Of its own stages; those that it shares with others (specialists) apart. */
  cost: { own: ArenaCost | null; shared: ArenaCost | null };
  sweep: { of: string; weight: number } | null;
  /** What it answers of the four questions by itself: retention, gain of the new skill, OOD shift, routing; and BWT. Empty where no seed has finished. */
  questions: EvaluationRow[];
  /** Every expert with every skill and set, also where it got none: of a router. */
  routing: RoutedCount[] | null;
}

export interface ArenaResult {
  v: 1;
  pipeline: string;
  seeds: number[];
  budget: string;
  oldSkills: string[];
  newSkill: string | null;
  entries: ArenaEntry[];
  /** Every system against the chain, prompt by prompt; null before two systems have a seed in common. */
  comparison: Comparison | null;
  /** What the reader must know besides the numbers: sentences. */
  notes: string[];
}

/** What has been read of one system under one seed. */
export interface ReadSystem {
  seed: number;
  evaluated: EvaluatedSystem | null;
  why: Missing | null;
  own: ArenaCost | null;
  shared: ArenaCost | null;
}

export interface ReadEntry extends Pick<ArenaEntry, "id" | "title" | "kind" | "sweep"> {
  runs: ReadSystem[];
}

/** Everything that was read of an arena. `read[0]` is the chain. */
export interface ArenaInput {
  pipeline: string;
  budget: string;
  seeds: readonly number[];
  read: readonly ReadEntry[];
}

/** Puts the systems beside each other. Its sentences are in the language that is set. */
export function arenaResult(input: ArenaInput): ArenaResult {
  const there = (entry: ReadEntry): EvaluatedSystem[] => entry.runs.flatMap(({ evaluated }) => evaluated ?? []);
  const [chain, ...remedies] = input.read;
  const baseline = chain === undefined ? [] : there(chain);
  const first = baseline[0];
  const roles = first === undefined ? { old: [], newest: null } : rolesOf(first);
  const others = remedies.map(there).filter((systems) => systems.some(({ seed }) => baseline.some((one) => one.seed === seed)));
  const notes = notesOf(input.read, input.seeds);
  return {
    v: 1, pipeline: input.pipeline, seeds: [...input.seeds], budget: input.budget, oldSkills: roles.old, newSkill: roles.newest, notes,
    entries: input.read.map((entry) => entryOf(entry, there(entry), roles)),
    comparison: baseline.length === 0 || others.length === 0 ? null : compareSystems(baseline, others, { correction: "holm" }),
  };
}

function entryOf(entry: ReadEntry, systems: readonly EvaluatedSystem[], { old, newest }: { old: string[]; newest: string | null }): ArenaEntry {
  const [first] = systems;
  const skills = first === undefined ? [] : skillsOf(first);
  const mean = (of: readonly string[], split: Split): Share | null => shareOver(systems, of, split);
  return {
    id: entry.id, title: entry.title, kind: entry.kind, sweep: entry.sweep, seeds: systems.map(({ seed }) => seed),
    missing: entry.runs.flatMap(({ seed, why }) => (why === null ? [] : [{ seed, why }])),
    scores: first === undefined ? null : {
      oldSkills: mean(old, "id"), newSkill: newest === null ? null : mean([newest], "id"), all: mean(skills, "id"), ood: mean(skills, "ood"),
      skills: Object.fromEntries(skills.map((skill) => [skill, { id: mean([skill], "id"), ood: mean([skill], "ood") }])),
    },
    cost: { own: meanCost(entry.runs.map(({ own }) => own)), shared: meanCost(entry.runs.map(({ shared }) => shared)) },
    questions: first === undefined ? [] : questionsOf(systems),
    routing: routedCounts(systems),
  };
}

/** Over all skills, each question once; what needs many resamplings is left to `seesaw compare`. */
function questionsOf(systems: readonly EvaluatedSystem[]): EvaluationRow[] {
  const routing = systems.some((system) => system.routing !== undefined) ? routingRows(systems) : [];
  const rows = [...retentionRows(systems), ...newSkillRows(systems), ...oodRows(systems), ...routing, ...transferRows(systems)];
  const wanted = new Set(["retention", "gain", "ood-shift", "routing-accuracy", "routing-accuracy-balanced", "routing-regret", "bwt"]);
  return correctTable(rows.filter(({ measure, skill }) => wanted.has(measure) && (skill === null || measure === "gain")), "holm");
}

/** The mean pass rate of some skills: prompts and seeds both count as chance. null where a set is missing everywhere. */
function shareOver(systems: readonly EvaluatedSystem[], skills: readonly string[], split: Split): Share | null {
  const parts = skills.flatMap((skill): { weight: number; estimate: Estimate }[] => {
    const sets = systems.flatMap((system) => setOf(system.results, skill, split) ?? []);
    const keys = sets[0]?.rows.map(({ key }) => key) ?? [];
    if (keys.length === 0 || sets.length < systems.length) return [];
    const by = sets.map(({ rows }) => new Map(rows.map((row) => [row.key, row])));
    const common = keys.filter((key) => by.every((rows) => rows.has(key)));
    const passed = common.map((key) => by.reduce((sum, rows) => sum + Number(rows.get(key)?.correct), 0) / by.length);
    const groups = sets[0]?.rows.some(({ group }) => group !== undefined) === true ? common.map((key) => by[0]?.get(key)?.group ?? key) : null;
    return common.length === 0 ? [] : [{ weight: 1 / skills.length, estimate: shareOf(passed, groups, sets.length) }];
  });
  if (parts.length < skills.length || parts.length === 0) return null;
  const seeds = systems.map((system) => ({ seed: system.seed, value: skills.reduce((sum, skill) => sum + passRate(system, skill, split), 0) / skills.length }));
  const estimate = withSeeds(parts.length === 1 && parts[0] !== undefined ? parts[0].estimate : combine(parts), seeds.map(({ value }) => value));
  const { low, high } = estimate.interval(0.95);
  return { value: estimate.value, interval: { low: Math.max(0, low), high: Math.min(1, high) }, seeds };
}

function passRate(system: EvaluatedSystem, skill: string, split: Split): number {
  const rows = setOf(system.results, skill, split)?.rows ?? [];
  return rows.length === 0 ? Number.NaN : rows.filter(({ correct }) => correct).length / rows.length;
}

function meanCost(costs: readonly (ArenaCost | null)[]): ArenaCost | null {
  const known = costs.filter((cost) => cost !== null);
  if (known.length === 0) return null;
  const mean = (of: (cost: ArenaCost) => number): number => known.reduce((sum, cost) => sum + of(cost), 0) / known.length;
  const flops = known.every(({ flops }) => flops !== null) ? mean(({ flops }) => flops ?? 0) : null;
  return { tokens: mean(({ tokens }) => tokens), flops, seconds: mean(({ seconds }) => seconds), peakMemory: Math.max(...known.map(({ peakMemory }) => peakMemory)), optimizerSteps: mean(({ optimizerSteps }) => optimizerSteps) };
}

function routedCounts(systems: readonly EvaluatedSystem[]): RoutedCount[] | null {
  const all = systems.flatMap(({ seed, routing }) => (routing === undefined ? [] : [{ seed, rows: routing }]));
  if (all.length === 0) return null;
  const rows = all.flatMap((one) => one.rows);
  const of = (name: (row: (typeof rows)[number]) => string[]): string[] => [...new Set(rows.flatMap(name))];
  const [skills, splits] = [of(({ skill }) => [skill]), of(({ split }) => [split])];
  // An expert that got nothing is told too, wherever the router's own record names it.
  const experts = [...new Set([...skills, ...of(({ picked, correct }) => [picked, ...Object.keys(correct ?? {})])])];
  return all.flatMap(({ seed, rows: own }) => skills.flatMap((skill) => splits.flatMap((split) => {
    const asked = own.filter((row) => row.skill === skill && row.split === split);
    return asked.length === 0 ? [] : experts.map((expert) => ({ seed, skill, split, expert, prompts: asked.filter(({ picked }) => picked === expert).length }));
  })));
}

function notesOf(read: readonly ReadEntry[], seeds: readonly number[]): string[] {
  const notes: string[] = [];
  if (seeds.length < 3) notes.push(`${seeds.length === 1 ? "One seed says" : "Two seeds say"} little of how much the seed decides: intervals of a single seed are over prompts only. Three are the least.`);
  if (read.some(({ sweep }) => sweep !== null)) notes.push("The points of a sensitivity curve are measured on the prompts of the table: its best point, picked afterwards, would flatter the merge.");
  if (read.some(({ kind }) => kind === "joint")) notes.push("Joint training sees all rows at once, which a chain cannot: it is an upper bound, not a remedy.");
  notes.push("Specialists that several remedies need as teachers are counted apart, not against their budgets.");
  return notes;
}
