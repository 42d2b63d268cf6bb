import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { CheckSpec } from "../protocol/checks.ts";
import { schemaVersion, type BenchmarkSpec, type ModelSpec, type PredictedCost, type ReplaySpec, type RunSpec, type SkillSpec } from "../protocol/runSpec.ts";
import type { Pipeline, Stage } from "../domain/pipeline/pipelineModel.ts";
import { forkOrigin, type Chain, type ChainCheckpoint } from "../domain/run/chain.ts";
import { didYouMean } from "../util/nearest.ts";
import { referenceTarget } from "../domain/pipeline/stageOptions.ts";
import { joinPath } from "../util/paths.ts";
import { AppError } from "../util/errors.ts";
import { t } from "../util/l10n.ts";
import { commandFiles } from "./commandFiles.ts";
import type { FileHash, FileHasher } from "./hashFiles.ts";
import { weightsAway } from "./remote/remoteFolder.ts";

/** What a stage would be run with now: everything that decides the result, hashed, but nothing about where or when. */
export interface StagePlan {
  stage: Stage;
  start: RunSpec["start"];
  weightsHash: string;
  /** Which checkpoint it starts from, as a sentence; null for the base model. */
  startNote: string | null;
  inputs: FileHash[];
  skills: SkillSpec[];
  replay: ReplaySpec | null;
  models: Record<string, ModelSpec>;
  seed: number;
  fingerprint: string;
}

/** The checkpoint that stands for a stage, if there is one. */
export function checkpointOf(chain: Chain, stage: string | null): ChainCheckpoint | null {
  const checkpoint = chain.checkpoints.find((candidate) => candidate.stage === stage);
  return checkpoint && checkpoint.status !== "missing" ? checkpoint : null;
}

/**
 * Reads and hashes everything stage `stageId` would start from, the same whatever its own seed.
 * AppError("not-finished") when its parent has not run.
 */
export async function planStage(pipeline: Pipeline, stageId: string, chain: Chain, hasher: FileHasher, seed = pipeline.seed): Promise<StagePlan> {
  const stage = stageOf(pipeline, stageId);
  const { start, weightsHash, startNote } = await startOf(pipeline, stage, chain, hasher);
  const skills = skillSpecs(pipeline);
  const replay = replaySpec(pipeline, stage);
  const models: Record<string, ModelSpec> = {};
  for (const name of stage.references) models[name] = await modelOf(pipeline, stage, name, chain, hasher);
  const paths = [...(stage.data === null ? [] : [stage.data]), ...skills.flatMap(({ probes }) => (probes.ood === undefined ? [probes.id] : [probes.id, probes.ood]))];
  for (const { check } of skills) paths.push(...functionFile(check, pipeline.root));
  for (const source of replay?.from ?? []) paths.push(source.data);
  if (replay?.near != null) paths.push(replay.near.rows);
  const programs = commandFiles(stage, pipeline.root);
  paths.push(...programs);
  const { config } = stage.launch;
  if (config !== undefined) paths.push(config);
  const inputs: FileHash[] = [];
  for (const path of new Set(paths)) inputs.push(await hasher.file(path));
  await hasher.save();
  const hashOf = (path: string | null | undefined): string | null => inputs.find((input) => input.path === path)?.sha256 ?? null;
  const fingerprint = sha256(
    canonical({
      recipe: stage.recipe,
      args: stage.args,
      // Only where there are some: the runs of recipes without keep the fingerprint that they always had.
      ...(Object.keys(stage.options).length > 0 && { options: stage.options }),
      ...(stage.references.length > 0 && { models: Object.entries(models).map(([name, { weights_hash }]) => [name, weights_hash]) }),
      ...(programs.length > 0 && { programs: programs.map(hashOf) }),
      adapter: stage.adapter,
      launch: launchMark(stage.launch, hashOf(config)),
      env: stage.env,
      seed,
      save_every: stage.save_every,
      data: hashOf(stage.data),
      start: weightsHash,
      replay: replay && { ...replay, from: replay.from.map(({ stage: from, data, skill }) => ({ from, skill, data: hashOf(data) })), ...(replay.near != null && { near: { ...replay.near, rows: hashOf(replay.near.rows) } }) },
      probe: stage.probe,
      flags: pipeline.flags,
      skills: skills.map(({ id, probes, check, segments, own_stage, on_flag, decision }) => ({
        id,
        own_stage,
        ...(on_flag !== undefined && on_flag !== "inform" && { on_flag }),
        ...(decision !== undefined && { decision }),
        segments: segments ?? [],
        probes: { id: hashOf(probes.id), ood: hashOf(probes.ood) },
        check: check.kind === "function" ? { ...check, path: hashOf(functionFile(check, pipeline.root)[0]) } : check,
      })),
    }),
  );
  return { stage, start, weightsHash, startNote, inputs, skills, replay, models, seed, fingerprint };
}

