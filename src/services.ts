import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { FolderRunStore } from "./storage/runs/folderRunStore.ts";
import type { RowIndex } from "./storage/rows/rowIndex.ts";
import type { RunStore } from "./storage/runs/runStore.ts";
import { LedgerReader, type LedgerReading, type RunFolder } from "./storage/runs/ledgers.ts";
import type { DatasetReader } from "./storage/datasets/datasetReader.ts";
import type { ArenaDesk, DeskServices } from "./targets/arena/arenaDesk.ts";
import type { TraceStore } from "./storage/traces/traceStore.ts";
import type { Confirmer } from "./targets/confirmer.ts";
import type { CostPlanner } from "./targets/costPlanner.ts";
import { FileHasher } from "./targets/hashFiles.ts";
import { Launcher } from "./targets/launcher.ts";
import { QueueStore } from "./targets/queueStore.ts";
import { RemoteWatch } from "./targets/remote/remoteWatch.ts";
import { RemoteTargets, tokenFromEnvironment, type AdapterDeps } from "./targets/remote/targets.ts";
import { RunnerSetup } from "./targets/runnerSetup.ts";
import type { TargetDesk } from "./targets/targetDesk.ts";
import { WeightReader } from "./targets/weightReader.ts";
import type { ReplayReading } from "./domain/report/reportInput.ts";
import type { ChainRuns } from "./storage/runs/replaySummaries.ts";
import type { Scorer } from "./inference/scorer.ts";
import type { ChainRun } from "./domain/run/chain.ts";
import type { FlagFacts } from "./domain/run/flagCard.ts";
import type { ReportCard } from "./protocol/reportCard.ts";
import { messageOf } from "./util/errors.ts";
import type { Log } from "./util/log.ts";

export interface ServiceOptions {
  log: Log;
  /** Folder of this installation: `runner/` is in it. */
  extensionDir: string;
  /** Caches live here; all of it can be deleted. */
  storageDir: string;
  /** The token of a Ray cluster, from where the person keeps it; default: the environment. */
  token?: AdapterDeps["token"];
  editorFindsProxies?: AdapterDeps["editorFindsProxies"];
}

/** What the entry points work with. Everything native is loaded at its first use. */
export interface Services {
  readonly runs: RunStore;
  readonly launcher: Launcher;
  /** What a person asks of targets before anything is started there. */
  readonly targetDesk: Pick<TargetDesk, "check" | "loginArgv" | "cleaning" | "clean">;
  /** Follows the runs that are on other machines. */
  readonly remotes: RemoteWatch;
  /** What a stage will need and take, before anything starts. */
  readonly costs: CostPlanner;
  /** How far two checkpoints are apart in weight space. */
  readonly weights: WeightReader;
  /** Holds a flag against further prompts. */
  readonly confirmer: Pick<Confirmer, "confirm">;
  /** The arena of a pipeline, for a window. */
  arena(): Promise<ArenaDesk>;
  /** What waits for its turn, kept beside the runs. */
  readonly queue: QueueStore;
  /** Makes the environment that runs need. */
  readonly setup: RunnerSetup;
  /** What each stage of a chain replayed. */
  replay(data: ChainRuns): Promise<ReplayReading>;
  /** The report card of this installation, and which replay rows are nearest to what a flag was raised on. */
  flagFacts(runs: readonly ChainRun[]): Promise<FlagFacts>;
  reportCard(): Promise<ReportCard | null>;
  /** AppError("sqlite-missing") when no SQLite can be loaded. */
  traces(): Promise<TraceStore>;
  /** Which row of which file has which hash. In memory where SQLite or its file cannot be used. */
  rows(): Promise<RowIndex>;
  /** Readable rows of a dataset file. */
  countRows(path: string, signal: AbortSignal): Promise<number>;
  /** The replay buffers and ledgers of run folders; what has not changed is not read again. */
  ledgers(folders: readonly RunFolder[]): Promise<LedgerReading>;
  /** A dataset file of any size, to look at. */
  openDataset(path: string): Promise<DatasetReader>;
  /** Scores rows without Python, in a thread of its own that starts with the first row. */
  scorer(): Promise<Scorer>;
  dispose(): void;
}

