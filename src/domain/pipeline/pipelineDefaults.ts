import type { CheckSpec, SegmentPattern } from "../../protocol/checks.ts";
import type { DecisionSpec, DiversitySpec, FlagSpec, LaunchSpec, OnFlag, ProbeSpec, QualitySpec, RowFeatures } from "../../protocol/runSpec.ts";
import { nodesOf, resourcesOf, targetOf, type RawResources, type RawTarget } from "./targetSettings.ts";
import { flagDefaults as detectorDefaults } from "../flags/defaults.ts";
import { arenaOf, type RawArena } from "../arena/arenaModel.ts";
import type { Buffer, Pipeline, Skill, SourceRange, Stage, Target } from "./pipelineModel.ts";
import { baseName, dirName, joinPath } from "../../util/paths.ts";
import { absoluteOptions, referencesOf } from "./stageOptions.ts";
import { pointerOf } from "./yamlSource.ts";

/** What a pipeline gets where its file says nothing. The schema shows the same values. */
export const probeDefaults: ProbeSpec = { every: null, eval_every: null, top_k: 8, max_new_tokens: 256, batch_size: 16, kl: ["start", "base"] };
export const flagDefaults: Required<FlagSpec> = {
  alpha: detectorDefaults.alpha, tolerance: detectorDefaults.tolerance, detector: detectorDefaults.detector, tolerance_nats: detectorDefaults.tolerance_nats, on_flag: "inform",
};
export const minhashDefault = 0.8;
export const benchmarkBatch = 8;

/** `seesaw.yaml` as the schema lets it through. */
export interface RawPipeline {
  name?: string;
  base: string;
  seed?: number;
  skills: Record<string, { probes: string; ood?: string; check: CheckSpec; segments?: SegmentPattern[]; on_flag?: OnFlag; decision?: DecisionSpec; benchmark?: string | string[] }>;
  probe?: Partial<ProbeSpec>;
  flags?: Partial<FlagSpec>;
  stages: RawStage[];
  buffers?: Record<string, RawBuffer>;
  targets?: Record<string, RawTarget>;
  benchmark?: RawBenchmark;
  arena?: RawArena;
}

export interface RawBenchmark {
  lm_eval: string[];
  include_path?: string;
  limit?: number;
  batch_size?: number | "auto";
  num_fewshot?: number;
  chat_template?: boolean;
  every?: "stage" | "end";
}

export interface RawStage {
  id: string;
  recipe: string;
  data?: string;
  args?: Record<string, unknown>;
  options?: Record<string, unknown>;
  probe_every?: ProbeSpec["every"];
  eval_every?: ProbeSpec["eval_every"];
  probe?: Partial<ProbeSpec>;
  save_every?: number | null;
  adapter?: Record<string, unknown>;
  launch?: Partial<LaunchSpec> & Pick<LaunchSpec, "kind">;
  replay?: { buffer: string; ratio: number };
  from?: string;
  on?: string;
  resources?: RawResources;
  env?: Record<string, string>;
}

/** One of `rows` and `quotas` is there. */
export interface RawBuffer {
  from: string[];
  rows?: number;
  quotas?: Record<string, number>;
  quality?: { reward: number } | { field: string; min: number } | { check: true } | { reward_model: string; min: number };
  diversity?: "minhash" | { minhash?: number; k_center?: true | { features?: RowFeatures }; clusters?: number | { count: number; features?: RowFeatures } };
  near?: { rows: string; lines: number[] };
}

/** The reward model of a buffer, which every stage that replays from it needs. */
export function rewardModelOf(buffer: Pick<RawBuffer, "quality"> | undefined): string | null {
  const { quality } = buffer ?? {};
  return quality !== undefined && "reward_model" in quality ? quality.reward_model : null;
}

/** The id of the buffer that a stage replays from, or null. */
export function bufferIdOf(stage: Pick<RawStage, "recipe" | "options" | "replay">): string | null {
  return stage.replay?.buffer ?? (stage.recipe === "replay" && typeof stage.options?.["buffer"] === "string" ? stage.options["buffer"] : null);
}

/** Recipes that start from the base model unless the file says otherwise: experts, and the router over them, keep it frozen. */
const startsFromBase: ReadonlySet<string> = new Set(["experts", "router"]);
/** The adapter of an expert whose stage does not describe one. */
const expertAdapter = { r: 8, lora_alpha: 16, target_modules: "all-linear" };

/** The stage that stage `index` (from 0) starts from; null for the base model. */
export function parentOf(raw: Pick<RawPipeline, "stages">, index: number): string | null {
  const stage = raw.stages[index];
  const from = stage?.from ?? (startsFromBase.has(stage?.recipe ?? "") ? "base" : raw.stages[index - 1]?.id ?? "base");
  return from === "base" ? null : startName(from).stage;
}

/** What `from` names: `math`, or the checkpoint of its step 40 as `math@40`. */
export function startName(from: string): { stage: string; step: number | null } {
  const [, stage = from, step] = /^(.*?)(?:@(\d+))?$/.exec(from) ?? [];
  return { stage, step: step === undefined ? null : Number(step) };
}