/** The frozen spec of a run, as run.json holds it. */
export function freezeRun(
  pipeline: Pipeline,
  plan: StagePlan,
  where: { id: string; trusted: boolean; target: RunSpec["target"]; env: Record<string, string>; versions: Record<string, string>; created?: number; predicted?: PredictedCost | null },
): RunSpec {
  const { stage } = plan;
  return {
    schema: schemaVersion,
    id: where.id,
    stage: stage.id,
    index: stage.index,
    recipe: stage.recipe,
    pipeline: { file: pipeline.file, name: pipeline.name, root: pipeline.root },
    created: where.created ?? Date.now() / 1000,
    start: plan.start,
    base: pipeline.base,
    data: stage.data,
    inputs: plan.inputs,
    args: stage.args,
    options: stage.options,
    models: plan.models,
    adapter: stage.adapter,
    launch: stage.launch,
    seed: plan.seed,
    ...(plan.seed !== pipeline.seed && { file_seed: pipeline.seed }),
    save_every: stage.save_every,
    skills: plan.skills,
    probe: stage.probe,
    flags: pipeline.flags,
    replay: plan.replay,
    target: where.target,
    env: where.env,
    fingerprint: plan.fingerprint,
    predicted: where.predicted ?? null,
    benchmark: stageBenchmark(pipeline, stage),
    trusted: where.trusted,
    versions: where.versions,
  };
}

/** What is measured after a stage's last checkpoint, or null. */
function stageBenchmark({ benchmark, stages }: Pipeline, { id }: Stage): BenchmarkSpec | null {
  if (benchmark === null || benchmark === undefined) return null;
  const { every, ...spec } = benchmark;
  return every === "stage" || !stages.some(({ from }) => from === id) ? spec : null;
}

export function stageOf(pipeline: Pipeline, id: string): Stage {
  const stage = pipeline.stages.find((candidate) => candidate.id === id);
  if (stage) return stage;
  const names = pipeline.stages.map((candidate) => candidate.id).join(", ");
  throw new AppError("not-found", t("There is no stage `{0}` in {1}: its stages are {2}.{3}", id, pipeline.file, names || t("none yet"), didYouMean(id, pipeline.stages.map((one) => one.id))));
}

async function startOf(pipeline: Pipeline, stage: Stage, chain: Chain, hasher: FileHasher): Promise<Pick<StagePlan, "start" | "weightsHash" | "startNote">> {
  if (stage.from === null) {
    const { sha256: weightsHash } = await hasher.model(pipeline.base);
    return { start: { checkpoint: pipeline.base, label: "M0", run: null, step: null }, weightsHash, startNote: null };
  }
  if (stage.fromStep != null) return forkStart(stage, stage.fromStep, chain, hasher);
  const parent = checkpointOf(chain, stage.from);
  if (!parent?.run || parent.path === null) {
    throw new AppError(
      "not-finished",
      t("Stage `{0}` starts from the last checkpoint of `{1}`, which has no finished run: run `{1}` first, or the whole chain.", stage.id, stage.from),
    );
  }
  const { label, run, step, path, status, reason } = parent;
  const sha256 = await stillThere(path, hasher);
  const weightsHash = run.state.checkpoints.find((one) => one.step === step)?.weightsHash ?? sha256 ?? "";
  return { start: { checkpoint: path, label, run: run.id, step }, weightsHash, startNote: status === "stale" ? t("Starts from {0}, the last checkpoint of {1}, which is stale: {2}", label, run.id, reason ?? "") : t("Starts from {0}, the last checkpoint of {1}.", label, run.id) };
}

/** The hash of a checkpoint's folder. Null for one that lies on another machine: whether it is still there is only known there. */
async function stillThere(checkpoint: string, hasher: FileHasher): Promise<string | null> {
  return (await weightsAway(checkpoint)) === null ? (await hasher.model(checkpoint)).sha256 : null;
}

/** What of the launch decides the result: how many processes there are in all, not on how many machines. */
function launchMark({ nodes = 1, processes, config, ...rest }: Stage["launch"], configHash: string | null): object {
  return { ...rest, processes: processes * nodes, ...(config !== undefined && { config: configHash }) };
}

/** A checkpoint between: of the run that stands for the stage, or of its newest, which may have been paused or stopped there. */
async function forkStart(stage: Stage, step: number, chain: Chain, hasher: FileHasher): Promise<Pick<StagePlan, "start" | "weightsHash" | "startNote">> {
  const standing = checkpointOf(chain, stage.from);
  const newest = chain.newest[stage.from ?? ""];
  const run = forkOrigin(stage, standing, newest === undefined ? [] : [newest]);
  const saved = run?.state.checkpoints.find((one) => one.step === step);
  if (run === null || saved === undefined) {
    const known = standing?.run ?? newest;
    if (known === undefined || known === null) throw new AppError("not-finished", t("Stage `{0}` starts from step {1} of `{2}`, which has not been run: run `{2}` first.", stage.id, step, stage.from ?? ""));
    throw new AppError("not-found", t("Stage `{0}` starts from step {1} of `{2}`, but run {3} saved no checkpoint there: it has {4}. Set save_every of `{2}`, or name another step.", stage.id, step, stage.from ?? "", known.id, known.state.checkpoints.map((one) => one.step).join(", ") || t("none yet")));
  }
  const checkpoint = joinPath(run.dir, saved.path);
  await stillThere(checkpoint, hasher);
  const label = `M${run.spec.index}@${step}`;
  return { start: { checkpoint, label, run: run.id, step }, weightsHash: saved.weightsHash, startNote: t("Starts from {0}, step {1} of {2}.", label, step, run.id) };
}

