import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { arenaCsv } from "../../domain/arena/arenaCsv.ts";
import { arenaHtml } from "../../domain/arena/arenaHtml.ts";
import type { ArenaProgress } from "../../domain/arena/arenaPage.ts";
import type { ArenaResult } from "../../domain/arena/arenaResult.ts";
import type { ProbeSet } from "../../domain/drift/driftSelection.ts";
import type { Pipeline } from "../../domain/pipeline/pipelineModel.ts";
import { buildChain } from "../../domain/run/chain.ts";
import { reasonText } from "../../domain/run/reasonText.ts";
import { runsFolder, type RunRecord, type RunStore } from "../../storage/runs/runStore.ts";
import { spawnDetached } from "../spawn.ts";
import { startsElsewhere } from "../stageLock.ts";
import { arenaFolder, type ArenaSeed } from "./arenaFiles.ts";
import { readArena, type ArenaReading } from "./arenaReading.ts";
import { readSeeds, type ArenaServices } from "./arenaRunner.ts";

export interface DeskServices {
  runs: RunStore;
  costs: ArenaServices["costs"];
  traces(): Promise<ArenaReading["traces"]>;
  /** The groups of the probe rows. */
  groups(pipeline: Pipeline, runs: readonly RunRecord[]): Promise<{ groupOf(set: ProbeSet, line: number): string | undefined }>;
  /** The command line's own program: node's arguments before those of `seesaw`. */
  cli: readonly string[];
}

/** What starting all of it would mean. */
export interface ArenaPrice {
  systems: number;
  seeds: number[];
  /** Stages of all seeds, and those that are done. */
  stages: number;
  done: number;
  /** Of what is left. null: not known before a stage has run on the target. */
  tokens: number | null;
  seconds: number | null;
}

/** Shows an arena to a window: what there is, how far it is, what it will cost; and starts it as a process of its own. Looking writes nothing. */
export class ArenaDesk {
  private readonly services: DeskServices;
  /** The compiled seeds of the pipelines that were asked for last: compiling is most of the work of a look. */
  private readonly compiled = new WeakMap<Pipeline, Promise<ArenaSeed[]>>();

  private readonly priced = new WeakMap<Pipeline, Map<string, ReturnType<ArenaServices["costs"]["plan"]>>>();

  constructor(services: DeskServices) {
    this.services = services;
  }

  async progress(pipeline: Pipeline): Promise<ArenaProgress> {
    const progress: ArenaProgress = { stages: 0, done: 0, running: [], failed: [], held: false };
    for (const { seed, stage, newest, ready } of await this.stages(pipeline)) {
      progress.stages += 1;
      if (newest !== null && isLive(newest)) progress.running.push({ seed, stage, step: newest.state.step, total: newest.state.total });
      else if (ready) progress.done += 1;
      else if (newest !== null) progress.failed.push({ seed, stage, why: reasonText(newest.state.reason) });
    }
    for (const { pipeline: of } of await this.seeds(pipeline)) progress.held ||= (await startsElsewhere(runsFolder(of.root))).length > 0;
    return progress;
  }

  async result(pipeline: Pipeline): Promise<ArenaResult> {
    // A budget is shared out by what stages took: with more of them done, it may be shared otherwise.
    if (pipeline.arena?.budget != null) this.compiled.delete(pipeline);
    const seeds = await this.seeds(pipeline);
    const runs = (await Promise.all(seeds.map((seed) => this.services.runs.list(seed.pipeline.root)))).flatMap((one) => one.runs);
    const { groupOf } = await this.services.groups(pipeline, runs);
    return readArena({ runs: this.services.runs, costs: this.pricedOnce(pipeline), traces: await this.services.traces(), groupOf }, pipeline, seeds);
  }

  /** Of a stage that has run only its FLOPs are asked for. They are the same for all seeds, and pricing takes much longer than reading. */
  private pricedOnce(pipeline: Pipeline): ArenaServices["costs"] {
    const known = this.priced.get(pipeline) ?? new Map<string, ReturnType<ArenaServices["costs"]["plan"]>>();
    this.priced.set(pipeline, known);
    const { costs } = this.services;
    return {
      plan: (of, stage) => {
        const made = known.get(stage) ?? costs.plan(of, stage);
        known.set(stage, made);
        made.catch(() => known.delete(stage));
        return made;
      },
    };
  }

