import { t } from "../../util/l10n.ts";
import type { RawBuffer, RawPipeline, RawStage } from "./pipelineDefaults.ts";
import type { SchemaProblem } from "./pipelineSchema.ts";
import { didYouMean } from "../../util/nearest.ts";
import { parentOf, rewardModelOf, startName } from "./pipelineDefaults.ts";
import { referencesOf, referenceTarget } from "./stageOptions.ts";
import { targetProblems } from "./targetChecks.ts";
import { pointerOf } from "./yamlSource.ts";

/** What the schema cannot say: names that refer to each other, and names that have to be folder names. */
export type PipelineProblem = SchemaProblem & { severity?: "warning" };

/** Checks a file that fits the schema. */
export function pipelineChecks(raw: RawPipeline): PipelineProblem[] {
  return [...nameProblems(raw), ...raw.stages.flatMap((stage, index) => stageProblems(raw, stage, index)), ...cycleProblems(raw), ...bufferProblems(raw), ...unitProblems(raw), ...targetProblems(raw)];
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
    if (windowsReserved.test(id)) problems.push(problem(pointer, "reserved-name", t("\"{0}\" is a device on Windows, where no folder can have this name: choose another name for the {1}.", id, kindWord(kind)), part));
    const other = seen.get(`${kind} ${id.toLowerCase()}`);
    if (other === id) problems.push(problem(pointer, "duplicate-id", t("There are two {0} with the id \"{1}\": give one of them another id.", kindWords(kind), id), part));
    else if (other !== undefined) problems.push(problem(pointer, "duplicate-id", t("The {0} \"{1}\" and \"{2}\" differ only in upper and lower case, and would share folders on Windows and macOS: rename one.", kindWords(kind), other, id), part));
    else seen.set(`${kind} ${id.toLowerCase()}`, id);
    if (kind === "stage" && id === "base") problems.push(problem(pointer, "reserved-name", t("\"base\" means the base model in \"from\": choose another id for the stage.")));
  }
  return problems;
}

/** What a kind of name is called: one of them, and several. */
function kindWord(kind: string): string {
  return kind === "stage" ? t("stage") : kind === "skill" ? t("skill") : kind === "buffer" ? t("buffer") : t("target");
}

function kindWords(kind: string): string {
  return kind === "stage" ? t("stages") : kind === "skill" ? t("skills") : kind === "buffer" ? t("buffers") : t("targets");
}

function laterWords(stage: string, own: string): string {
  return stage === own ? t("the stage itself") : t("the later stage \"{0}\"", stage);
}

/** Names of variables whose values are usually secret. */
const secretName = /(token|secret|password|passwd|api_?key|credential)/i;

