import { buildChain, type Chain } from "../domain/run/chain.ts";
import { ownReference, probeSetsOf, startReference, withProbeSet, type OpenedSet, type ProbeSet } from "../domain/drift/driftSelection.ts";
import type { Pipeline, Skill } from "../domain/pipeline/pipelineModel.ts";
import type { RunRecord, UnreadableRun } from "../storage/runs/runStore.ts";
import type { TraceReader, TraceStore } from "../storage/traces/traceStore.ts";
import type { Output } from "./output.ts";
import type { Services } from "../services.ts";
import { didYouMean } from "../util/nearest.ts";
import { stageOfRunId } from "./runChoice.ts";
import { AppError } from "../util/errors.ts";

/** The chain of a pipeline as it is on disk now. */
export interface ChainData {
  pipeline: Pipeline;
  chain: Chain;
  runs: RunRecord[];
  unreadable: UnreadableRun[];
}

/** With the store of its traces, which needs SQLite. */
export interface ScoredChain extends ChainData {
  traces: TraceStore;
}

export async function readChain(services: Services, pipeline: Pipeline): Promise<ChainData> {
  const { runs, unreadable } = await services.runs.list(pipeline.root);
  const chain = buildChain(pipeline, runs);
  for (const checkpoint of chain.checkpoints) {
    const broken = checkpoint.status === "missing" ? unreadable.find(({ id }) => stageOfRunId(id) === checkpoint.stage) : undefined;
    if (broken !== undefined && chain.newest[checkpoint.stage ?? ""] === undefined) checkpoint.reason = `The run ${broken.id} cannot be read.`;
  }
  return { pipeline, chain, runs, unreadable };
}

/** For what cannot be said without traces. AppError("sqlite-missing"). */
export async function readScores(services: Services, pipeline: Pipeline): Promise<ScoredChain> {
  return { ...(await readChain(services, pipeline)), traces: await services.traces() };
}

/** Says on stderr which run folders could not be read: what they hold is missing in every answer. */
export function noteUnreadable({ unreadable }: Pick<ChainData, "unreadable">, out: Output): void {
  for (const { message } of unreadable) out.note(out.paint("yellow", message));
}

/** Opens one probe set of the chain for as long as `use` runs. */
export function withTraces<R>({ chain, traces }: ScoredChain, set: ProbeSet, use: (opened: OpenedSet<TraceReader>) => R): R {
  return withProbeSet(chain, set, (path) => traces.open(path), use);
}

/** What to tell the person about traces that could not be read. */
export function traceNotes({ problems }: OpenedSet<TraceReader>): string[] {
  return [...problems].map(([label, message]) => `${label}: ${message}`);
}

export function skillOf(pipeline: Pipeline, id: string): Skill {
  const skill = pipeline.skills.find((candidate) => candidate.id === id);
  if (skill) return skill;
  throw new AppError("not-found", `There is no skill \`${id}\` in ${pipeline.file}: its skills are ${pipeline.skills.map((one) => one.id).join(", ") || "none yet"}.${didYouMean(id, pipeline.skills.map((one) => one.id))}`);
}

/** The probe sets of a pipeline, or those of one skill or split. */
export function probeSets(pipeline: Pipeline, skill?: string, split?: string): ProbeSet[] {
  if (split !== undefined && split !== "id" && split !== "ood") throw new AppError("usage", `A split is \`id\` or \`ood\`, not \`${split}\`.`);
  const skills = skill === undefined ? pipeline.skills : [skillOf(pipeline, skill)];
  const wanted = skills.flatMap(probeSetsOf).filter((set) => split === undefined || set.split === split);
  if (wanted.length === 0) throw new AppError("not-found", `${skill === undefined ? "No skill" : `Skill \`${skill}\``} has ${skill === undefined ? "" : "no "}${split ?? ""} probes in ${pipeline.file}.`);
  return wanted;
}

/** What may follow --against, for help texts. */
export const againstHelp =
  "`own`: the end of the skill's own stage (M0 for a skill without one, or whose stage is the last); `start`: the start of each checkpoint's stage; or a checkpoint, e.g. M1";

/** Checks what the person gave for --against. */
export function checkReference(chain: Chain, reference: string): string {
  if (reference === "own" || reference === startReference || chain.checkpoints.some(({ label }) => label === reference)) return reference;
  throw new AppError("usage", `--against takes \`own\`, \`start\` or one of ${chain.checkpoints.map(({ label }) => label).join(", ")}, not \`${reference}\`.`);
}

/** `start`, or the label of the checkpoint a probe set is compared with. */
export function resolveReference({ chain }: Pick<ChainData, "chain">, set: ProbeSet, reference: string): string {
  return reference === "own" ? ownReference(chain, set) : reference;
}
