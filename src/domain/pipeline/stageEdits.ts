import { isMap, isSeq, type Node } from "yaml";
import { t } from "../../util/l10n.ts";
import type { Split } from "../../protocol/runSpec.ts";
import type { Buffer, Pipeline, Stage } from "./pipelineModel.ts";
import { applyChanges, columnOf, endOf, flowMap, lineEnd, mapAt, newline, scalarIn, setKey, type TextChange } from "./yamlEdits.ts";

/** A change of `seesaw.yaml` that answers a flag, worded for the person who may choose it. Nothing is run by it. */
export interface StageEdit {
  kind: "replay" | "rate" | "checks" | "fork" | "save";
  title: string;
  changes: TextChange[];
}

/** What a flag was raised on. */
export interface FlaggedStage {
  stage: string;
  skill: string;
  split: Split;
  /** Lines of the probes that moved most; empty where that is not known. */
  moved: readonly number[];
  /** The step at which it was raised. */
  step: number;
  /** The run's newest checkpoint of which every look before it was calm; null when none was saved. */
  goodStep: number | null;
}

/** Recipes whose batches can hold rows of a buffer. */
const mixing: ReadonlySet<string> = new Set(["sft", "experts", "self-distill", "oracle-sft"]);
const newRatio = 0.1;
const newRows = 200;
const mostRatio = 0.5;
/** As the schema has it. */
const mostLines = 64;

/** The edits that can be made for a flagged stage, most direct first. `text` is the file as it is being edited. */
export function stageEdits(text: string, pipeline: Pipeline, flagged: FlaggedStage): StageEdit[] {
  const stage = pipeline.stages.find(({ id }) => id === flagged.stage);
  if (stage === undefined) return [];
  return [replayEdit(text, pipeline, stage, flagged), rateEdit(text, stage), checksEdit(text, stage), forkEdit(text, pipeline, stage, flagged) ?? saveEdit(text, stage)].filter((edit) => edit !== null);
}

/**
 * Mixes in rows of the stage that taught the skill: through the buffer that the stage has, one that fits, or a new one. Where
 * rows are added to a buffer, those nearest to the moved probes come first.
 */
function replayEdit(text: string, pipeline: Pipeline, stage: Stage, flagged: FlaggedStage): StageEdit | null {
  const { skills, stages, buffers } = pipeline;
  const { skill } = flagged;
  const source = stages.find(({ id }) => id === skill);
  const place = mapAt(text, ["stages", stage.index - 1]);
  if (source === undefined || source.data === null || source.index >= stage.index || !mixing.has(stage.recipe) || place === null) return null;
  if (stage.replay !== null) {
    const buffer = buffers.find(({ id }) => id === stage.replay?.buffer);
    const block = mapAt(text, ["buffers", stage.replay.buffer]);
    const replay = mapAt(text, ["stages", stage.index - 1, "replay"]);
    if (buffer === undefined || block === null || replay === null) return null;
    const changes: TextChange[] = [];
    const ratio = Math.min(mostRatio, round(stage.replay.ratio * 2));
    if (ratio > stage.replay.ratio) changes.push(setKey(replay, "ratio", String(ratio)));
    const rows = buffer.rows + newRows;
    if (buffer.quotas != null) {
      const quotas = mapAt(text, ["buffers", buffer.id, "quotas"]);
      if (quotas === null) return null;
      changes.push(setKey(quotas, skill, String((buffer.quotas[skill] ?? 0) + newRows)));
      if (scalarIn(block, "rows") !== null) changes.push(setKey(block, "rows", String(rows)));
    } else changes.push(setKey(block, "rows", String(rows)));
    if (!buffer.from.includes(skill)) changes.push(setKey(block, "from", `[${[...buffer.from, skill].join(", ")}]`));
    const near = nearBlock(text, pipeline, flagged, buffer);
    if (near !== null) changes.push(setKey(block, "near", near));
    const title = near === null ? t("Replay {0} more rows of {1} in {2}, at ratio {3}", newRows, skill, stage.id, ratio) : t("Replay {0} more rows of {1} in {2}, at ratio {3}, first those nearest to what moved", newRows, skill, stage.id, ratio);
    return { kind: "replay", title, changes: joined(changes) };
  }
  const fitting = buffers.find(({ from }) => from.includes(skill) && from.every((id) => (stages.find((one) => one.id === id)?.index ?? Infinity) < stage.index));
  const name = fitting?.id ?? freeName(skill, buffers.map(({ id }) => id));
  const changes = [setKey(place, "replay", flowMap({ buffer: name, ratio: newRatio }))];
  const near = fitting === undefined ? nearBlock(text, pipeline, flagged, null) : null;
  if (fitting === undefined) {
    const checked = skills.some(({ id }) => id === skill);
    const block = flowMap({ from: `[${skill}]`, rows: newRows, ...(checked && { quality: flowMap({ check: true }) }), diversity: "minhash", ...(near !== null && { near }) });
    const all = mapAt(text, ["buffers"]);
    const root = mapAt(text, []);
    if (all === null && (buffers.length > 0 || root === null)) return null;
    const changed = all !== null ? setKey(all, name, block) : setKey(root as NonNullable<typeof root>, "buffers", flowMap({ [name]: block }));
    changes.push(changed);
  }
  const rows = fitting?.rows ?? newRows;
  const title = near === null ? t("Replay {0} rows of {1} in {2}, at ratio {3}", rows, skill, stage.id, newRatio) : t("Replay {0} rows of {1} in {2}, at ratio {3}, first those nearest to what moved", rows, skill, stage.id, newRatio);
  return { kind: "replay", title, changes };
}

