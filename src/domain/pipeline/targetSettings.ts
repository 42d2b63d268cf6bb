import type { RemoteKind } from "../../protocol/remote.ts";
import type { LaunchSpec, Resources } from "../../protocol/runSpec.ts";
import type { Stage, Target } from "./pipelineModel.ts";
import type { RawPipeline, RawStage } from "./pipelineDefaults.ts";

/** `targets` and `resources` of `seesaw.yaml`: what the schema lets through, and what is made of it. */
export type RawResources = Omit<Resources, "time"> & { time?: string | number };
export interface RawTarget {
  kind: "local" | RemoteKind;
  python?: string;
  host?: string;
  address?: string;
  dir?: string;
  resources?: RawResources;
}

/** The Python of another machine whose target does not name one. */
export const remotePython = "python3";

/** A target with its defaults. A local Python that is written as a path is relative to the file; a bare command is looked up on PATH. */
export function targetOf(id: string, raw: RawTarget, path: (relative: string) => string): Target {
  const { kind, host, address = "", dir = "", resources = {} } = raw;
  const there = { id, python: raw.python ?? remotePython, dir: dir.replace(/\/+$/, "") };
  switch (kind) {
    case "local": {
      const python = raw.python ?? null;
      return { id, kind, python: python !== null && /[\\/]/.test(python) && !python.startsWith("~") ? path(python) : python };
    }
    case "ssh":
      return { ...there, kind, host: host ?? "" };
    case "slurm":
      return { ...there, kind, host: host ?? null, resources: asText(resources) };
    case "ray":
      return { ...there, kind, address: address.replace(/\/+$/, ""), resources: asText(resources) };
  }
}

/** What the scheduler of a stage's target is asked for: the target's resources with the stage's on top. */
export function mergedResources(raw: Pick<RawPipeline, "targets">, stage: Pick<RawStage, "on" | "resources">): Resources | null {
  const target = raw.targets?.[stage.on ?? "local"];
  if (target === undefined || (target.kind !== "slurm" && target.kind !== "ray")) return null;
  return asText({ ...target.resources, ...stage.resources });
}

export function resourcesOf(raw: Pick<RawPipeline, "targets">, stage: RawStage): Pick<Stage, "resources"> {
  const resources = mergedResources(raw, stage);
  return resources === null ? {} : { resources };
}

/** How many machines take part, where there are several. */
export function nodesOf(raw: Pick<RawPipeline, "targets">, stage: RawStage): Pick<LaunchSpec, "nodes"> {
  const nodes = mergedResources(raw, stage)?.nodes ?? 1;
  return nodes > 1 ? { nodes } : {};
}

/** How many processes train together, on all machines. */
export function allProcesses({ kind, processes, nodes = 1 }: LaunchSpec): number {
  return kind === "python" ? 1 : processes * nodes;
}

/** A time limit in seconds. sbatch reads a bare number as minutes. */
export function limitSeconds(time: string): number {
  const [, days, rest = ""] = /^(?:(\d+)-)?(.*)$/.exec(time) ?? [];
  const parts = rest.split(":").map(Number);
  if (days === undefined && parts.length === 1) return (parts[0] ?? 0) * 60;
  // After days come hours first; without days there are always three parts.
  const [hours = 0, minutes = 0, seconds = 0] = parts;
  return Number(days ?? 0) * 86_400 + hours * 3_600 + minutes * 60 + seconds;
}

function asText({ time, ...rest }: RawResources): Resources {
  return { ...rest, ...(time !== undefined && { time: String(time) }) };
}