/** The checkpoint that an option names, hashed. AppError("not-finished" | "not-found"). */
async function modelOf(pipeline: Pipeline, stage: Stage, name: string, chain: Chain, hasher: FileHasher): Promise<ModelSpec> {
  const target = referenceTarget(name, pipeline.stages.map(({ id }) => id), pipeline.root);
  if (target === null) throw new AppError("bad-pipeline", t("Stage `{0}` names the checkpoint `{1}`, which is neither a stage nor a folder.", stage.id, name));
  if (target.kind !== "stage") {
    const checkpoint = target.kind === "base" ? pipeline.base : target.path;
    return { checkpoint, label: target.kind === "base" ? "M0" : name, run: null, step: null, weights_hash: (await hasher.model(checkpoint)).sha256 };
  }
  const found = checkpointOf(chain, target.stage);
  if (!found?.run || found.path === null) throw new AppError("not-finished", t("Stage `{0}` uses the checkpoint of `{1}`, which has no finished run: run `{1}` first, or the whole chain.", stage.id, target.stage));
  const { run } = found;
  const step = target.step ?? found.step;
  const saved = run.state.checkpoints.find((one) => one.step === step);
  if (saved === undefined) {
    const steps = run.state.checkpoints.map((one) => one.step).join(", ");
    throw new AppError("not-found", t("Stage `{0}` uses `{1}`, but run {2} saved no checkpoint at step {3}: it has {4}. Set save_every of `{5}`, or name another step.", stage.id, name, run.id, step ?? "?", steps, target.stage));
  }
  const checkpoint = joinPath(run.dir, saved.path);
  await stillThere(checkpoint, hasher);
  return { checkpoint, label: step === found.step ? found.label : `${found.label}@${step}`, run: run.id, step, weights_hash: saved.weightsHash };
}

function skillSpecs(pipeline: Pipeline): SkillSpec[] {
  return pipeline.skills.map(({ id, probes, check, segments, decision, on_flag = pipeline.flags.on_flag }) => ({
    id,
    probes,
    check: check satisfies CheckSpec,
    ...(segments.length > 0 ? { segments } : {}),
    ...(on_flag !== undefined && { on_flag }),
    ...(decision !== undefined && { decision }),
    own_stage: ownStage(pipeline, id),
  }));
}

/** The module of a check function of the user's own, where it is a file or package in the check's folder (else the root). */
function functionFile(check: CheckSpec, root: string): string[] {
  if (check.kind !== "function") return [];
  const module = join(check.path ?? root, (check.function.split(":")[0] ?? "").replaceAll(".", "/"));
  return [`${module}.py`, join(module, "__init__.py")].filter((file) => existsSync(file)).slice(0, 1);
}

/** The stage that teaches a skill: the first of the same name. */
function ownStage(pipeline: Pipeline, skill: string): string | null {
  return pipeline.stages.find((stage) => stage.id === skill)?.id ?? null;
}

function replaySpec(pipeline: Pipeline, stage: Stage): ReplaySpec | null {
  const id = stage.replay?.buffer ?? (stage.recipe === "replay" ? String(stage.options["buffer"]) : null);
  if (id === null) return null;
  const ratio = stage.replay?.ratio ?? 1;
  const buffer = pipeline.buffers.find((candidate) => candidate.id === id);
  if (!buffer) throw new AppError("bad-pipeline", t("Stage `{0}` replays from buffer `{1}`, which {2} does not define.", stage.id, id, pipeline.file));
  return {
    buffer: id,
    ratio,
    rows: buffer.rows,
    from: buffer.from.map((source) => {
      const skill = pipeline.skills.find((candidate) => candidate.id === source)?.id ?? null;
      const { data } = stageOf(pipeline, source);
      if (data === null) throw new AppError("bad-pipeline", t("Buffer `{0}` draws from `{1}`, a stage without data of its own: name the stages whose rows it should hold.", id, source));
      return { stage: source, data, skill };
    }),
    quality: buffer.quality,
    diversity: buffer.diversity,
    ...(buffer.quotas !== undefined && { quotas: buffer.quotas }),
    ...(buffer.near != null && { near: buffer.near }),
  };
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** JSON with sorted keys: two specs that say the same have the same text, whatever order seesaw.yaml wrote it in. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value !== null && typeof value === "object") {
    const entries = Object.entries(value).filter(([, item]) => item !== undefined);
    return `{${entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, item]) => `${JSON.stringify(key)}:${canonical(item)}`).join(",")}}`;
  }
  return JSON.stringify(value) ?? "null";
}
