import type { Pipeline, Skill } from "../pipeline/pipelineModel.ts";
import type { Chain, ChainRun } from "../run/chain.ts";
import { compareWith, orderedDrift, ownReference, probeSetsOf, startReference, withProbeSet, type ClosableTrace, type OpenedSet, type ProbeSet } from "../drift/driftSelection.ts";
import type { DriftRow, DriftTable } from "../drift/drift.ts";
import { filmstrip, type Filmstrip } from "../drift/filmstrip.ts";
import { AppError } from "../../util/errors.ts";
import { didYouMean } from "../../util/nearest.ts";

/**
 * A chain with the store of its traces: what the command line, the report and the agents' tools ask their questions of.
 * The caller has read the runs; traces are opened here one probe set at a time and closed again.
 */
export interface ScoredChain {
  pipeline: Pipeline;
  chain: Chain;
  runs: readonly ChainRun[];
  unreadable: readonly { id: string; message: string }[];
  traces: { open(path: string): ClosableTrace };
}

/** The drift table of one probe set. */
export interface DriftOfSet extends ProbeSet {
  /** `start`, or the label of the reference checkpoint. */
  against: string;
  table: DriftTable;
  notes: string[];
}

/** One prompt: the `occurrence`-th probe with this row hash. */
export interface PromptPlace extends ProbeSet {
  hash: string;
  occurrence: number;
}

export interface PromptFilm extends PromptPlace {
  /** `start`, or the label of the reference checkpoint. */
  against: string;
  film: Filmstrip;
}

/** Opens one probe set of the chain for as long as `use` runs. */
export function withTraces<R>({ chain, traces }: Pick<ScoredChain, "chain" | "traces">, set: ProbeSet, use: (opened: OpenedSet<ClosableTrace>) => R): R {
  return withProbeSet(chain, set, (path) => traces.open(path), use);
}

/** What to tell the person about traces that could not be read. */
export function traceNotes({ problems }: OpenedSet<ClosableTrace>): string[] {
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

/** Checks a reference that a person or an agent named; `option` is what they call it. */
export function checkReference(chain: Chain, reference: string, option: string): string {
  if (reference === "own" || reference === startReference || chain.checkpoints.some(({ label }) => label === reference)) return reference;
  throw new AppError("usage", `${option} takes \`own\`, \`start\` or one of ${chain.checkpoints.map(({ label }) => label).join(", ")}, not \`${reference}\`.`);
}

/** `start`, or the label of the checkpoint a probe set is compared with. */
export function resolveReference({ chain }: Pick<ScoredChain, "chain">, set: ProbeSet, reference: string): string {
  return reference === "own" ? ownReference(chain, set) : reference;
}

/** The drift table of one probe set. */
export function driftOfSet(data: ScoredChain, set: ProbeSet, asked: string, sort: "worst" | "last" = "worst"): DriftOfSet {
  const against = resolveReference(data, set, asked);
  return withTraces(data, set, (opened) => ({ ...set, against, table: orderedDrift(compareWith(data.pipeline, opened, against), sort), notes: traceNotes(opened) }));
}

/** The prompt that drifted most over the given sets, among those answered rightly under the reference where there are any. */
export function mostDrifted(sets: readonly DriftOfSet[]): { skill: string; split: ProbeSet["split"]; row: DriftRow } | null {
  const all = sets.flatMap(({ skill, split, against, table: { rows } }) =>
    rows.filter(({ worst }) => worst !== null).map((row) => ({ skill, split, row, known: row.cells.some(({ label, correct }) => label === against && correct === true) })),
  );
  const known = all.filter((one) => one.known);
  const [worst] = (known.length > 0 ? known : all).sort((a, b) => (b.row.worst ?? 0) - (a.row.worst ?? 0));
  return worst ? { skill: worst.skill, split: worst.split, row: worst.row } : null;
}

/** One prompt token by token under every checkpoint. */
export function filmOf(data: ScoredChain, prompt: PromptPlace, asked: string): PromptFilm {
  const against = resolveReference(data, prompt, asked);
  return withTraces(data, prompt, (opened) => {
    const { reference, compared } = compareWith(data.pipeline, opened, against);
    const film = filmstrip(reference, compared, prompt.hash, prompt.occurrence);
    // A trace that is there but cannot be read is another thing than none.
    if (film) return { ...prompt, against, film: { ...film, frames: film.frames.map((frame) => ({ ...frame, why: opened.problems.get(frame.label) ?? frame.why })) } };
    for (const problem of opened.problems.values()) throw new AppError("trace-unreadable", problem);
    throw new AppError("not-found", `No checkpoint has scored this prompt of ${prompt.skill}.${prompt.split}.`);
  });
}
