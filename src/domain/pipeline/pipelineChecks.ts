import type { RawPipeline, RawStage } from "./pipelineDefaults.ts";
import type { SchemaProblem } from "./pipelineSchema.ts";
import { didYouMean } from "../../util/nearest.ts";
import { parentOf } from "./pipelineDefaults.ts";
import { referencesOf, referenceTarget } from "./stageOptions.ts";
import { pointerOf } from "./yamlSource.ts";

/** What the schema cannot say: names that refer to each other, and names that have to be folder names. */
export type PipelineProblem = SchemaProblem & { severity?: "warning" };

/** Checks a file that fits the schema. */
export function pipelineChecks(raw: RawPipeline): PipelineProblem[] {
  return [...nameProblems(raw), ...raw.stages.flatMap((stage, index) => stageProblems(raw, stage, index)), ...cycleProblems(raw), ...bufferProblems(raw)];
}

const problem = (pointer: string, code: string, message: string, part: "key" | "value" = "value"): PipelineProblem => ({ pointer, code, message, part });

/** Names that Windows keeps for devices, whatever the extension. */
const windowsReserved = /^(con|prn|aux|nul|com[0-9]|lpt[0-9])$/i;

function nameProblems(raw: RawPipeline): PipelineProblem[] {
  const problems: PipelineProblem[] = [];
  const names: [string, string, string, "key" | "value"][] = [
    ...raw.stages.map((stage, index): [string, string, string, "value"] => ["stage", stage.id, pointerOf("stages", index, "id"), "value"]),
    ...(["skills", "buffers", "targets"] as const).flatMap((kind) => Object.keys(raw[kind] ?? {}).map((id): [string, string, string, "key"] => [kind.slice(0, -1), id, pointerOf(kind, id), "key"])),
  ];
  const seen = new Map<string, string>();
  for (const [kind, id, pointer, part] of names) {
    if (windowsReserved.test(id)) problems.push(problem(pointer, "reserved-name", `"${id}" is a device on Windows, where no folder can have this name: choose another name for the ${kind}.`, part));
    const other = seen.get(`${kind} ${id.toLowerCase()}`);
    if (other === id) problems.push(problem(pointer, "duplicate-id", `There are two ${kind}s with the id "${id}": give one of them another id.`, part));
    else if (other !== undefined) problems.push(problem(pointer, "duplicate-id", `The ${kind}s "${other}" and "${id}" differ only in upper and lower case, and would share folders on Windows and macOS: rename one.`, part));
    else seen.set(`${kind} ${id.toLowerCase()}`, id);
    if (kind === "stage" && id === "base") problems.push(problem(pointer, "reserved-name", `"base" means the base model in "from": choose another id for the stage.`));
  }
  return problems;
}

/** Names of variables whose values are usually secret. */
const secretName = /(token|secret|password|passwd|api_?key|credential)/i;

function stageProblems(raw: RawPipeline, stage: RawStage, index: number): PipelineProblem[] {
  const problems: PipelineProblem[] = [];
  const at = (...segments: string[]): string => pointerOf("stages", index, ...segments);
  const ids = raw.stages.map((other) => other.id);
  if (stage.from !== undefined && stage.from !== "base" && !ids.includes(stage.from)) {
    problems.push(problem(at("from"), "unknown-stage", `Stage "${stage.id}" starts from "${stage.from}", which is no stage.${didYouMean(stage.from, [...ids, "base"])} Stages: ${ids.join(", ")}; "base" is the base model.`));
  }
  const targets = ["local", ...Object.keys(raw.targets ?? {})];
  if (stage.on !== undefined && !targets.includes(stage.on)) {
    problems.push(problem(at("on"), "unknown-target", `Stage "${stage.id}" runs on "${stage.on}", which is not under "targets".${didYouMean(stage.on, targets)} Targets: ${[...new Set(targets)].join(", ")}.`));
  }
  if (stage.replay !== undefined) problems.push(...replayProblems(raw, stage, index, stage.replay.buffer, at("replay", "buffer")));
  if (stage.recipe === "replay") problems.push(...replayProblems(raw, stage, index, String(stage.options?.["buffer"] ?? ""), at("options", "buffer")));
  problems.push(...optionProblems(raw, stage, index));
  if (stage.launch?.kind !== "torchrun" && (stage.launch?.processes ?? 1) > 1) {
    problems.push(problem(at("launch", "processes"), "bad-value", `Stage "${stage.id}" asks for ${stage.launch?.processes} processes of one Python: write "kind: torchrun".`));
  }
  for (const name of ["args", "options", "adapter", "env"] as const) {
    for (const pointer of nonFinite(stage[name], at(name))) problems.push(problem(pointer, "bad-value", `An argument cannot be infinite or NaN: run.json has to hold it.`));
  }
  for (const name of Object.keys(stage.env ?? {})) {
    if (secretName.test(name)) problems.push({ ...problem(at("env", name), "secret", `${name} looks like a secret. This file and run.json keep it readable: set it in the environment that starts Seesaw instead.`, "key"), severity: "warning" });
  }
  return problems;
}

