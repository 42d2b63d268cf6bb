import { stringify } from "yaml";
import type { Pipeline, Target } from "../pipeline/pipelineModel.ts";
import { chainOf, type CompiledArena } from "./compileArena.ts";

/** Only the ends are judged here: nothing is scored in between, and no divergence is measured. */
const noStep = [1_000_000_000];

/** The seesaw.yaml of one seed of the arena: the chain and every remedy, with absolute paths. */
export function arenaYaml(pipeline: Pipeline, compiled: CompiledArena, seed: number): string {
  const raw = {
    seesaw: 1,
    name: `${pipeline.name}, arena, seed ${seed}`,
    base: pipeline.base,
    seed,
    skills: Object.fromEntries(pipeline.skills.map(({ id, probes, check, segments }) => [id, { probes: probes.id, ...(probes.ood !== undefined && { ood: probes.ood }), check, ...(segments.length > 0 && { segments }) }])),
    probe: { ...chainOf(pipeline).at(-1)?.probe, every: noStep, eval_every: null, kl: [] },
    // A remedy is judged at its end: one that paused would hold all the others.
    flags: { ...pipeline.flags, on_flag: "inform" },
    stages: compiled.stages,
    ...(Object.keys(compiled.buffers).length > 0 && { buffers: compiled.buffers }),
    ...(pipeline.targets.length > 0 && { targets: Object.fromEntries(pipeline.targets.map(rawTarget)) }),
  };
  return `# Made by \`seesaw arena\` from ${pipeline.file}: change that file, not this one.\n${stringify(raw, { aliasDuplicateObjects: false })}`;
}

function rawTarget({ id, ...target }: Target): [string, object] {
  const said = Object.entries(target).filter(([key, value]) => value !== null && !(key === "resources" && Object.keys(value as object).length === 0));
  return [id, Object.fromEntries(said)];
}