  async price(pipeline: Pipeline): Promise<ArenaPrice> {
    const seeds = await this.seeds(pipeline);
    const price: ArenaPrice = { systems: seeds[0]?.compiled.systems.length ?? 0, seeds: seeds.map(({ seed }) => seed), stages: 0, done: 0, tokens: 0, seconds: 0 };
    const costs = new Map<string, { tokens: number; seconds: number | null } | null>();
    for (const { seed, stage, ready } of await this.stages(pipeline)) {
      price.stages += 1;
      if (ready) {
        price.done += 1;
        continue;
      }
      // Seeds cost the same: each stage is priced once.
      if (!costs.has(stage)) costs.set(stage, await this.costOf(seeds.find((one) => one.seed === seed), stage));
      const cost = costs.get(stage) ?? null;
      if (cost === null) price.tokens = null;
      else if (price.tokens !== null) price.tokens += cost.tokens;
      if (cost === null || cost.seconds === null) price.seconds = null;
      else if (price.seconds !== null) price.seconds += cost.seconds;
    }
    return price;
  }

  /** The command that starts it, for people and for `start`. */
  command(pipeline: Pipeline, python: string): string[] {
    return [process.execPath, ...this.services.cli, "arena", "--file", pipeline.file, "--python", python];
  }

  /** Starts it as a process that outlives this window; returns its pid and where it writes what it says. */
  async start(pipeline: Pipeline, python: string): Promise<{ pid: number; log: string }> {
    const log = this.outputOf(pipeline);
    await mkdir(arenaFolder(pipeline.root), { recursive: true });
    // Inside VS Code `execPath` is the editor itself: with this it is the Node that it has in it.
    const pid = await spawnDetached(this.command(pipeline, python), { cwd: pipeline.root, log, env: { ...process.env, ELECTRON_RUN_AS_NODE: "1" } });
    return { pid, log };
  }

  /** All numbers as CSV, or everything as one HTML file. */
  report(result: ArenaResult, what: "csv" | "html"): string {
    // The mark tells a spreadsheet that it is UTF-8.
    return what === "html" ? arenaHtml(result) : `\ufeff${arenaCsv(result)}`;
  }

  /** What its process says is appended here. */
  outputOf(pipeline: Pipeline): string {
    return join(arenaFolder(pipeline.root), "arena.log");
  }

  hasOutput(pipeline: Pipeline): boolean {
    return existsSync(this.outputOf(pipeline));
  }

  /** Calls back whenever a run of any seed changed; returns the stop function. */
  async watch(pipeline: Pipeline, onChange: () => void): Promise<() => void> {
    const stops = (await this.seeds(pipeline)).map((seed) => this.services.runs.watch(seed.pipeline.root, onChange));
    return () => stops.forEach((stop) => stop());
  }

  private seeds(pipeline: Pipeline): Promise<ArenaSeed[]> {
    const known = this.compiled.get(pipeline);
    if (known !== undefined) return known;
    const made = readSeeds(this.services, pipeline, { write: false });
    this.compiled.set(pipeline, made);
    // What went wrong once is tried again.
    made.catch(() => this.compiled.delete(pipeline));
    return made;
  }

  private async stages(pipeline: Pipeline): Promise<{ seed: number; stage: string; newest: RunRecord | null; ready: boolean }[]> {
    const found = [];
    for (const { seed, pipeline: of, compiled } of await this.seeds(pipeline)) {
      const { runs } = await this.services.runs.list(of.root);
      const chain = buildChain(of, runs);
      for (const { id } of compiled.stages) {
        const checkpoint = chain.checkpoints.find(({ stage }) => stage === id);
        found.push({ seed, stage: id, newest: (chain.newest[id] as RunRecord | undefined) ?? null, ready: checkpoint?.status === "ready" });
      }
    }
    return found;
  }

  private async costOf(seed: ArenaSeed | undefined, stage: string): Promise<{ tokens: number; seconds: number | null } | null> {
    if (seed === undefined) return null;
    const cost = await this.services.costs.plan(seed.pipeline, stage).catch(() => null);
    return cost === null ? null : { tokens: cost.tokens, seconds: cost.time?.seconds ?? null };
  }
}

function isLive({ state: { status } }: RunRecord): boolean {
  return status === "running" || status === "starting" || status === "stopping" || status === "orphan";
}
