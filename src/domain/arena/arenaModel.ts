import { absoluteOptions } from "../pipeline/stageOptions.ts";

import type { SourceRange } from "../pipeline/pipelineModel.ts";

/** `arena:` of seesaw.yaml with every default filled in. */
export interface Arena {
  seeds: number[];
  budget: Budget | null;
  /** Rows of each skill in the mixture that remedies over all skills use. */
  rows: number;
  remedies: Remedy[];
  /** Where the file names it. */
  range?: SourceRange;
}

/** What each remedy may spend; null: as many optimizer steps as the chain. */
export type Budget = { tokens: number } | { gpu_seconds: number };

interface Common {
  id: string;
  /** Over those of the chain's stages. */
  args: Record<string, unknown>;
  options: Record<string, unknown>;
}

export type MergeMethod = "average" | "linear" | "task-arithmetic" | "ties" | "dare-linear" | "dare-ties" | "slerp";

export type Remedy = Common &
  (
    | { kind: "replay"; ratio: number; rows: number }
    | { kind: "joint" | "self-distill" | "oracle-sft" }
    | { kind: "distill"; loss: string }
    | { kind: "merge"; method: MergeMethod; of: "specialists" | "chain"; weight: number | null; density: number | null; sweep: number[] }
    | { kind: "experts"; adapter: Record<string, unknown> }
    | { kind: "together"; ratio: number; rows: number; adapter: Record<string, unknown> }
  );

/** A remedy as the file has it: everything but `kind` may be absent. */
export type RawRemedy = { kind: Remedy["kind"] } & Partial<Omit<Common, "kind">> & {
    ratio?: number;
    rows?: number;
    loss?: string;
    method?: MergeMethod;
    of?: "specialists" | "chain";
    weight?: number;
    density?: number;
    sweep?: number[];
    adapter?: Record<string, unknown>;
  };

export interface RawArena {
  seeds?: number[];
  budget?: Budget;
  rows?: number;
  remedies: RawRemedy[];
}

export const arenaDefaults = { seeds: [0, 1, 2], rows: 400, ratio: 0.1, bufferRows: 200, loss: "reverse-kl" };

/** The name of a remedy that has none: its kind, and what sets it apart from others of its kind. */
export function remedyName(raw: RawRemedy): string {
  if (raw.id !== undefined) return raw.id;
  if (raw.kind === "replay" || raw.kind === "together") return `${raw.kind}-${Math.round((raw.ratio ?? arenaDefaults.ratio) * 100)}`;
  if (raw.kind === "distill") return `distill-${raw.loss ?? arenaDefaults.loss}`;
  if (raw.kind === "merge") return `merge-${raw.method}${raw.of === "chain" ? "-chain" : ""}`;
  return raw.kind;
}

/** Fills in every default, and makes every path absolute. */
export function arenaOf(raw: RawArena, root: string): Arena {
  return { seeds: raw.seeds ?? arenaDefaults.seeds, budget: raw.budget ?? null, rows: raw.rows ?? arenaDefaults.rows, remedies: raw.remedies.map((remedy) => remedyOf(remedy, root)) };
}

function remedyOf(raw: RawRemedy, root: string): Remedy {
  const common = { id: remedyName(raw), args: raw.args ?? {}, options: absoluteOptions(raw.options ?? {}, root) };
  const replay = { ratio: raw.ratio ?? arenaDefaults.ratio, rows: raw.rows ?? arenaDefaults.bufferRows };
  const adapter = raw.adapter ?? {};
  switch (raw.kind) {
    case "replay":
      return { ...common, kind: "replay", ...replay };
    case "together":
      return { ...common, kind: "together", ...replay, adapter };
    case "experts":
      return { ...common, kind: "experts", adapter };
    case "distill":
      return { ...common, kind: "distill", loss: raw.loss ?? arenaDefaults.loss };
    case "merge":
      return { ...common, kind: "merge", method: raw.method ?? "average", of: raw.of ?? "specialists", weight: raw.weight ?? null, density: raw.density ?? null, sweep: raw.sweep ?? [] };
    default:
      return { ...common, kind: raw.kind };
  }
}
