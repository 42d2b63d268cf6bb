import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { arenaResult, type ArenaCost, type ArenaEntry, type ArenaResult, type ReadEntry, type ReadSystem } from "../../domain/arena/arenaResult.ts";
import type { ArenaSystem } from "../../domain/arena/compileArena.ts";
import { measuredPeak } from "../../domain/cost/measured.ts";
import { chainSystem, type ChainSystemInput } from "../../domain/evaluation/chainSystem.ts";
import type { Pipeline } from "../../domain/pipeline/pipelineModel.ts";
import type { ProbeSet } from "../../domain/drift/driftSelection.ts";
import { buildChain, type Chain } from "../../domain/run/chain.ts";
import type { RunStore } from "../../storage/runs/runStore.ts";
import { messageOf } from "../../util/errors.ts";
import type { CostPlanner } from "../costPlanner.ts";
import { checkpointOf } from "../freezeRun.ts";
import type { ArenaSeed } from "./arenaFiles.ts";
import { standing } from "./arenaRunner.ts";

export interface ArenaReading {
  runs: RunStore;
  costs: Pick<CostPlanner, "plan">;
  traces: ChainSystemInput["traces"];
  /** The group of a probe, where rows have any. */
  groupOf?(set: ProbeSet, line: number): string | undefined;
}

/** What the arena has shown so far: finished systems with their scores, the others with the reason. */
export async function readArena(services: ArenaReading, pipeline: Pipeline, seeds: readonly ArenaSeed[]): Promise<ArenaResult> {
  const systems = seeds[0]?.compiled.systems ?? [];
  const read: ReadEntry[] = systems.map(({ id, title, kind, sweep }) => ({ id, title, kind, sweep, runs: [] }));
  for (const seed of seeds) {
    const listing = (await services.runs.list(seed.pipeline.root)).runs;
    const chain = buildChain(seed.pipeline, listing);
    const input = { pipeline: seed.pipeline, chain, runs: listing, traces: services.traces, ...(services.groupOf !== undefined && { groupOf: services.groupOf }) };
    const stages = stagesOf(input, seed);
    for (const [place, system] of seed.compiled.systems.entries()) {
      const why = await standing(services.runs, seed, system);
      const entry = read[place];
      if (entry === undefined) continue;
      entry.runs.push({
        seed: seed.seed, why, evaluated: null, confusion: null,
        own: await costOf(services, seed, chain, system.own), shared: await costOf(services, seed, chain, system.shared.filter((id) => !seed.compiled.systems[0]?.own.includes(id))),
      });
      const run = entry.runs.at(-1) as ReadSystem;
      if (why !== null) continue;
      try {
        const { system: evaluated, problems } = chainSystem(input, system.end, system.id);
        run.evaluated = evaluated.results.length === 0 ? null : { ...evaluated, seed: seed.seed, name: system.id, label: system.id, stages };
        if (run.evaluated === null) run.why = problems[0] ?? "nothing was scored";
        run.confusion = await confusionOf(chain, system);
      } catch (error) {
        run.why = messageOf(error);
      }
    }
  }
  const { budget } = pipeline.arena ?? { budget: null };
  const words = budget === null || budget === undefined ? "as many optimizer steps as the chain" : "tokens" in budget ? `${budget.tokens} trained tokens` : `${budget.gpu_seconds} s of training`;
  return arenaResult({ pipeline: pipeline.name, budget: words, seeds: seeds.map(({ seed }) => seed), read });
}

/** M0 and the chain's checkpoints: what "old" and "new" refer to, for every remedy. */
function stagesOf(input: ChainSystemInput, { compiled }: ArenaSeed): NonNullable<ReadSystem["evaluated"]>["stages"] {
  try {
    return chainSystem(input, compiled.systems[0]?.end).system.stages;
  } catch {
    return [];
  }
}

async function costOf(services: ArenaReading, { pipeline }: ArenaSeed, chain: Chain, stages: readonly string[]): Promise<ArenaCost | null> {
  const total: ArenaCost = { tokens: 0, flops: 0, seconds: 0, peakMemory: 0, optimizerSteps: 0 };
  let found = false;
  for (const id of stages) {
    const run = checkpointOf(chain, id)?.run;
    if (run == null) continue;
    found = true;
    const { cost } = run.state;
    if (cost !== null) {
      total.tokens += cost.tokens;
      total.seconds += cost.train_s;
      total.peakMemory = Math.max(total.peakMemory, measuredPeak(cost));
    }
    total.optimizerSteps += run.state.total;
    const planned = await services.costs.plan(pipeline, id).catch(() => null);
    total.flops = planned === null || total.flops === null ? null : total.flops + planned.flops;
  }
  return found ? total : null;
}

/** From the router's own report; null where there is none. */
async function confusionOf(chain: Chain, system: ArenaSystem): Promise<ArenaEntry["confusion"]> {
  if (system.kind !== "experts" && system.kind !== "together") return null;
  const run = checkpointOf(chain, system.end)?.run;
  if (run == null) return null;
  try {
    const { confusion } = JSON.parse(await readFile(join(run.dir, "router-report.json"), "utf8")) as { confusion?: { skills?: string[]; picked?: string[]; counts?: number[][] } };
    const { skills, picked, counts } = confusion ?? {};
    if (!Array.isArray(skills) || !Array.isArray(picked) || !Array.isArray(counts)) return null;
    const of = (row: number, column: number): number => {
      const all = (counts[row] ?? []).reduce((sum, count) => sum + count, 0);
      return all === 0 ? 0 : (counts[row]?.[column] ?? 0) / all;
    };
    return picked.map((expert, column) => ({ expert, bySkill: Object.fromEntries(skills.map((skill, row) => [skill, of(row, column)])) }));
  } catch {
    return null;
  }
}
