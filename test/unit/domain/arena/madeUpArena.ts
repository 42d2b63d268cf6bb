import { arenaResult, type ArenaCost, type ArenaResult, type Missing, type ReadEntry } from "../../../../src/domain/arena/arenaResult.ts";
import type { EvaluatedSystem, RoutedRow, SetResult } from "../../../../src/domain/evaluation/evaluatedSystem.ts";
import { seededRandom } from "../../../../src/domain/statistics/random.ts";

export const skills = ["math", "search", "tool", "format"];
const prompts = 64;

/** A probe set answered with about this pass rate: harder prompts fail first, so systems agree on which are hard. */
function setOf(skill: string, split: "id" | "ood", rate: number, seed: number): SetResult {
  const random = seededRandom(1000 + seed * 97 + skill.length + (split === "ood" ? 7 : 0));
  return { skill, split, settings: { prompts: `${skill}.${split}` }, rows: Array.from({ length: prompts }, (_, row) => ({ key: String(row), correct: (row + 0.5) / prompts + (random() - 0.5) * 0.12 < rate })) };
}

type Rates = readonly [number, number, number, number];

function system(name: string, seed: number, rates: Rates): EvaluatedSystem {
  const spread = (seed - 1) * 0.06;
  const at = (rate: number): number => Math.max(0, Math.min(1.2, rate + (rate > 0.95 || rate < 0.03 ? 0 : spread)));
  return {
    name, seed, label: name,
    // Each stage teaches its skill and halves the ones before it.
    stages: [null, ...skills].map((teaches, stage) => ({ label: `M${stage}`, teaches, results: skills.flatMap((skill, index) => (["id", "ood"] as const).map((split) => setOf(skill, split, index + 1 > stage ? 0 : 1.1 * 0.5 ** (stage - index - 1), seed))) })),
    results: skills.flatMap((skill, index) => [setOf(skill, "id", at(rates[index] ?? 0), seed), setOf(skill, "ood", at((rates[index] ?? 0) * 0.8), seed)]),
  };
}

const cost = (tokens: number): ArenaCost => ({ tokens, flops: tokens * 2.5e6, seconds: tokens / 2100, peakMemory: 2.3e8 + tokens, optimizerSteps: Math.round(tokens / 1230) });

function entry(id: string, title: string, kind: ReadEntry["kind"], rates: Rates, tokens: number, more: { sweep?: ReadEntry["sweep"]; shared?: number; routed?: number; seeds?: number[]; why?: Missing } = {}, all: readonly number[] = [0, 1, 2]): ReadEntry {
  const { sweep = null, shared, routed, seeds = [...all], why = { stage: "it-format", status: "running", reason: null } } = more;
  return {
    id, title, kind, sweep,
    runs: all.map((seed) => (seeds.includes(seed) ? { seed, evaluated: { ...system(id, seed, rates), ...(routed !== undefined && { routing: routes(routed, seed) }) }, why: null, own: cost(tokens), shared: shared === undefined ? null : cost(shared) } : { seed, evaluated: null, why, own: null, shared: null })),
  };
}

/** A router that sends about `right` of the prompts to their own skill's expert, one prompt fewer a seed, fewer of the OOD ones, the rest to the next skill's; the base gets none. */
function routes(right: number, seed: number): RoutedRow[] {
  return skills.flatMap((skill, place) => (["id", "ood"] as const).flatMap((split) => Array.from({ length: prompts }, (_, row) => {
    const own = row < Math.round(right * prompts) - seed - (split === "ood" ? 4 : 0);
    const correct = Object.fromEntries([...skills, "base"].map((expert) => [expert, expert === skill]));
    return { key: `${skill}.${split}:${row}`, skill, split, picked: own ? skill : (skills[(place + 1) % skills.length] as string), correct };
  })));
}

/** An arena like the sample's: every kind of remedy, a sensitivity curve, two routers, one remedy without a seed and one that lacks one. */
export function madeUpArena(seeds: readonly number[] = [0, 1, 2]): ArenaResult {
  const sweep = (weight: number): ReadEntry["sweep"] => ({ of: "merge-task-arithmetic", weight });
  const of = (id: string, title: string, kind: ReadEntry["kind"], rates: Rates, tokens: number, more: Parameters<typeof entry>[5] = {}): ReadEntry => entry(id, title, kind, rates, tokens, more, seeds);
  const read = [
    of("chain", "the chain, no remedy", "chain", [0.03, 0.05, 0.3, 1.1], 402_000),
    of("replay-5", "replay 5 %", "replay", [0.6, 0.55, 0.85, 1.1], 421_000),
    of("replay-10", "replay 10 %", "replay", [0.78, 0.7, 0.92, 1.1], 437_000),
    of("replay-30", "replay 30 %", "replay", [0.9, 0.86, 1.1, 1.1], 492_000),
    of("merge-average", "merge, average", "merge", [0.1, 0.02, 0.2, 0.3], 0, { shared: 402_000 }),
    of("merge-task-arithmetic", "merge, task-arithmetic, weight 0.5", "merge", [0.12, 0.05, 0.22, 0.4], 0, { shared: 402_000, sweep: sweep(0.5) }),
    of("merge-task-arithmetic-w0_3", "merge, task-arithmetic, weight 0.3", "merge", [0.05, 0.01, 0.1, 0.1], 0, { shared: 402_000, sweep: sweep(0.3) }),
    of("merge-task-arithmetic-w0_7", "merge, task-arithmetic, weight 0.7", "merge", [0.2, 0.07, 0.3, 0.55], 0, { shared: 402_000, sweep: sweep(0.7) }),
    of("merge-task-arithmetic-w1", "merge, task-arithmetic, weight 1", "merge", [0.15, 0.05, 0.2, 0.35], 0, { shared: 402_000, sweep: sweep(1) }),
    of("merge-ties", "merge, ties, weight 1", "merge", [0.15, 0.04, 0.25, 0.45], 0, { shared: 402_000 }),
    of("merge-average-chain", "merge, average of M1 to the end", "merge", [0.3, 0.15, 0.4, 0.7], 0),
    of("self-distill", "self-distillation", "self-distill", [0.04, 0.06, 0.4, 1.1], 130_000),
    of("oracle-sft", "oracle SFT", "oracle-sft", [0.85, 0.8, 0.93, 1.1], 135_000, { shared: 402_000 }),
    of("distill-reverse-kl", "distillation, reverse KL", "distill", [0.82, 0.77, 0.92, 1.1], 90_000, { shared: 402_000 }),
    of("distill-forward-kl", "distillation, forward KL", "distill", [0.8, 0.74, 0.93, 1.1], 92_000, { shared: 402_000, seeds: seeds.slice(0, -1), why: { stage: "distill-forward-kl", status: "running", reason: null } }),
    of("experts", "experts and router", "experts", [0.9, 0.88, 0.93, 0.94], 402_000, { routed: 0.97 }),
    of("together-10", "replay 10 %, experts and router", "together", [0.92, 0.9, 0.94, 1.1], 437_000, { routed: 0.91 }),
    of("joint", "joint training", "joint", [0.93, 0.91, 1.1, 1.1], 402_000),
    of("gone", "grpo & <others>", "distill", [0, 0, 0, 0], 0, { seeds: [], why: { stage: "specialist-tool", status: "failed", reason: { kind: "failed", code: "exception", message: "The loss left all bounds at step 7." } } }),
  ];
  return arenaResult({ pipeline: "arena", budget: "as many optimizer steps as the chain", seeds, read });
}