function stageProblems(raw: RawPipeline, stage: RawStage, index: number): PipelineProblem[] {
  const problems: PipelineProblem[] = [];
  const at = (...segments: string[]): string => pointerOf("stages", index, ...segments);
  const ids = raw.stages.map((other) => other.id);
  if (stage.from !== undefined && stage.from !== "base" && !ids.includes(startName(stage.from).stage)) {
    problems.push(problem(at("from"), "unknown-stage", t("Stage \"{0}\" starts from \"{1}\", which is no stage.{2} Stages: {3}; \"base\" is the base model.", stage.id, stage.from, didYouMean(stage.from, [...ids, "base"]), ids.join(", "))));
  }
  const parent = raw.stages.find(({ id }) => id === parentOf(raw, index));
  if (parent?.recipe === "router") problems.push(problem(at(stage.from === undefined ? "id" : "from"), "bad-start", t("Stage \"{0}\" starts from \"{1}\", a router over several experts, which is no model to train: write \"from: base\", or name another stage.", stage.id, parent.id)));
  const targets = ["local", ...Object.keys(raw.targets ?? {})];
  if (stage.on !== undefined && !targets.includes(stage.on)) {
    problems.push(problem(at("on"), "unknown-target", t("Stage \"{0}\" runs on \"{1}\", which is not under \"targets\".{2} Targets: {3}.", stage.id, stage.on, didYouMean(stage.on, targets), [...new Set(targets)].join(", "))));
  }
  if (stage.replay !== undefined) problems.push(...replayProblems(raw, stage, index, stage.replay.buffer, at("replay", "buffer")));
  if (stage.recipe === "replay") problems.push(...replayProblems(raw, stage, index, String(stage.options?.["buffer"] ?? ""), at("options", "buffer")));
  problems.push(...optionProblems(raw, stage, index));
  if ((stage.launch?.kind ?? "python") === "python") {
    if ((stage.launch?.processes ?? 1) > 1) problems.push(problem(at("launch", "processes"), "bad-value", t("Stage \"{0}\" asks for {1} processes of one Python: write \"kind: torchrun\".", stage.id, stage.launch?.processes ?? 1)));
    if (stage.launch?.args !== undefined) problems.push(problem(at("launch", "args"), "bad-value", t("Stage \"{0}\" has words for a launcher, but one Python needs none: write \"kind: torchrun\", or remove \"args\".", stage.id)));
  }
  if (stage.launch?.config !== undefined && stage.launch.kind !== "accelerate") {
    problems.push(problem(at("launch", "config"), "bad-value", t("Stage \"{0}\" has a configuration for accelerate, but is started by {1}: write \"kind: accelerate\", or remove \"config\".", stage.id, stage.launch.kind)));
  }
  for (const name of ["args", "options", "adapter", "env"] as const) {
    for (const pointer of nonFinite(stage[name], at(name))) problems.push(problem(pointer, "bad-value", t("An argument cannot be infinite or NaN: run.json has to hold it.")));
  }
  for (const name of Object.keys(stage.env ?? {})) {
    if (secretName.test(name)) problems.push({ ...problem(at("env", name), "secret", t("{0} looks like a secret. This file and run.json keep it readable: set it in the environment that starts Seesaw instead.", name), "key"), severity: "warning" });
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
    if (target === null) return [problem(at(pointer), "unknown-stage", t("Stage \"{0}\" names the checkpoint \"{1}\", which is no stage.{2} Write a stage's id, \"base\", or the path of a folder (./{1}).", stage.id, name, didYouMean(name, [...ids, "base"])))];
    if (target.kind !== "stage") return [];
    if (raw.stages.some(({ id, recipe }) => id === target.stage && recipe === "router")) {
      return [problem(at(pointer), "bad-start", t("Stage \"{0}\" uses \"{1}\" as a model, but that is a router over several experts, which is none: name one of its experts.", stage.id, name))];
    }
    if (ids.indexOf(target.stage) < index) return [];
    return [problem(at(pointer), "later-stage", t("Stage \"{0}\" uses the checkpoint of {1}: move \"{2}\" before it.", stage.id, laterWords(target.stage, stage.id), target.stage))];
  });
  const named = (value: unknown, ...path: string[]): void => {
    if (typeof value !== "string" || skills.includes(value)) return;
    problems.push(problem(at(pointerOf("options", ...path)), "missing-skill", t("Stage \"{0}\" names the skill \"{1}\", which is not under \"skills\".{2} Skills: {3}.", stage.id, value, didYouMean(value, skills), skills.join(", "))));
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
    const known = buffers.length === 0 ? t("There are none: add \"buffers: { {0}: { from: [{1}], rows: 200 } }\".", name, raw.stages[0]?.id ?? "") : t("Buffers: {0}.", buffers.join(", "));
    return [problem(pointer, "unknown-buffer", t("Stage \"{0}\" replays from \"{1}\", which is not under \"buffers\".{2} {3}", stage.id, name, didYouMean(name, buffers), known))];
  }
  const later = buffer.from.filter((id) => raw.stages.findIndex((other) => other.id === id) >= index);
  const ids = raw.stages.map((other) => other.id);
  const judge = referenceTarget(rewardModelOf(buffer) ?? "base", ids, "/");
  if (judge?.kind === "stage" && ids.indexOf(judge.stage) >= index) {
    return [problem(pointer, "later-stage", t("Stage \"{0}\" replays from \"{1}\", whose reward model is the checkpoint of {2}: use one that is there before.", stage.id, name, laterWords(judge.stage, stage.id)))];
  }
  return later.map((id) => problem(pointer, "later-stage", t("Stage \"{0}\" replays from \"{1}\", which draws from {2}: a buffer can only hold rows of earlier stages.", stage.id, name, laterWords(id, stage.id))));
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
    if (closing !== stage.id) return [problem(pointer, "later-stage", t("Stage \"{0}\" starts from \"{1}\", which comes later: move \"{1}\" before it.", stage.id, parent))];
    const key = [...path].sort().join(" ");
    if (reported.has(key)) return [];
    reported.add(key);
    return [problem(pointer, "cycle", t("The stages start from each other in a circle: {0}. Let one of them start from \"base\".", [...path, stage.id].join(" ← ")))];
  });
}

