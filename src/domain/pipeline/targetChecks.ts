import { t } from "../../util/l10n.ts";
import type { PipelineProblem } from "./pipelineChecks.ts";
import type { RawPipeline, RawStage } from "./pipelineDefaults.ts";
import { limitSeconds, mergedResources, type RawResources, type RawTarget } from "./targetSettings.ts";
import { pointerOf } from "./yamlSource.ts";

const problem = (pointer: string, message: string, part: "key" | "value" = "value"): PipelineProblem => ({ pointer, code: "bad-value", message, part });

/** What a Ray cluster can be asked for: the rest of the words are Slurm's. */
const rayKeys: ReadonlySet<string> = new Set(["gpus", "cpus", "memory", "nodes"]);
/** Options of sbatch by which Seesaw knows its job again, follows and ends it. */
const ownWords: ReadonlySet<string> = new Set([
  "--array", "--chdir", "--comment", "--error", "--help", "--job-name", "--open-mode", "--output", "--parsable", "--signal", "--test-only", "--usage", "--version", "--wait", "--wrap",
]);
const warnDefault = 120;

/** Targets that cannot be what they say, and stages that ask theirs for something it cannot give. */
export function targetProblems(raw: RawPipeline): PipelineProblem[] {
  const targets = Object.entries(raw.targets ?? {}).flatMap(([id, target]) => {
    const own = id === "local" && target.kind !== "local" ? [{ ...problem(pointerOf("targets", id), t("\"local\" is always this machine: choose another name for the target."), "key"), code: "reserved-name" }] : [];
    return [...own, ...resourceProblems(id, target.kind, target.resources, pointerOf("targets", id, "resources"))];
  });
  return [...targets, ...raw.stages.flatMap((stage, index) => stageProblems(raw, stage, index))];
}

function stageProblems(raw: RawPipeline, stage: RawStage, index: number): PipelineProblem[] {
  const target = raw.targets?.[stage.on ?? "local"];
  const at = (...segments: string[]): string => pointerOf("stages", index, ...segments);
  const resources = mergedResources(raw, stage);
  if (resources === null) {
    if (stage.resources === undefined || (target === undefined && stage.on !== undefined && stage.on !== "local")) return [];
    return [problem(at("resources"), t("Stage \"{0}\" asks for resources, but runs on \"{1}\", where no scheduler shares them out: remove \"resources\", or run it on a target of kind slurm or ray.", stage.id, stage.on ?? "local"), "key")];
  }
  const kind = (target as RawTarget).kind;
  const problems = resourceProblems(stage.on ?? "", kind, stage.resources, at("resources"));
  /** The place that decides: the stage's own word, else where it names the target. */
  const place = (key: keyof RawResources): string => (stage.resources?.[key] === undefined ? at("on") : at("resources", key));
  const { gpus, nodes = 1, time, warn_s = warnDefault } = resources;
  const { kind: launcher = "python", processes = 1 } = stage.launch ?? {};
  if (gpus !== undefined && gpus > 0 && processes > gpus) {
    problems.push(problem(stage.launch?.processes === undefined ? place("gpus") : at("launch", "processes"), t("Stage \"{0}\" starts {1} processes on each node, each with a GPU of its own, but asks for {2}: raise \"gpus\", or lower \"processes\".", stage.id, processes, gpus)));
  }
  // A Slurm target without time has its partition's.
  if (kind === "slurm" && time !== undefined && limitSeconds(time) <= warn_s) {
    problems.push(problem(place("time"), t("Stage \"{0}\" may run for {1} s and is told to save {2} s before that: raise \"time\", or lower \"warn_s\".", stage.id, limitSeconds(time), warn_s)));
  }
  if (kind === "slurm" && nodes > 1 && launcher !== "torchrun" && stage.recipe !== "command") {
    problems.push(problem(place("nodes"), t("Stage \"{0}\" asks for {1} nodes, but only torchrun starts processes on several: write \"launch: { kind: torchrun, processes: {2} }\", or remove \"nodes\".", stage.id, nodes, Math.max(1, gpus ?? 1))));
  }
  return problems;
}

function resourceProblems(id: string, kind: string, resources: RawResources | undefined, pointer: string): PipelineProblem[] {
  const problems: PipelineProblem[] = [];
  if (resources === undefined) return problems;
  if (kind === "ray") {
    for (const key of Object.keys(resources)) {
      if (!rayKeys.has(key)) problems.push(problem(pointer + pointerOf(key), t("\"{0}\" means something to Slurm only, but \"{1}\" is a Ray cluster: remove it. Ray knows gpus, cpus and memory.", key, id), "key"));
    }
    if ((resources.nodes ?? 1) > 1) problems.push(problem(pointer + pointerOf("nodes"), t("A stage on Ray runs on one node, but \"{0}\" asks for {1}: use the GPUs of one node, or a Slurm target.", id, resources.nodes ?? 1)));
  }
  resources.args?.forEach((word, place) => {
    const name = word.split("=")[0] ?? "";
    if (ownWords.has(name)) problems.push(problem(pointer + pointerOf("args", place), t("{0} is what Seesaw itself says to sbatch, to find and end its job: remove it.", name)));
  });
  return problems;
}
