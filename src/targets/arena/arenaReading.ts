import type { ArenaCost, ArenaInput, Missing, ReadEntry, ReadSystem } from "../../domain/arena/arenaResult.ts";
import type { ArenaSystem } from "../../domain/arena/compileArena.ts";
import { measuredPeak } from "../../domain/cost/measured.ts";
import { chainSystem, type ChainSystemInput } from "../../domain/evaluation/chainSystem.ts";
import type { EvaluatedSystem, RoutedRow } from "../../domain/evaluation/evaluatedSystem.ts";
import type { Pipeline } from "../../domain/pipeline/pipelineModel.ts";
import type { ProbeSet } from "../../domain/drift/driftSelection.ts";
import { buildChain, type Chain } from "../../domain/run/chain.ts";
import type { RunStore } from "../../storage/runs/runStore.ts";
import { messageOf } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import type { CostPlanner } from "../costPlanner.ts";
import { checkpointOf } from "../freezeRun.ts";
import type { ArenaSeed } from "./arenaFiles.ts";

export interface ArenaReading {
  runs: RunStore;
  costs: Pick<CostPlanner, "plan">;
  traces: ChainSystemInput["traces"];
  /** The group of a probe, where rows have any. */
  groupOf?(set: ProbeSet, line: number): string | undefined;
  /** Where a router's run sent the probes; null where the run is of no router. */
  routes(runDir: string, groupOf: ArenaReading["groupOf"]): Promise<RoutedRow[] | null>;
}

/** What there is so far, for `arenaResult`: finished systems with their answers, the others with the reason. */
export async function readArena(services: ArenaReading, pipeline: Pipeline, seeds: readonly ArenaSeed[]): Promise<ArenaInput> {
  const systems = seeds[0]?.compiled.systems ?? [];
  const read: ReadEntry[] = systems.map(({ id, title, kind, sweep }) => ({ id, title, kind, sweep, runs: [] }));
  for (const seed of seeds) {
    const listing = (await services.runs.list(seed.pipeline.root)).runs;
    const chain = buildChain(seed.pipeline, listing);
    const input = { pipeline: seed.pipeline, chain, runs: listing, traces: services.traces, ...(services.groupOf !== undefined && { groupOf: services.groupOf }) };
    const stages = stagesOf(input, seed);
    for (const [place, system] of seed.compiled.systems.entries()) {
      const why = standing(chain, system);
      const entry = read[place];
      if (entry === undefined) continue;
      entry.runs.push({
        seed: seed.seed, why, evaluated: null,
        own: await costOf(services, seed, chain, system.own), shared: await costOf(services, seed, chain, system.shared.filter((id) => !seed.compiled.systems[0]?.own.includes(id))),
      });
      const run = entry.runs.at(-1) as ReadSystem;
      if (why !== null) continue;
      try {
        const { system: evaluated, problems } = chainSystem(input, system.end, system.id);
        const routing = await routingOf(services, chain, system);
        run.evaluated = evaluated.results.length === 0 ? null : { ...evaluated, seed: seed.seed, name: system.id, label: system.id, stages, ...(routing !== undefined && { routing }) };
        if (run.evaluated === null) run.why = { sentence: problems[0] ?? t("Nothing was scored.") };
      } catch (error) {
        run.why = { sentence: messageOf(error) };
      }
    }
  }
  const { budget } = pipeline.arena ?? { budget: null };
  const words = budget === null || budget === undefined ? "as many optimizer steps as the chain" : "tokens" in budget ? `${budget.tokens} trained tokens` : `${budget.gpu_seconds} s of training`;
  return { pipeline: pipeline.name, budget: words, seeds: seeds.map(({ seed }) => seed), read };
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

/** Whether a system's end is there to be judged; else why not. */
function standing(chain: Chain, system: ArenaSystem): Missing | null {
  if (checkpointOf(chain, system.end) !== null) return null;
  const missing = [...system.shared, ...system.own].find((id) => checkpointOf(chain, id) === null) ?? system.end;
  const newest = chain.newest[missing];
  return { stage: missing, status: newest?.state.status ?? null, reason: newest?.state.reason ?? null };
}

/** Prices each stage once, for all seeds: pricing takes much longer than reading. `known`: what is kept from one reading to the next. */
export function pricedOnce(costs: ArenaReading["costs"], known = new Map<string, ReturnType<CostPlanner["plan"]>>()): ArenaReading["costs"] {
  return {
    plan: (of, stage) => {
      const made = known.get(stage) ?? costs.plan(of, stage);
      known.set(stage, made);
      made.catch(() => known.delete(stage));
      return made;
    },
  };
}

/** Where the router of a system sent the probes; undefined where there is none. */
async function routingOf({ groupOf, routes }: ArenaReading, chain: Chain, { kind, end }: ArenaSystem): Promise<EvaluatedSystem["routing"]> {
  if (kind !== "experts" && kind !== "together") return undefined;
  const run = checkpointOf(chain, end)?.run;
  return run == null ? undefined : ((await routes(run.dir, groupOf)) ?? undefined);
}
