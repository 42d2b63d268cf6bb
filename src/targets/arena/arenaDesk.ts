import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { arenaCsv } from "../../domain/arena/arenaCsv.ts";
import { arenaHtml } from "../../domain/arena/arenaHtml.ts";
import type { ArenaExport, ArenaJobs, ArenaProgress } from "../../domain/arena/arenaPage.ts";
import { arenaResult, type ArenaInput, type ArenaResult } from "../../domain/arena/arenaResult.ts";
import type { ProbeSet } from "../../domain/drift/driftSelection.ts";
import type { Pipeline } from "../../domain/pipeline/pipelineModel.ts";
import { buildChain } from "../../domain/run/chain.ts";
import { reasonText } from "../../domain/run/reasonText.ts";
import { runsFolder, type RunRecord, type RunStore } from "../../storage/runs/runStore.ts";
import { thisProcess } from "../../storage/runs/processIdentity.ts";
import { AppError } from "../../util/errors.ts";
import { inEnglish, t } from "../../util/l10n.ts";
import type { Launcher } from "../launcher.ts";
import { spawnDetached } from "../spawn.ts";
import { chainOwners, startsElsewhere } from "../stageLock.ts";
import { arenaFolder, type ArenaSeed } from "./arenaFiles.ts";
import { pricedOnce, readArena, type ArenaReading } from "./arenaReading.ts";
import { readSeeds, type ArenaServices } from "./arenaRunner.ts";

export interface DeskServices {
  runs: RunStore;
  costs: ArenaServices["costs"];
  launcher: Pick<Launcher, "stopRun">;
  routes: ArenaReading["routes"];
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

/** How long the arena's process has to leave. */
const leaveMs = 20_000;

/** Shows an arena to a window: what there is, how far it is, what it will cost; and starts it as a process of its own. Looking writes nothing. */
export class ArenaDesk {
  private readonly services: DeskServices;
  /** The compiled seeds of the pipelines that were asked for last: compiling is most of the work of a look. */
  private readonly compiled = new WeakMap<Pipeline, Promise<ArenaSeed[]>>();

  private readonly priced = new WeakMap<Pipeline, Map<string, ReturnType<ArenaServices["costs"]["plan"]>>>();

  /** What results were made of. */
  private readonly readOf = new WeakMap<ArenaResult, ArenaInput>();

  constructor(services: DeskServices) {
    this.services = services;
  }

  async progress(pipeline: Pipeline): Promise<ArenaProgress> {
    const progress: ArenaProgress = { stages: 0, done: 0, running: [], failed: [], held: false };
    for (const { seed, stage, newest, ready } of await this.stages(pipeline)) {
      progress.stages += 1;
      if (newest !== null && isLive(newest)) progress.running.push({ seed, stage, step: newest.state.step, total: newest.state.total });
      else if (ready) progress.done += 1;
      // What a person stopped did not fail.
      else if (newest !== null && newest.state.status !== "cancelled") progress.failed.push({ seed, stage, why: reasonText(newest.state.reason) });
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
    // Of a stage that has run only its FLOPs are asked for: they are the same for all seeds, and the next time.
    const priced = this.priced.get(pipeline) ?? new Map<string, ReturnType<ArenaServices["costs"]["plan"]>>();
    this.priced.set(pipeline, priced);
    const { routes } = this.services;
    const read = await readArena({ runs: this.services.runs, costs: pricedOnce(this.services.costs, priced), traces: await this.services.traces(), groupOf, routes }, pipeline, seeds);
    const result = arenaResult(read);
    this.readOf.set(result, read);
    return result;
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

  /** How many seeds run side by side: `wanted`, or where that is 0 half of the cores, but one where an accelerator would be shared. */
  async jobs(pipeline: Pipeline, wanted: number): Promise<ArenaJobs> {
    const seeds = await this.seeds(pipeline);
    const most = Math.max(1, seeds.length);
    if (wanted > 0) return { count: Math.min(wanted, most), why: "setting" };
    for (const root of [pipeline.root, ...seeds.map((seed) => seed.pipeline.root)]) {
      const { runs } = await this.services.runs.list(root);
      if (runs.some(({ state: { device } }) => device !== null && !/^cpu\b/i.test(device))) return { count: 1, why: "accelerator" };
    }
    return { count: Math.min(Math.max(1, Math.floor(availableParallelism() / 2)), most), why: "cores" };
  }

  /** The command that starts it, for people and for `start`. */
  command(pipeline: Pipeline, python: string, jobs: number): string[] {
    return [process.execPath, ...this.services.cli, "arena", "--file", pipeline.file, "--python", python, "--jobs", String(jobs)];
  }

  /** Starts it as a process that outlives this window; returns its pid and where it writes what it says. */
  async start(pipeline: Pipeline, python: string, jobs: number): Promise<{ pid: number; log: string }> {
    const log = this.outputOf(pipeline);
    await mkdir(arenaFolder(pipeline.root), { recursive: true });
    // Inside VS Code `execPath` is the editor itself: with this it is the Node that it has in it.
    const pid = await spawnDetached(this.command(pipeline, python, jobs), { cwd: pipeline.root, log, env: { ...process.env, ELECTRON_RUN_AS_NODE: "1" } });
    return { pid, log };
  }

  /**
   * Ends the arena's process, then the stages that it ran. What is done stays; started again, it goes on there. AppError("usage")
   * where it is at work on another machine.
   */
  async stop(pipeline: Pipeline): Promise<void> {
    const roots = (await this.seeds(pipeline)).map((seed) => seed.pipeline.root);
    const owners = async (): Promise<Awaited<ReturnType<typeof chainOwners>>> => (await Promise.all(roots.map((root) => chainOwners(runsFolder(root))))).flat();
    const { host } = thisProcess();
    const found = await owners();
    const away = found.find((owner) => owner.host !== host);
    if (away !== undefined) throw new AppError("usage", t("The arena is run by process {0} on {1}: stop it there.", away.pid, away.host));
    // Its own process first: it would take a stopped stage for a failed one, and go on with the next.
    for (const pid of new Set(found.map((owner) => owner.pid))) process.kill(pid, "SIGTERM");
    for (const deadline = Date.now() + leaveMs; (await owners()).length > 0 && Date.now() < deadline; ) await new Promise((wake) => setTimeout(wake, 100));
    for (const root of roots) {
      const { runs } = await this.services.runs.list(root);
      await Promise.all(runs.filter(isLive).map((run) => this.services.launcher.stopRun(root, run.id, { trusted: true }).catch((error: unknown) => {
        // It ended a moment ago.
        if (!AppError.is(error, "usage")) throw error;
      })));
    }
  }

  /** One table as CSV, or everything as one HTML file; in English, as all files are, whatever the person reads. */
  report(shown: ArenaResult, what: ArenaExport): string {
    const read = this.readOf.get(shown);
    const result = read === undefined ? shown : inEnglish(() => arenaResult(read));
    // The mark tells a spreadsheet that it is UTF-8.
    return what === "html" ? arenaHtml(result) : `\ufeff${arenaCsv(result, what)}`;
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