/** The one composition root: the command line and the extension run the same code. */
export function createServices({ log, extensionDir, storageDir, token, editorFindsProxies }: ServiceOptions): Services {
  const runs = new FolderRunStore();
  const hasher = new FileHasher(join(storageDir, "hashes.json"));
  let planner: Promise<CostPlanner> | null = null;
  const costPlanner = (): Promise<CostPlanner> => (planner ??= import("./targets/costPlanner.ts").then(({ DiskCostPlanner }) => new DiskCostPlanner({ runs, lengths: async (folder) => (await import("./inference/rowLengths.ts")).rowLengths(folder) })));
  const costs: CostPlanner = { plan: async (...asked) => (await costPlanner()).plan(...asked), predict: async (...asked) => (await costPlanner()).predict(...asked), summary: async (...asked) => (await costPlanner()).summary(...asked) };
  const targets = new RemoteTargets({ runnerDir: join(extensionDir, "runner"), log, token: token ?? (() => Promise.resolve(tokenFromEnvironment())), editorFindsProxies });
  const launcher = new Launcher({ runnerDir: join(extensionDir, "runner"), runs, hasher, log, targets, predict: (pipeline, stage) => costs.predict(pipeline, stage) });
  const remotes = new RemoteWatch({ target: (settings) => targets.of(settings), log });
  let traces: Promise<TraceStore> | null = null;
  let arena: Promise<ArenaDesk> | null = null;
  let rows: Promise<RowIndex> | null = null;
  let scorer: Promise<Scorer> | null = null;
  const ledgers = new LedgerReader();
  return {
    runs,
    launcher,
    targetDesk: openTargetDesk(extensionDir, targets, runs, log),
    remotes,
    costs,
    confirmer: { confirm: async (...asked) => new (await import("./targets/confirmer.ts")).Confirmer({ runnerDir: join(extensionDir, "runner"), log }).confirm(...asked) },
    weights: new WeightReader({ runnerDir: join(extensionDir, "runner"), hasher, log }),
    arena: () => (arena ??= openArena({ runs, costs, launcher, traces: () => (traces ??= openTraces()), cli: cliOf(extensionDir) })),
    queue: new QueueStore(),
    setup: new RunnerSetup({ runnerDir: join(extensionDir, "runner"), log }),
    replay: async (data) => (await import("./storage/runs/replaySummaries.ts")).replaySummaries(data),
    flagFacts: async (runs) => (await import("./storage/runs/flagFacts.ts")).readFlagFacts(extensionDir, runs, () => (traces ??= openTraces())),
    reportCard: async () => (await import("./storage/runs/flagFacts.ts")).readReportCard(extensionDir),
    traces: () => (traces ??= openTraces()),
    rows: () => (rows ??= openRows(storageDir, log)),
    countRows: async (path, signal) => {
      const summary = await (await (rows ??= openRows(storageDir, log))).update(path, { signal });
      return summary.rows - summary.unreadable;
    },
    ledgers: (folders) => ledgers.read(folders),
    openDataset: async (path) => (await import("./storage/datasets/openDataset.ts")).openDataset(path, { spillDir: join(storageDir, "datasets") }),
    scorer: () => (scorer ??= openScorer()),
    dispose() {
      runs.dispose();
      void remotes.dispose().finally(() => targets.dispose());
      void scorer?.then((one) => one.dispose(), () => {});
      void rows?.then((index) => index.dispose(), () => {});
    },
  };
}

/** Its code is loaded when a target is checked for the first time. */
function openTargetDesk(extensionDir: string, targets: RemoteTargets, runs: RunStore, log: Log): Services["targetDesk"] {
  let made: Promise<TargetDesk> | null = null;
  const desk = (): Promise<TargetDesk> => (made ??= import("./targets/targetDesk.ts").then(({ TargetDesk }) => new TargetDesk({ runnerDir: join(extensionDir, "runner"), log, runs, remote: (pipeline, id) => targets.ofPipeline(pipeline, id) })));
  return { check: async (...asked) => (await desk()).check(...asked), loginArgv: async (host) => (await desk()).loginArgv(host), cleaning: async (...asked) => (await desk()).cleaning(...asked), clean: async (...asked) => (await desk()).clean(...asked) };
}

async function openTraces(): Promise<TraceStore> {
  const [{ loadSqlite }, { SqliteTraceStore }] = await Promise.all([import("./storage/sqliteDriver.ts"), import("./storage/traces/sqliteTraceStore.ts")]);
  return new SqliteTraceStore(await loadSqlite());
}

async function openArena(services: Omit<DeskServices, "groups" | "routes">): Promise<ArenaDesk> {
  const [{ ArenaDesk }, { probeGroups }, { readRoutes }] = await Promise.all([import("./targets/arena/arenaDesk.ts"), import("./storage/rows/probeGroups.ts"), import("./storage/runs/routerRoutes.ts")]);
  return new ArenaDesk({ ...services, groups: probeGroups, routes: readRoutes });
}

/** The command line of this installation; run from sources, its source. */
function cliOf(extensionDir: string): string[] {
  const bundled = join(extensionDir, "dist", "cli.js");
  return [existsSync(bundled) ? bundled : join(extensionDir, "src", "cli.ts")];
}

async function openScorer(): Promise<Scorer> {
  const { ThreadScorer } = await import("./inference/threadScorer.ts");
  const bundled = new URL("./scorerWorker.js", import.meta.url);
  return new ThreadScorer(existsSync(fileURLToPath(bundled)) ? bundled : new URL("./inference/scorerWorker.ts", import.meta.url));
}

/** The index is a cache: where SQLite or its file cannot be used, the same index lives in memory and nothing is lost. */
async function openRows(storageDir: string, log: Log): Promise<RowIndex> {
  const workers = rowWorkers();
  try {
    const [{ loadSqlite }, { sqliteRowIndex }] = await Promise.all([import("./storage/sqliteDriver.ts"), import("./storage/rows/sqliteRowIndex.ts")]);
    await mkdir(storageDir, { recursive: true });
    return sqliteRowIndex(join(storageDir, "rows.sqlite"), await loadSqlite(), { workers, onMessage: (message) => log.warn(message) });
  } catch (error) {
    log.warn(`The row index is kept in memory only: ${messageOf(error)}`);
    const { memoryRowIndex } = await import("./storage/rows/memoryRowIndex.ts");
    return memoryRowIndex(workers);
  }
}

/** The worker's own bundle beside this one; run from sources there is none, and large files are indexed in one thread. */
function rowWorkers(): { url: URL; threads: number } | null {
  const url = new URL("./rowIndexWorker.js", import.meta.url);
  const threads = Math.min(4, availableParallelism() - 1);
  return existsSync(fileURLToPath(url)) && threads > 0 ? { url, threads } : null;
}