/** Names in `options`: checkpoints of earlier stages, and skills. */
function optionProblems(raw: RawPipeline, stage: RawStage, index: number): PipelineProblem[] {
  const ids = raw.stages.map((other) => other.id);
  const skills = Object.keys(raw.skills);
  const at = (pointer: string): string => pointerOf("stages", index) + pointer;
  const problems = referencesOf(stage).flatMap(({ name, pointer }): PipelineProblem[] => {
    const target = referenceTarget(name, ids, "/");
    if (target === null) return [problem(at(pointer), "unknown-stage", `Stage "${stage.id}" names the checkpoint "${name}", which is no stage.${didYouMean(name, [...ids, "base"])} Write a stage's id, "base", or the path of a folder (./${name}).`)];
    if (target.kind !== "stage" || ids.indexOf(target.stage) < index) return [];
    return [problem(at(pointer), "later-stage", `Stage "${stage.id}" uses the checkpoint of ${target.stage === stage.id ? "the stage itself" : `the later stage "${target.stage}"`}: move "${target.stage}" before it.`)];
  });
  const named = (value: unknown, ...path: string[]): void => {
    if (typeof value !== "string" || skills.includes(value)) return;
    problems.push(problem(at(pointerOf("options", ...path)), "missing-skill", `Stage "${stage.id}" names the skill "${value}", which is not under "skills".${didYouMean(value, skills)} Skills: ${skills.join(", ")}.`));
  };
  const options = stage.options ?? {};
  if (typeof options["check"] === "string") named(options["check"], "check");
  if (options["fallback"] !== "base") named(options["fallback"], "fallback");
  if (Array.isArray(options["rewards"])) options["rewards"].forEach((reward: { skill?: unknown } | null, place) => named(reward?.skill, "rewards", String(place), "skill"));
  for (const name of ["teachers", "oracles", "experts", "keywords", "paraphrases"]) {
    const block = options[name];
    if (typeof block !== "object" || block === null) continue;
    for (const skill of Object.keys(block)) named(skill, name, skill);
  }
  return problems;
}

function nonFinite(value: unknown, pointer: string): string[] {
  if (typeof value === "number") return Number.isFinite(value) ? [] : [pointer];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => nonFinite(item, pointer + pointerOf(key)));
}

function replayProblems(raw: RawPipeline, stage: RawStage, index: number, name: string, pointer: string): PipelineProblem[] {
  const buffers = Object.keys(raw.buffers ?? {});
  const buffer = raw.buffers?.[name];
  if (buffer === undefined) {
    const known = buffers.length === 0 ? `There are none: add "buffers: { ${name}: { from: [${raw.stages[0]?.id ?? ""}], rows: 200 } }".` : `Buffers: ${buffers.join(", ")}.`;
    return [problem(pointer, "unknown-buffer", `Stage "${stage.id}" replays from "${name}", which is not under "buffers".${didYouMean(name, buffers)} ${known}`)];
  }
  const later = buffer.from.filter((id) => raw.stages.findIndex((other) => other.id === id) >= index);
  return later.map((id) => problem(pointer, "later-stage", `Stage "${stage.id}" replays from "${name}", which draws from ${id === stage.id ? "the stage itself" : `the later stage "${id}"`}: a buffer can only hold rows of earlier stages.`));
}

/** A stage must start from one that is written before it; if the starts lead round in a circle, that is said instead. */
function cycleProblems(raw: RawPipeline): PipelineProblem[] {
  const ids = raw.stages.map((stage) => stage.id);
  const reported = new Set<string>();
  return raw.stages.flatMap((stage, index) => {
    const parent = parentOf(raw, index);
    if (parent === null || ids.indexOf(parent) < index) return [];
    const pointer = pointerOf("stages", index, "from");
    const path = [stage.id];
    for (let next: string | null = parent; next !== null && ids.includes(next) && !path.includes(next); next = parentOf(raw, ids.indexOf(next))) path.push(next);
    const closing = parentOf(raw, ids.indexOf(path.at(-1) as string));
    if (closing !== stage.id) return [problem(pointer, "later-stage", `Stage "${stage.id}" starts from "${parent}", which comes later: move "${parent}" before it.`)];
    const key = [...path].sort().join(" ");
    if (reported.has(key)) return [];
    reported.add(key);
    return [problem(pointer, "cycle", `The stages start from each other in a circle: ${[...path, stage.id].join(" ← ")}. Let one of them start from "base".`)];
  });
}

function bufferProblems(raw: RawPipeline): PipelineProblem[] {
  const ids = raw.stages.map((stage) => stage.id);
  const skills = Object.keys(raw.skills);
  return Object.entries(raw.buffers ?? {}).flatMap(([name, buffer]) => buffer.from.flatMap((id, index) => {
    const pointer = pointerOf("buffers", name, "from", index);
    if (!ids.includes(id)) return [problem(pointer, "unknown-stage", `Buffer "${name}" draws from "${id}", which is no stage.${didYouMean(id, ids)} Stages: ${ids.join(", ")}.`)];
    if (buffer.quality === undefined || !("check" in buffer.quality) || skills.includes(id)) return [];
    return [problem(pointer, "missing-skill", `Buffer "${name}" keeps rows that pass their skill's check, but there is no skill "${id}" for stage "${id}".${didYouMean(id, skills)} Add the skill, or use "quality: { reward: … }".`)];
  }));
}