/** Fills in every default and makes every path absolute. */
export function fillIn(raw: RawPipeline, file: string, rangeOf: (pointer: string, part?: "key" | "value") => SourceRange): Omit<Pipeline, "ranges"> {
  const root = dirName(file);
  const path = (relative: string): string => joinPath(root, relative);
  const skills = Object.entries(raw.skills).map(([id, skill]): Skill => ({
    id,
    probes: { id: path(skill.probes), ...(skill.ood !== undefined && { ood: path(skill.ood) }) },
    check: skill.check.kind === "function" && skill.check.path !== undefined ? { ...skill.check, path: path(skill.check.path) } : skill.check,
    segments: skill.segments ?? [],
    ...(skill.on_flag !== undefined && { on_flag: skill.on_flag }),
    ...(skill.decision !== undefined && { decision: skill.decision }),
    ...(skill.benchmark !== undefined && { benchmark: [skill.benchmark].flat() }),
    range: rangeOf(pointerOf("skills", id), "key"),
  }));
  const stages = raw.stages.map((stage, index): Stage => ({
    id: stage.id,
    index: index + 1,
    recipe: stage.recipe,
    data: stage.data === undefined ? null : path(stage.data),
    args: stage.args ?? {},
    options: absoluteOptions(stage.options ?? {}, root),
    references: [...new Set([...referencesOf(stage).map(({ name }) => name), ...bufferReferences(raw, stage)])],
    adapter: stage.recipe === "experts" ? { ...expertAdapter, ...stage.adapter } : stage.adapter ?? null,
    launch: { ...launchOf(stage.launch, path), ...nodesOf(raw, stage) },
    probe: probeOf(raw, stage),
    save_every: stage.save_every ?? null,
    replay: stage.replay ?? null,
    from: parentOf(raw, index),
    ...(stage.from !== undefined && startName(stage.from).step !== null && { fromStep: startName(stage.from).step }),
    on: stage.on ?? "local",
    ...resourcesOf(raw, stage),
    env: stage.env ?? {},
    range: rangeOf(pointerOf("stages", index, "id")),
  }));
  return {
    file, root, name: raw.name ?? baseName(root), base: path(raw.base), seed: raw.seed ?? 0,
    skills, stages, buffers: buffersOf(raw, path, rangeOf), targets: targetsOf(raw, path), flags: { ...flagDefaults, ...raw.flags }, benchmark: benchmarkOf(raw, path), arena: raw.arena === undefined ? null : { ...arenaOf(raw.arena, root), range: rangeOf("/arena", "key") },
  };
}

function benchmarkOf({ benchmark }: RawPipeline, path: (relative: string) => string): NonNullable<Pipeline["benchmark"]> | null {
  if (benchmark === undefined) return null;
  const { lm_eval, include_path, limit = null, batch_size = benchmarkBatch, num_fewshot = null, chat_template = false, every = "stage" } = benchmark;
  return { lm_eval, include_path: include_path === undefined ? null : path(include_path), limit, batch_size, num_fewshot, chat_template, every };
}

function probeOf(raw: RawPipeline, stage: RawStage): ProbeSpec {
  const shorthand = { ...(stage.probe_every !== undefined && { every: stage.probe_every }), ...(stage.eval_every !== undefined && { eval_every: stage.eval_every }) };
  const probe = { ...probeDefaults, ...raw.probe, ...stage.probe, ...shorthand };
  return { ...probe, every: sorted(probe.every), eval_every: sorted(probe.eval_every) };
}

/** A list of steps in order, each once. */
function sorted<T>(steps: T | number[]): T | number[] {
  return Array.isArray(steps) ? [...new Set(steps as number[])].sort((a, b) => a - b) : steps;
}

function bufferReferences(raw: Pick<RawPipeline, "buffers">, stage: RawStage): string[] {
  const model = rewardModelOf(raw.buffers?.[bufferIdOf(stage) ?? ""]);
  return model === null ? [] : [model];
}

function launchOf(launch: RawStage["launch"], path: (relative: string) => string): LaunchSpec {
  const { kind = "python", processes = 1, config, args } = launch ?? {};
  return { kind, processes, ...(config !== undefined && { config: path(config) }), ...(args !== undefined && { args }) };
}

function buffersOf(raw: RawPipeline, path: (relative: string) => string, rangeOf: (pointer: string, part?: "key" | "value") => SourceRange): Buffer[] {
  return Object.entries(raw.buffers ?? {}).map(([id, buffer]) => {
    const { from, quotas, quality, near } = buffer;
    const least: QualitySpec | null = quality === undefined ? null : "reward" in quality ? { field: null, min: quality.reward } : quality;
    return {
      id, from, rows: buffer.rows ?? Object.values(quotas ?? {}).reduce((sum, share) => sum + share, 0), quality: least,
      diversity: diversityOf(buffer.diversity), ...(quotas !== undefined && { quotas }),
      ...(near !== undefined && { near: { rows: path(near.rows), lines: [...near.lines].sort((a, b) => a - b) } }),
      range: rangeOf(pointerOf("buffers", id), "key"),
    };
  });
}

function diversityOf(diversity: RawBuffer["diversity"]): DiversitySpec | null {
  if (diversity === undefined) return null;
  if (diversity === "minhash") return { minhash: minhashDefault };
  const { minhash, k_center: center, clusters } = diversity;
  return {
    ...(minhash !== undefined && { minhash }),
    ...(center !== undefined && { k_center: { features: "tfidf", ...(center !== true && center) } }),
    ...(clusters !== undefined && { clusters: { features: "tfidf", ...(typeof clusters === "number" ? { count: clusters } : clusters) } }),
  };
}

function targetsOf(raw: RawPipeline, path: (relative: string) => string): Target[] {
  const written = Object.entries(raw.targets ?? {}).map(([id, target]) => targetOf(id, target, path));
  return written.some((target) => target.id === "local") ? written : [{ id: "local", kind: "local", python: null }, ...written];
}
