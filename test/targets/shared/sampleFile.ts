import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import { repo } from "./leftovers.ts";

/** The stages of media/sample, in their order, with the steps that each takes here: enough that each learns its skill and the older ones drift. */
const steps = { math: 24, search: 18, tool: 24, format: 24 } as const;
export type SampleStage = keyof typeof steps;
export const sampleStages = Object.keys(steps) as SampleStage[];

/** Probe prompts of each set, and rows of each stage. */
export const probeRows = 24;
const trainRows = 640;

export function stepsOf(stage: SampleStage): number {
  return steps[stage];
}

interface SampleYaml {
  skills: Record<string, object>;
  probe: object;
  stages: { id: SampleStage; args: object; probe_every?: number; replay?: object }[];
  buffers: object;
}

const sample = join(repo, "media/sample");
const read = (file: string): SampleYaml => parse(readFileSync(join(sample, file), "utf8")) as SampleYaml;

/**
 * Writes the sample chain into a workspace that has its model in `m0`: its seesaw.yaml, with the replay buffers of
 * replay/seesaw.yaml, every stage on the target `box`, shortened. Gives the file without the target: what decides the numbers.
 */
export function writeSample(root: string, box: Record<string, unknown>): string {
  mkdirSync(join(root, "data"), { recursive: true });
  const heads = sampleStages.flatMap((skill) => [[`${skill}.train`, trainRows], [`${skill}.probe`, probeRows], [`${skill}.ood`, probeRows]] as const);
  for (const [name, rows] of heads) {
    const lines = readFileSync(join(sample, "data", `${name}.jsonl`), "utf8").split("\n").slice(0, rows);
    writeFileSync(join(root, "data", `${name}.jsonl`), `${lines.join("\n")}\n`);
  }
  const [chain, remedy] = [read("seesaw.yaml"), read("replay/seesaw.yaml")];
  const stages = chain.stages.map(({ probe_every: _, ...stage }) => ({
    ...stage,
    ...withReplay(remedy, stage.id),
    on: "box",
    args: { ...stage.args, max_steps: steps[stage.id], warmup_steps: 4 },
    // As many threads as a scheduler gives its job would change the last digits of every sum.
    env: { OMP_NUM_THREADS: "1" },
  }));
  const file = { ...chain, base: "m0", probe: { ...chain.probe, every: 12 }, stages, buffers: remedy.buffers };
  writeFileSync(join(root, "seesaw.yaml"), stringify({ ...file, targets: { box } }));
  return stringify(file);
}

function withReplay({ stages }: SampleYaml, id: SampleStage): { replay?: object } {
  const replay = stages.find((stage) => stage.id === id)?.replay;
  return replay === undefined ? {} : { replay };
}
