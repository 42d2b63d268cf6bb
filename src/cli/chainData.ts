import { buildChain, type Chain, type ChainCheckpoint } from "../domain/chain.ts";
import type { Pipeline, Skill } from "../domain/pipelineModel.ts";
import type { ComparedTrace } from "../domain/traceData.ts";
import type { Split } from "../protocol/runSpec.ts";
import type { RunRecord, UnreadableRun } from "../storage/runStore.ts";
import type { TraceReader, TraceStore } from "../storage/traceStore.ts";
import type { Services } from "../services.ts";
import { AppError, messageOf } from "../util/errors.ts";

/** The chain of a pipeline as it is on disk now. */
export interface ChainData {
  pipeline: Pipeline;
  chain: Chain;
  runs: RunRecord[];
  unreadable: UnreadableRun[];
  traces: TraceStore;
}

export async function readChain(services: Services, pipeline: Pipeline): Promise<ChainData> {
  const { runs, unreadable } = await services.runs.list(pipeline.root);
  return { pipeline, chain: buildChain(pipeline, runs), runs, unreadable, traces: await services.traces() };
}

/** The traces of one probe set at M0 … MN. A trace that cannot be read is a note, not the end. */
export class ProbeSetTraces {
  readonly skill: string;
  readonly split: Split;
  readonly notes: string[] = [];
  private readonly readers: { checkpoint: ChainCheckpoint; reader: TraceReader | null }[];

  constructor({ chain, traces }: ChainData, skill: string, split: Split) {
    this.skill = skill;
    this.split = split;
    this.readers = chain.checkpoints.map((checkpoint) => {
      const path = checkpoint.traces[`${skill}.${split}`];
      try {
        return { checkpoint, reader: path === undefined ? null : traces.open(path) };
      } catch (error) {
        this.notes.push(`${checkpoint.label}: ${messageOf(error)}`);
        return { checkpoint, reader: null };
      }
    });
  }

  reader(label: string): TraceReader | null {
    return this.readers.find(({ checkpoint }) => checkpoint.label === label)?.reader ?? null;
  }

  /** Every checkpoint against the one its stage started from (`start`), or all against one (`M1` …). */
  compared(pipeline: Pipeline, reference: string): ComparedTrace[] {
    return this.readers.map(({ checkpoint, reader }) => ({
      label: checkpoint.label,
      trace: reader,
      ...(reference === "start" ? { reference: this.startOf(pipeline, checkpoint) } : {}),
    }));
  }

  private startOf(pipeline: Pipeline, checkpoint: ChainCheckpoint): TraceReader | null {
    const stage = pipeline.stages.find(({ id }) => id === checkpoint.stage);
    if (!stage) return null;
    const parent = pipeline.stages.find(({ id }) => id === stage.from);
    return this.reader(`M${parent?.index ?? 0}`);
  }

  close(): void {
    for (const { reader } of this.readers) reader?.close();
  }
}

export function skillOf(pipeline: Pipeline, id: string): Skill {
  const skill = pipeline.skills.find((candidate) => candidate.id === id);
  if (skill) return skill;
  throw new AppError("not-found", `There is no skill \`${id}\` in ${pipeline.file}: its skills are ${pipeline.skills.map((one) => one.id).join(", ")}.`);
}

/** The probe sets of a pipeline, or those of one skill or split. */
export function probeSets(pipeline: Pipeline, skill?: string, split?: string): { skill: string; split: Split }[] {
  if (split !== undefined && split !== "id" && split !== "ood") throw new AppError("usage", `A split is \`id\` or \`ood\`, not \`${split}\`.`);
  const skills = skill === undefined ? pipeline.skills : [skillOf(pipeline, skill)];
  const sets = skills.flatMap(({ id, probes }): { skill: string; split: Split }[] => [
    { skill: id, split: "id" },
    ...(probes.ood === undefined ? [] : [{ skill: id, split: "ood" as const }]),
  ]);
  const wanted = sets.filter((set) => split === undefined || set.split === split);
  if (wanted.length === 0) throw new AppError("not-found", `Skill \`${skill}\` has no ${split} probes in ${pipeline.file}.`);
  return wanted;
}

/** What may follow --against, for help texts. */
export const againstHelp =
  "`own`: the end of the skill's own stage (M0 for a skill without one, or whose stage is the last); `start`: the start of each checkpoint's stage; or a checkpoint, e.g. M1";

/** Checks what the person gave for --against. */
export function checkReference(chain: Chain, reference: string): string {
  if (reference === "own" || reference === "start" || chain.checkpoints.some(({ label }) => label === reference)) return reference;
  throw new AppError("usage", `--against takes \`own\`, \`start\` or one of ${chain.checkpoints.map(({ label }) => label).join(", ")}, not \`${reference}\`.`);
}

/** `start`, or the label of the checkpoint a skill is compared with. */
export function resolveReference({ chain }: Pick<ChainData, "chain">, skill: string, reference: string): string {
  if (reference !== "own") return reference;
  const trained = chain.checkpoints.filter(({ status }) => status !== "missing");
  const own = trained.findIndex(({ stage }) => stage === skill);
  // Nothing comes after it yet: then what the earlier stages did to it is what there is to see.
  return own < 0 || own === trained.length - 1 ? "M0" : (trained[own]?.label ?? "M0");
}
