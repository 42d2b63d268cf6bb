import { t } from "../../util/l10n.ts";
import type { Diagnostic, Pipeline, SourceRange } from "./pipelineModel.ts";
import type { PipelineProblem } from "./pipelineChecks.ts";
import type { RemoteKind } from "../../protocol/remote.ts";
import type { RawPipeline } from "./pipelineDefaults.ts";
import { pipelineChecks } from "./pipelineChecks.ts";
import { fillIn } from "./pipelineDefaults.ts";
import { schemaProblems } from "./pipelineSchema.ts";
import { stageEdits, type FlaggedStage, type StageEdit } from "./stageEdits.ts";
import { targetEdit, type TargetEdit } from "./targetEdit.ts";
import { pointerOf, readYaml, type YamlSource } from "./yamlSource.ts";

export interface ParsedPipeline {
  /** null when there are errors; warnings do not matter. */
  pipeline: Pipeline | null;
  /** In the order of the file. */
  diagnostics: Diagnostic[];
}

/** Reads and checks a `seesaw.yaml`. `file` is its absolute path; nothing on disk is looked at. */
export function parsePipeline(text: string, file: string): ParsedPipeline {
  const source = readYaml(text);
  const diagnostics: Diagnostic[] = source.problems.map((one) => ({ ...one, file }));
  const add = (one: PipelineProblem): void => {
    diagnostics.push({ severity: one.severity ?? "error", code: one.code, message: one.message.trim(), file, range: source.rangeOf(one.pointer, one.part) });
  };
  const hasErrors = (): boolean => diagnostics.some((one) => one.severity === "error");
  if (!hasErrors() && (typeof source.value !== "object" || source.value === null || Array.isArray(source.value))) {
    const message = source.value === null || source.value === undefined ? t("The file is empty: start with \"seesaw: 1\", a base model, skills and stages.") : t("The file must be a block of keys: seesaw, base, skills, stages.");
    add({ pointer: "", part: "value", code: "wrong-type", message });
  }
  if (!hasErrors()) schemaProblems(source.value).forEach(add);
  if (!hasErrors()) pipelineChecks(source.value as RawPipeline).forEach(add);
  diagnostics.sort((a, b) => a.range.line - b.range.line || a.range.column - b.range.column);
  if (hasErrors()) return { pipeline: null, diagnostics };
  const pipeline = fillIn(source.value as RawPipeline, file, (pointer, part) => source.rangeOf(pointer, part));
  return { pipeline: { ...pipeline, ranges: rangesOf(source) }, diagnostics };
}

/** What can be changed in a `seesaw.yaml` about a flag; `text` is the file as it is being edited. Nothing where it has errors. */
export function flagEdits(text: string, file: string, flagged: FlaggedStage): StageEdit[] {
  const { pipeline } = parsePipeline(text, file);
  return pipeline === null ? [] : stageEdits(text, pipeline, flagged);
}

/** What adds a target of this kind to a `seesaw.yaml`, to be filled in by the person; null where the file has errors. */
export function newTargetEdit(text: string, kind: RemoteKind): TargetEdit | null {
  return targetEdit(text, kind);
}

/**
 * Files of the pipeline that are not there, as diagnostics at the place that names them.
 * `exists` says whether there is a file or folder at an absolute path.
 */
export function pipelineFileProblems(pipeline: Pipeline, exists: (path: string) => boolean): Diagnostic[] {
  const start: SourceRange = { line: 1, column: 1, endLine: 1, endColumn: 1 };
  const named: { path: string; what: string; fix: string; pointer: string; range: SourceRange }[] = [
    { path: pipeline.base, what: t("The base model"), fix: t("Put a Hugging Face folder with config.json and *.safetensors there, or change \"base\"."), pointer: "/base", range: start },
  ];
  for (const skill of pipeline.skills) {
    const at = (...rest: string[]): string => pointerOf("skills", skill.id, ...rest);
    const fix = t("Correct the path, or create the file.");
    named.push({ path: skill.probes.id, what: t("The probe file of skill \"{0}\"", skill.id), fix, pointer: at("probes"), range: skill.range });
    if (skill.probes.ood !== undefined) named.push({ path: skill.probes.ood, what: t("The OOD probe file of skill \"{0}\"", skill.id), fix, pointer: at("ood"), range: skill.range });
    if (skill.check.kind === "function" && skill.check.path !== undefined) named.push({ path: skill.check.path, what: t("The folder of the check function of skill \"{0}\"", skill.id), fix, pointer: at("check", "path"), range: skill.range });
  }
  for (const stage of pipeline.stages) {
    if (stage.data !== null) named.push({ path: stage.data, what: t("The data of stage \"{0}\"", stage.id), fix: t("Correct the path, or create the file."), pointer: pointerOf("stages", stage.index - 1, "data"), range: stage.range });
  }
  for (const { id, near, range } of pipeline.buffers) {
    if (near != null) named.push({ path: near.rows, what: t("The file whose rows \"near\" of buffer \"{0}\" names", id), fix: t("Correct the path, or create the file."), pointer: pointerOf("buffers", id, "near", "rows"), range });
  }
  const tasks = pipeline.benchmark?.include_path ?? null;
  if (tasks !== null) named.push({ path: tasks, what: t("The folder of benchmark tasks"), fix: t("Correct the path, or create the folder."), pointer: pointerOf("benchmark", "include_path"), range: start });
  for (const target of pipeline.targets) {
    if (target.kind !== "local" || target.python === null || !/[\\/]/.test(target.python) || target.python.startsWith("~")) continue;
    named.push({ path: target.python, what: t("The Python of target \"{0}\"", target.id), fix: t("Create that environment, or change \"python\"."), pointer: pointerOf("targets", target.id, "python"), range: start });
  }
  return named.filter(({ path }) => !exists(path)).map(({ path, what, fix, pointer, range }) => ({
    severity: "error", code: "missing-file", message: `${t("{0} is not there: {1}.", what, path)} ${fix}`, file: pipeline.file, range: pipeline.ranges?.[pointer] ?? range,
  }));
}

/** The place of every value of the file. */
function rangesOf(source: YamlSource): Record<string, SourceRange> {
  const ranges: Record<string, SourceRange> = {};
  const visit = (value: unknown, pointer: string): void => {
    ranges[pointer] = source.rangeOf(pointer);
    if (typeof value !== "object" || value === null) return;
    for (const [key, item] of Object.entries(value)) visit(item, pointer + pointerOf(key));
  };
  visit(source.value, "");
  return ranges;
}
