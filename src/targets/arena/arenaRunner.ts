import type { Arena } from "../../domain/arena/arenaModel.ts";
import { chainOf, type StepsOf } from "../../domain/arena/compileArena.ts";
import type { Pipeline } from "../../domain/pipeline/pipelineModel.ts";
import { reasonText } from "../../domain/run/reasonText.ts";
import { AppError, messageOf } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { runChain, type ChainEvent, type ChainServices } from "../chainRunner.ts";
import type { CostPlanner } from "../costPlanner.ts";
import type { StartOptions } from "../launcher.ts";
import { requirePython } from "../python.ts";
import { keepPrices, keptPrices, prepareSeed, writeMix, type ArenaSeed } from "./arenaFiles.ts";

export type ArenaEvent =
  | { type: "seed"; seed: number; stages: number; systems: number }
  | { type: "stage"; seed: number; position: number; of: number; event: ChainEvent }
  /** A stage that is not run, because one that it needs did not finish. */
  | { type: "skipped"; seed: number; stage: string; reason: string }
  | { type: "failed"; seed: number; stage: string; reason: string };

export interface ArenaOptions extends StartOptions {
  /** Only these remedies; the chain is always there. */
  only?: readonly string[];
  seeds?: readonly number[];
  /** Seeds that run at the same time. */
  jobs?: number;
  onEvent: (event: ArenaEvent) => void;
}

export interface ArenaServices extends ChainServices {
  costs: Pick<CostPlanner, "plan">;
}

/**
 * Runs what is not up to date: for each seed the chain, then every remedy, stage by stage. A stage that fails costs its own
 * remedy and those that need it, nothing else. Interrupted, it goes on where it was: every stage is an ordinary run.
 */
export async function runArena(services: ArenaServices, pipeline: Pipeline, options: ArenaOptions): Promise<ArenaSeed[]> {
  const arena = arenaFor(pipeline, options.only);
  await writeMix(pipeline, arena);
  const waiting = [...(options.seeds ?? arena.seeds)];
  const done: ArenaSeed[] = [];
  const work = async (): Promise<void> => {
    for (let seed = waiting.shift(); seed !== undefined; seed = waiting.shift()) done.push(await runSeed(services, pipeline, arena, seed, options));
  };
  await Promise.all(Array.from({ length: Math.max(1, Math.min(options.jobs ?? 1, waiting.length)) }, work));
  return done.sort((a, b) => a.seed - b.seed);
}

/** The seeds as they are on disk, nothing run. `services` prices a budget in tokens or seconds; `write` false: no file is made either. */
export async function readSeeds(services: Pick<ArenaServices, "costs">, pipeline: Pipeline, options: { only?: readonly string[]; seeds?: readonly number[]; write?: boolean } = {}): Promise<ArenaSeed[]> {
  const arena = arenaFor(pipeline, options.only);
  const { write = true } = options;
  if (write) await writeMix(pipeline, arena);
  const seeds: ArenaSeed[] = [];
  for (const seed of options.seeds ?? arena.seeds) seeds.push(narrowed(await withBudget(services, pipeline, arena, await prepareSeed(pipeline, arena, seed, undefined, { write }), write), options.only));
  return seeds;
}

/** AppError("bad-pipeline" | "usage") when there is no arena, or no remedy of a name. */
function arenaFor(pipeline: Pipeline, only: readonly string[] | undefined): Arena {
  const arena = pipeline.arena ?? null;
  if (arena === null) throw new AppError("bad-pipeline", t("{0} has no `arena`: name the remedies to compare, such as `arena: { remedies: [{ kind: replay }, { kind: joint }] }`.", pipeline.file));
  if (only === undefined || only.length === 0) return arena;
  const known = arena.remedies.map(({ id }) => id);
  const unknown = only.find((id) => !known.includes(id));
  if (unknown !== undefined) throw new AppError("usage", t("There is no remedy `{0}` in {1}: it has {2}.", unknown, pipeline.file, known.join(", ")));
  return arena;
}

/** Only some of the remedies, and the stages that they need. The pipeline on disk keeps them all. */
function narrowed(seed: ArenaSeed, only: readonly string[] | undefined): ArenaSeed {
  if (only === undefined || only.length === 0) return seed;
  const systems = seed.compiled.systems.filter(({ id, kind, sweep }) => kind === "chain" || only.includes(id) || (sweep !== null && only.includes(sweep.of)));
  const needed = new Set(systems.flatMap(({ own, shared }) => [...own, ...shared]));
  return { ...seed, compiled: { ...seed.compiled, systems, stages: seed.compiled.stages.filter(({ id }) => needed.has(id)) } };
}

