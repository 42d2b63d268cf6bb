import type { ProbeSet } from "../../domain/drift/driftSelection.ts";
import type { Pipeline } from "../../domain/pipeline/pipelineModel.ts";
import { readRowGroups } from "./rowGroups.ts";
import type { RunRecord } from "../runs/runStore.ts";
import { messageOf } from "../../util/errors.ts";

export interface ProbeGroups {
  groupOf(set: ProbeSet, line: number): string | undefined;
  /** Why groups are not used where a file has some: sentences. */
  problems: string[];
}

/** The groups of the probe rows of a pipeline. A file that changed since it was scored says nothing of the rows that were. */
export async function probeGroups(pipeline: Pipeline, runs: readonly RunRecord[]): Promise<ProbeGroups> {
  const problems: string[] = [];
  const bySet = new Map<string, Map<number, string>>();
  const scored = new Map(runs.flatMap(({ spec }) => spec.inputs).map(({ path, sha256 }) => [`${path} ${sha256}`, true]));
  for (const { id, probes } of pipeline.skills) {
    for (const [split, path] of Object.entries(probes) as [ProbeSet["split"], string][]) {
      try {
        const { sha256, groups } = await readRowGroups(path);
        if (groups.size === 0) continue;
        if (scored.has(`${path} ${sha256}`)) bySet.set(`${id}.${split}`, groups);
        else problems.push(`${path} was changed since it was scored: its groups are not used. Run the stages again to use them.`);
      } catch (error) {
        problems.push(`The groups of ${path} cannot be read: ${messageOf(error)}.`);
      }
    }
  }
  return { groupOf: ({ skill, split }, line) => bySet.get(`${skill}.${split}`)?.get(line), problems };
}
