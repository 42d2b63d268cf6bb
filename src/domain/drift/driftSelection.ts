import type { Split } from "../../protocol/runSpec.ts";
import { messageOf } from "../../util/errors.ts";
import type { Chain, ChainCheckpoint } from "../run/chain.ts";
import { driftTable, type DriftTable } from "./drift.ts";
import { driftColumns, type DriftColumns } from "./driftColumns.ts";
import type { Pipeline, Skill } from "../pipeline/pipelineModel.ts";
import { columnsOf, type ComparedTrace, type TraceData } from "./traceData.ts";

/** One skill's in-domain or OOD probes. */
export interface ProbeSet {
  skill: string;
  split: Split;
}

/** The reference that means: every checkpoint against the start of its own stage. Otherwise it is a label, `M1`. */
export const startReference = "start";

/** An opened trace. `TraceReader` of the storage room is one. */
export interface ClosableTrace extends TraceData {
  close(): void;
}

/** The probe sets of a skill: in-domain, and OOD where it has any. */
export function probeSetsOf(skill: Skill): ProbeSet[] {
  const id: ProbeSet = { skill: skill.id, split: "id" };
  return skill.probes.ood === undefined ? [id] : [id, { skill: skill.id, split: "ood" }];
}

/** The checkpoints a probe set can be shown for: up to the last scored one, those without a score between them too. */
export function shownCheckpoints(chain: Chain, { skill, split }: ProbeSet): ChainCheckpoint[] {
  const last = chain.checkpoints.findLastIndex(({ traces }) => traces[`${skill}.${split}`] !== undefined);
  return chain.checkpoints.slice(0, last + 1);
}

/** The checkpoints that scored a probe set: what it can be compared with. */
export function scoredCheckpoints(chain: Chain, set: ProbeSet): ChainCheckpoint[] {
  return shownCheckpoints(chain, set).filter(({ traces }) => traces[`${set.skill}.${set.split}`] !== undefined);
}

/** After the skill's own stage, where it stands highest; the base for a skill without one, or after whose stage nothing is scored. */
export function ownReference(chain: Chain, set: ProbeSet): string {
  const scored = scoredCheckpoints(chain, set);
  const own = scored.findIndex(({ stage }) => stage === set.skill);
  if (own >= 0 && own < scored.length - 1) return scored[own]?.label ?? startReference;
  return scored.length === 0 || scored[0]?.label === "M0" ? "M0" : startReference;
}

/** The traces of one probe set under the shown checkpoints, opened together and closed together. */
export interface OpenedSet<T extends ClosableTrace> extends ProbeSet {
  shown: readonly ChainCheckpoint[];
  readers: ReadonlyMap<string, T>;
  /** Why a trace that exists could not be read, by checkpoint label. */
  problems: ReadonlyMap<string, string>;
}

/** Opens the traces of a probe set, hands them to `use` and closes them. One that cannot be read is a problem, not the end. */
export function withProbeSet<T extends ClosableTrace, R>(chain: Chain, set: ProbeSet, open: (path: string) => T, use: (opened: OpenedSet<T>) => R): R {
  const { opened, close } = openProbeSet(chain, set, open);
  try {
    return use(opened);
  } finally {
    close();
  }
}

/** The same for who needs them longer than one call: `close` is theirs to call. */
export function openProbeSet<T extends ClosableTrace>(chain: Chain, set: ProbeSet, open: (path: string) => T): { opened: OpenedSet<T>; close(): void } {
  const shown = shownCheckpoints(chain, set);
  const readers = new Map<string, T>();
  const problems = new Map<string, string>();
  for (const { label, traces } of shown) {
    const path = traces[`${set.skill}.${set.split}`];
    if (path === undefined) continue;
    try {
      const reader = open(path);
      readers.set(label, reader);
      // A file damaged further in opens well: what every answer needs is read now.
      columnsOf(reader);
      reader.summary();
    } catch (error) {
      readers.get(label)?.close();
      readers.delete(label);
      problems.set(label, messageOf(error));
    }
  }
  return {
    opened: { skill: set.skill, split: set.split, shown, readers, problems },
    close() {
      for (const reader of readers.values()) reader.close();
    },
  };
}

/** What is compared with what. */
export interface Comparison {
  /** `start`, or the label of the reference checkpoint. */
  against: string;
  /** The common reference; null among stage starts, or when it was not scored. */
  reference: TraceData | null;
  compared: ComparedTrace[];
}

/**
 * Every shown checkpoint against the reference. With `onlyLater`, the reference itself and what came before it have no
 * reference: that a skill was unknown before it was trained is no drift.
 */
export function compareWith(pipeline: Pipeline, { shown, readers }: OpenedSet<ClosableTrace>, against: string, onlyLater = false): Comparison {
  const read = (label: string | undefined): TraceData | null => (label === undefined ? null : readers.get(label) ?? null);
  const place = shown.findIndex(({ label }) => label === against);
  const compared = shown.map(({ label, stage }, index): ComparedTrace => {
    const trace = read(label);
    if (against !== startReference) return onlyLater && index <= place ? { label, trace, reference: null } : { label, trace };
    const parent = pipeline.stages.find(({ id }) => id === stage)?.from ?? null;
    const start = stage === null ? undefined : shown.find((checkpoint) => checkpoint.stage === parent)?.label;
    return { label, trace, reference: read(start) };
  });
  return { against, reference: against === startReference ? null : read(against), compared };
}

/** The prompts of a comparison, the most drifted first. Only checkpoints after the reference count for the order. */
export function orderedDrift({ against, reference, compared }: Comparison, sortBy: "worst" | "last" = "worst"): DriftTable {
  return driftTable(reference, compared, sortBy, firstCounted(against, compared));
}

/** The same without the prompts' texts: for large sets, of which the first `limit` are looked at. Null: nothing was scored. */
export function orderedColumns({ against, reference, compared }: Comparison, sortBy: "worst" | "last" = "worst", limit = Infinity): DriftColumns | null {
  return driftColumns(reference, compared, sortBy, firstCounted(against, compared), limit);
}

function firstCounted(against: string, compared: Comparison["compared"]): number {
  return compared.findIndex(({ label }) => label === against) + 1;
}