/** `near` of a buffer, with what it names already; null where no probe is known to have moved, or it names rows of another file. */
function nearBlock(text: string, { skills }: Pipeline, { skill, split, moved }: FlaggedStage, buffer: Buffer | null): string | null {
  const probes = skills.find(({ id }) => id === skill)?.probes[split];
  const named = buffer?.near ?? null;
  if (probes === undefined || moved.length === 0 || (named !== null && named.rows !== probes)) return null;
  const place = mapAt(text, ["skills", skill]);
  const written = place === null ? null : scalarIn(place, split === "id" ? "probes" : "ood");
  const lines = [...new Set([...moved, ...(named?.lines ?? [])])].slice(0, mostLines).sort((a, b) => a - b);
  return flowMap({ rows: quoted(typeof written?.value === "string" ? written.value : probes), lines: `[${lines.join(", ")}]` });
}

/** A path as YAML, in quotes unless it needs none anywhere. */
function quoted(path: string): string {
  return /^[\w.-][\w./-]*\.[A-Za-z]{2,}$/.test(path) ? path : JSON.stringify(path);
}

/** Insertions at the same place as one: which of two comes first is not the same everywhere. */
function joined(changes: readonly TextChange[]): TextChange[] {
  const result: TextChange[] = [];
  for (const change of changes) {
    const same = result.find(({ offset, length }) => length === 0 && change.length === 0 && offset === change.offset);
    if (same === undefined) result.push({ ...change });
    else same.text += change.text;
  }
  return result;
}

function rateEdit(text: string, stage: Stage): StageEdit | null {
  const args = mapAt(text, ["stages", stage.index - 1, "args"]);
  const scalar = args === null ? null : scalarIn(args, "learning_rate");
  const rate = Number(scalar?.value);
  if (args === null || scalar === null || !(rate > 0)) return null;
  const written = text.slice(scalar.range[0], scalar.range[1]);
  const half = /e/i.test(written) ? scientific(rate / 2) : String(round(rate / 2));
  return { kind: "rate", title: t("Halve the learning rate of {0}: {1}", stage.id, half), changes: [setKey(args, "learning_rate", half)] };
}

/** The check confirms a flag where it is raised; between flags it runs only where it is asked to. */
function checksEdit(text: string, stage: Stage): StageEdit | null {
  const place = mapAt(text, ["stages", stage.index - 1]);
  const { every, eval_every: now } = stage.probe;
  if (place === null || JSON.stringify(every) === JSON.stringify(now)) return null;
  if (every === null) return null; // about 20 looks: generating all answers at each of them is another matter
  const value = Array.isArray(every) ? `[${every.join(", ")}]` : String(every);
  return { kind: "checks", title: t("Run the checks of {0} at every look (eval_every: {1})", stage.id, value), changes: [setKey(place, "eval_every", value)] };
}

/** The stage once more, at the end of the chain, from the last checkpoint before the flag. */
function forkEdit(text: string, { stages }: Pipeline, stage: Stage, { goodStep, skill, step }: FlaggedStage): StageEdit | null {
  const root = mapAt(text, []);
  const list = root?.map.get("stages", true) as Node | undefined;
  if (goodStep === null || !isSeq(list) || list.flow === true) return null;
  const item = list.items[stage.index - 1];
  const last = list.items.at(-1) as Node | undefined;
  if (!isMap(item) || !item.range || last === undefined) return null;
  const name = freeName(stage.id, stages.map(({ id }) => id), "-fork");
  const copy = text.slice(item.range[0], item.flow === true ? item.range[1] : lineEnd(text, endOf(item as Node, text)));
  const [lead, column] = [newline(text), columnOf(text, item.range[0])];
  // The copy is read by itself, so that only its own two values change.
  const alone = " ".repeat(column) + copy;
  const place = mapAt(alone, []);
  if (place === null || scalarIn(place, "id") === null) return null;
  const forked = applyChanges(alone, [setKey(place, "id", name), setKey(place, "from", `${stage.id}@${goodStep}`)]).slice(column);
  const dash = " ".repeat(Math.max(0, column - 2));
  const comment = `${dash}# ${t("{0} once more from its checkpoint at step {1}, before {2} was flagged at step {3}: change here what should go better.", stage.id, goodStep, skill, step)}`;
  const offset = lineEnd(text, endOf(last, text));
  return { kind: "fork", title: t("Fork {0} from its checkpoint at step {1}, as a new stage {2}", stage.id, goodStep, name), changes: [{ offset, length: 0, text: `${lead}${lead}${comment}${lead}${dash}- ${forked}` }] };
}

/** Without checkpoints between there is nothing to fork from. */
function saveEdit(text: string, stage: Stage): StageEdit | null {
  const place = mapAt(text, ["stages", stage.index - 1]);
  const { every } = stage.probe;
  if (place === null || stage.save_every !== null || typeof every !== "number") return null;
  return { kind: "save", title: t("Keep a checkpoint of {0} every {1} steps, to fork from", stage.id, every), changes: [setKey(place, "save_every", String(every))] };
}

function freeName(name: string, taken: readonly string[], ending = ""): string {
  const lower = new Set(taken.map((one) => one.toLowerCase()));
  for (let count = 1; ; count += 1) {
    const tried = `${name}${ending}${count === 1 ? "" : String(count)}`;
    if (!lower.has(tried.toLowerCase())) return tried;
  }
}

/** As the sample writes it: `5.0e-4`. */
function scientific(value: number): string {
  const [digits = "", exponent = ""] = value.toExponential().split("e");
  return `${digits.includes(".") ? digits.slice(0, 8) : `${digits}.0`}e${exponent.replace("+", "")}`;
}

function round(value: number): number {
  return Number(value.toPrecision(6));
}
