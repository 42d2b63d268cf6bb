import { csvLine } from "../report/csv.ts";
import type { ArenaResult, Share } from "./arenaResult.ts";

const columns = ["system", "kind", "seed", "skills", "split", "value", "low", "high", "n_seeds", "tokens", "flops", "seconds", "peak_memory_bytes", "optimizer_steps", "shared_tokens", "sweep_of", "sweep_weight"] as const;

/** Every number of the charts, one line for each system, group of skills and seed; the line without a seed is the mean with its interval. */
export function arenaCsv(result: ArenaResult): string {
  const lines = result.entries.flatMap((entry) => {
    if (entry.scores === null) return [];
    const { scores, cost, sweep } = entry;
    const groups: [string, string, Share | null][] = [
      ["old skills", "id", scores.oldSkills], ["new skill", "id", scores.newSkill], ["all skills", "id", scores.all], ["all skills", "ood", scores.ood],
      ...Object.entries(scores.skills).flatMap(([skill, share]): [string, string, Share | null][] => [[skill, "id", share.id], [skill, "ood", share.ood]]),
    ];
    const spent = [cost.own?.tokens ?? null, cost.own?.flops ?? null, cost.own?.seconds ?? null, cost.own?.peakMemory ?? null, cost.own?.optimizerSteps ?? null, cost.shared?.tokens ?? null, sweep?.of ?? null, sweep?.weight ?? null];
    return groups.flatMap(([skills, split, share]) => (share === null ? [] : [
      [entry.id, entry.kind, null, skills, split, share.value, share.interval.low, share.interval.high, share.seeds.length, ...spent],
      ...share.seeds.map(({ seed, value }) => [entry.id, entry.kind, seed, skills, split, value, null, null, 1, ...spent]),
    ]));
  });
  return [columns, ...lines].map((cells) => csvLine(cells)).join("");
}
