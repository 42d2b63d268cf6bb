import type { SeedList } from "../domain/pipeline/seedList.ts";
import type { Diagnostic, Pipeline } from "../domain/pipeline/pipelineModel.ts";
import { runsFolder, type RunRecord } from "../storage/runs/runStore.ts";
import type { ChainEvent, ChainResult, ChainServices } from "./chainRunner.ts";
import { followRun } from "./followRun.ts";
import type { Launcher, StageOutlook, StartedRun, StartOptions } from "./launcher.ts";
import { holdChain } from "./stageLock.ts";

export interface SeedOptions extends StartOptions {
  stage: string;
  list: SeedList;
  /** Run seeds again that are up to date. */
  force?: boolean;
  /** Return as soon as all have started. Only where the target `startsTogether`. */
  detach?: boolean;
  onEvent: (seed: number, event: ChainEvent) => void;
}

/** What there is to do for a seed: nothing where it is up to date, follow the run that goes on with the same inputs, or run it. */
export interface SeedStanding {
  is: "up-to-date" | "joined" | "to-run";
  /** The run that stands for it; of one that is to run, a run with other inputs that is in its way. */
  run: RunRecord | null;
  plan: StageOutlook["plan"];
}

export async function standingOfSeed(launcher: Pick<Launcher, "outlook">, pipeline: Pipeline, stage: string, seed: number, force = false): Promise<SeedStanding> {
  const { plan, upToDate, active } = await launcher.outlook(pipeline, stage, seed);
  if (active !== null && active.spec.fingerprint === plan.fingerprint) return { is: "joined", run: active, plan };
  if (upToDate !== null && active === null && !force) return { is: "up-to-date", run: upToDate, plan };
  return { is: "to-run", run: active, plan };
}

/** Machines that have not said by then how their runs are do not hold up the others, in ms. */
const askMs = 30_000;

/**
 * Runs one stage with several seeds, each an ordinary run. A target with job arrays gets all of them at once; elsewhere one
 * starts when the one before has ended, or `limit` of them go side by side. One that fails does not stop the others. They are
 * detached: when `signal` fires, AppError("cancelled") is thrown and what runs goes on.
 */
export async function runSeeds(services: ChainServices, pipeline: Pipeline, diagnostics: readonly Diagnostic[], options: SeedOptions): Promise<ChainResult> {
  const release = await holdChain(runsFolder(pipeline.root), [options.stage]);
  try {
    return await runAll(services, pipeline, diagnostics, options);
  } finally {
    await release();
  }
}

async function runAll({ launcher, runs, remotes }: ChainServices, pipeline: Pipeline, diagnostics: readonly Diagnostic[], options: SeedOptions): Promise<ChainResult> {
  const { stage, list, force = false, detach = false, onEvent, ...start } = options;
  const limit = AbortSignal.timeout(askMs);
  await remotes?.refresh(pipeline.root, { signal: start.signal === undefined ? limit : AbortSignal.any([start.signal, limit]) });
  const ended = new Map<number, RunRecord>();
  const going: { seed: number; id: string }[] = [];
  let waiting: number[] = [];
  for (const seed of list.seeds) {
    const { is, run } = await standingOfSeed(launcher, pipeline, stage, seed, force);
    if (is === "to-run" || run === null) {
      waiting.push(seed);
      continue;
    }
    onEvent(seed, { type: is, stage, run });
    if (is === "joined") going.push({ seed, id: run.id });
    else ended.set(seed, run);
  }
  const starting = (seed: number): void => onEvent(seed, { type: "starting", stage, position: list.seeds.indexOf(seed) + 1, of: list.seeds.length });
  const begun = (seed: number, run: StartedRun): void => {
    onEvent(seed, { type: "started", stage, run });
    going.push({ seed, id: run.id });
  };
  if (launcher.startsTogether(pipeline, stage) && waiting.length > 0) {
    for (const seed of waiting) starting(seed);
    const seeds = waiting;
    waiting = [];
    const started = await launcher.startSeeds(pipeline, diagnostics, stage, { seeds, limit: list.limit }, start);
    for (const [place, run] of started.entries()) begun(seeds[place] ?? 0, run);
  }
  if (detach) return { runs: [...ended.values()], failed: null };

  const follow = async ({ seed, id }: { seed: number; id: string }): Promise<void> => {
    const run = await followRun(runs, pipeline.root, id, (state) => onEvent(seed, { type: "progress", stage, run: state }), start.signal, remotes);
    onEvent(seed, { type: "finished", stage, run });
    ended.set(seed, run);
  };
  // The stage's lock lets one start in at a time.
  let turn: Promise<unknown> = Promise.resolve();
  const startNext = (seed: number): Promise<void> => {
    const mine = turn.then(async () => {
      starting(seed);
      begun(seed, await launcher.startStage(pipeline, diagnostics, stage, { ...start, seed }));
    });
    turn = mine.catch(() => {});
    return mine;
  };
  const work = async (): Promise<void> => {
    for (;;) {
      const known = going.shift();
      const seed = known === undefined ? waiting.shift() : undefined;
      if (known !== undefined) await follow(known);
      else if (seed === undefined) return;
      else await startNext(seed).catch((error: unknown) => {
        waiting = []; // what stands in the way of one start stands in that of the next
        throw error;
      });
    }
  };
  const side = Math.max(going.length, Math.min(list.limit ?? 1, going.length + waiting.length));
  const all = await Promise.allSettled(Array.from({ length: side }, work));
  const failure = all.find((one) => one.status === "rejected");
  if (failure !== undefined) throw failure.reason;
  const inOrder = list.seeds.flatMap((seed) => ended.get(seed) ?? []);
  return { runs: inOrder, failed: inOrder.find(({ state }) => state.status !== "done") ?? null };
}