async function runSeed(services: ArenaServices, pipeline: Pipeline, arena: Arena, seed: number, options: ArenaOptions): Promise<ArenaSeed> {
  const chain = chainOf(pipeline).map(({ id }) => id);
  // The chain first: a budget in seconds is told by how fast it was.
  let prepared = narrowed(await prepareSeed(pipeline, arena, seed), options.only);
  // Without a Python that can train, every stage would fail with the same sentence.
  requirePython(await services.launcher.python(prepared.pipeline, chain[0] ?? "", options));
  const failed = new Map<string, string>();
  options.onEvent({ type: "seed", seed, stages: prepared.compiled.stages.length, systems: prepared.compiled.systems.length });
  const stages = prepared.compiled.stages.map(({ id }) => id);
  for (const id of chain) await runOne(services, prepared, id, stages, failed, options);
  prepared = narrowed(await withBudget(services, pipeline, arena, prepared), options.only);
  // Another length may have made a remedy's first stage one of its own, which was the chain's before.
  const budgeted = prepared.compiled.stages.map(({ id }) => id);
  for (const id of budgeted.filter((id) => !chain.includes(id))) await runOne(services, prepared, id, budgeted, failed, options);
  return prepared;
}

async function runOne(services: ArenaServices, { seed, pipeline, loaded }: ArenaSeed, id: string, stages: readonly string[], failed: Map<string, string>, options: ArenaOptions): Promise<void> {
  const stage = pipeline.stages.find((one) => one.id === id);
  if (stage === undefined) return;
  const needed = [...(stage.from === null ? [] : [stage.from]), ...stage.references];
  const missing = needed.find((name) => failed.has(name));
  if (missing !== undefined) {
    failed.set(id, `${missing} did not finish`);
    options.onEvent({ type: "skipped", seed, stage: id, reason: `${missing} did not finish` });
    return;
  }
  try {
    const position = stages.indexOf(id) + 1;
    const result = await runChain(services, pipeline, loaded.diagnostics, { ...options, stages: [id], join: true, onEvent: (event) => options.onEvent({ type: "stage", seed, position, of: stages.length, event }) });
    if (result.failed === null) return;
    const why = reasonText(result.failed.state.reason);
    failed.set(id, why);
    options.onEvent({ type: "failed", seed, stage: id, reason: why });
  } catch (error) {
    if (AppError.is(error, "cancelled")) throw error;
    failed.set(id, messageOf(error));
    options.onEvent({ type: "failed", seed, stage: id, reason: messageOf(error) });
  }
}

/** Scales the remedies to a budget in tokens or seconds. The price of a step is the planner's, for the stage as it stands. */
async function withBudget(services: Pick<ArenaServices, "costs">, pipeline: Pipeline, arena: Arena, prepared: ArenaSeed, write = true): Promise<ArenaSeed> {
  const { budget } = arena;
  if (budget === null) return prepared;
  // What a step takes is measured: kept from the first time on, or each run would change the length of the next.
  const price = (await keptPrices(prepared, budget)) ?? new Map<string, number>();
  for (const { id, args } of prepared.pipeline.stages) {
    if (price.has(id)) continue;
    const cost = await services.costs.plan(prepared.pipeline, id).catch(() => null);
    const steps = cost?.steps ?? Number(args["max_steps"] ?? 0);
    const whole = cost === null ? null : "tokens" in budget ? cost.tokens : (cost.time?.seconds ?? null);
    if (whole !== null && whole > 0 && steps > 0) price.set(id, whole / steps);
  }
  const trained = prepared.pipeline.stages.filter(({ args }) => args["max_steps"] !== undefined);
  if (write && trained.every(({ id }) => price.has(id))) await keepPrices(prepared, budget, price);
  const limit = "tokens" in budget ? budget.tokens : budget.gpu_seconds;
  const stepsOf: StepsOf = (remedy, stages) => {
    const each = stages.map(({ id }) => price.get(id === remedy ? remedy : `${remedy}-${id}`) ?? price.get(remedy) ?? price.get(id) ?? null);
    if (each.includes(null)) return stages.map(({ steps }) => steps);
    const whole = stages.reduce((sum, { steps }, place) => sum + steps * (each[place] ?? 0), 0);
    return stages.map(({ steps }) => steps * (limit / whole));
  };
  return prepareSeed(pipeline, arena, prepared.seed, stepsOf, { write });
}
