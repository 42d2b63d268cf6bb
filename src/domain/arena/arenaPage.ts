import type { ArenaTable } from "./arenaCsv.ts";
import type { ArenaResult } from "./arenaResult.ts";

/**
 * Everything the arena page and the extension host can say to each other. The page says `ready`, the host answers with the
 * state and sends it again whenever it changes. Here and not in src/protocol, since what is shown is the result itself.
 */
export interface ToArenaPage {
  type: "state";
  state: ArenaPageState;
}

export type FromArenaPage =
  | { type: "ready" }
  /** Both ask the person first. */
  | { type: "run" }
  | { type: "stop" }
  | { type: "export"; what: ArenaExport }
  | { type: "retry" }
  | { type: "openPipeline" }
  /** What the arena's own process wrote. */
  | { type: "openOutput" }
  | { type: "showLog" }
  /** Something in the page failed: for the log. */
  | { type: "error"; message: string };

/** One table as CSV, or everything as one HTML file. */
export type ArenaExport = ArenaTable | "html";

/** How many seeds run at the same time, and what decides it. */
export interface ArenaJobs {
  count: number;
  why: "setting" | "cores" | "accelerator";
}

/** How far all stages of all seeds are. */
export interface ArenaProgress {
  stages: number;
  done: number;
  /** What trains now. */
  running: { seed: number; stage: string; step: number; total: number }[];
  /** Whose newest run ended neither done nor stopped. */
  failed: { seed: number; stage: string; why: string }[];
  /** An arena or a chain is at work there, also between two stages. */
  held: boolean;
}

/** What will be run, before anything was. */
export interface ArenaPlan {
  systems: { id: string; title: string }[];
  seeds: number[];
  budget: string;
}

export interface ArenaPageState {
  /** The pipeline's name. */
  pipeline: string;
  plan: ArenaPlan | null;
  progress: ArenaProgress | null;
  /** What starting it would use; null: not known yet. */
  jobs: ArenaJobs | null;
  /** null: not read yet, or nothing has finished. */
  result: ArenaResult | null;
  /** The result is being read. */
  reading: boolean;
  /** False in a workspace that is not trusted: then nothing can be started. */
  mayRun: boolean;
  /** There is something that the arena's process wrote. */
  output: boolean;
  /** Set instead of everything else where there is nothing to show, with what a person can do about it. */
  empty: { kind: "none" | "error"; title: string; detail: string; action: "openPipeline" | "retry" | null } | null;
}