function bufferProblems(raw: RawPipeline): PipelineProblem[] {
  const ids = raw.stages.map((stage) => stage.id);
  const skills = Object.keys(raw.skills);
  return Object.entries(raw.buffers ?? {}).flatMap(([name, buffer]) => [...shareProblems(name, buffer), ...judgeProblems(name, buffer, ids), ...buffer.from.flatMap((id, index) => {
    const pointer = pointerOf("buffers", name, "from", index);
    if (!ids.includes(id)) return [problem(pointer, "unknown-stage", t("Buffer \"{0}\" draws from \"{1}\", which is no stage.{2} Stages: {3}.", name, id, didYouMean(id, ids), ids.join(", ")))];
    if (buffer.quality === undefined || !("check" in buffer.quality) || skills.includes(id)) return [];
    return [problem(pointer, "missing-skill", t("Buffer \"{0}\" keeps rows that pass their skill's check, but there is no skill \"{1}\" for stage \"{1}\".{2} Add the skill, or use \"quality: { reward: … }\".", name, id, didYouMean(id, skills)))];
  })]);
}

/** `quotas` has a number for each stage of `from` and no other, and they fit into `rows`. */
function shareProblems(name: string, { from, rows, quotas }: RawBuffer): PipelineProblem[] {
  if (quotas === undefined) return [];
  const problems = Object.keys(quotas).filter((id) => !from.includes(id)).map((id) => problem(pointerOf("buffers", name, "quotas", id), "unknown-stage", t("Buffer \"{0}\" has a quota for \"{1}\", which is not among the stages it draws from.{2} Stages: {3}.", name, id, didYouMean(id, from), from.join(", ")), "key"));
  const without = from.filter((id) => quotas[id] === undefined);
  if (without.length > 0) problems.push(problem(pointerOf("buffers", name, "quotas"), "missing-key", t("Buffer \"{0}\" has quotas, but none for {1}: say how many rows of it there should be (0: none).", name, without.join(", ")), "key"));
  const total = Object.values(quotas).reduce((sum, share) => sum + share, 0);
  if (rows !== undefined && total > rows) problems.push(problem(pointerOf("buffers", name, "rows"), "bad-value", t("The quotas of buffer \"{0}\" add up to {1} rows, but it holds {2}: raise \"rows\" or leave it out.", name, total, rows)));
  if (total === 0) problems.push(problem(pointerOf("buffers", name, "quotas"), "bad-value", t("The quotas of buffer \"{0}\" are all 0: it would be empty.", name)));
  return problems;
}

/** Before the detectors, `tolerance` was a rise of the likelihood in nats: a number below 1 was written then. */
function unitProblems({ flags }: RawPipeline): PipelineProblem[] {
  const { tolerance } = flags ?? {};
  if (tolerance === undefined || tolerance <= 0 || tolerance >= 1) return [];
  return [{ ...problem(pointerOf("flags", "tolerance"), "old-unit", t("The tolerance of flags is in points of accuracy now, so {0} is less than one point: write 2 for two points, or, for what it meant before, \"detector: nll\" and \"tolerance_nats: {0}\".", tolerance)), severity: "warning" }];
}

function judgeProblems(name: string, buffer: RawBuffer, ids: string[]): PipelineProblem[] {
  const judge = rewardModelOf(buffer);
  if (judge === null || referenceTarget(judge, ids, "/") !== null) return [];
  return [problem(pointerOf("buffers", name, "quality", "reward_model"), "unknown-stage", t("The reward model \"{1}\" of buffer \"{0}\" is no stage.{2} Write a stage's id, or the path of a folder (./{1}).", name, judge, didYouMean(judge, ids)))];
}
