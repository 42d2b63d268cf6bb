import { readFile } from "node:fs/promises";
import { existsSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Diagnostic, Pipeline } from "../domain/pipeline/pipelineModel.ts";
import { AppError } from "../util/errors.ts";
import { t } from "../util/l10n.ts";
import { systemWords } from "./local.ts";
import { parsePipeline, pipelineFileProblems } from "../domain/pipeline/pipeline.ts";

export const pipelineFileName = "seesaw.yaml";

export interface LoadedPipeline {
  file: string;
  text: string;
  /** null when the file has errors that leave nothing to work with. */
  pipeline: Pipeline | null;
  diagnostics: Diagnostic[];
}

/** The file a command works on: the one named (a folder means the seesaw.yaml in it), else the nearest one upwards. */
export function findPipelineFile(cwd: string, named?: string): string {
  if (named !== undefined) {
    const path = resolve(cwd, named);
    if (!existsSync(path)) throw new AppError("not-found", t("{0} does not exist: give the path of a seesaw.yaml, or make one with `seesaw init`.", path));
    return statSync(path).isDirectory() ? findIn(path) : path;
  }
  for (let folder = resolve(cwd); ; folder = dirname(folder)) {
    if (existsSync(join(folder, pipelineFileName))) return join(folder, pipelineFileName);
    if (dirname(folder) === folder) break;
  }
  throw new AppError("not-found", t("There is no {0} in {1} or above it: make one with `seesaw init`, or name one with --file.", pipelineFileName, resolve(cwd)));
}

function findIn(folder: string): string {
  const path = join(folder, pipelineFileName);
  if (existsSync(path)) return path;
  throw new AppError("not-found", t("There is no {0} in {1}: make one with `seesaw init`.", pipelineFileName, folder));
}

/** Reads and checks a pipeline as it is on disk. `files`: also whether the files it names are there. */
export async function loadPipeline(file: string, { files = false } = {}): Promise<LoadedPipeline> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    throw new AppError("not-found", t("{0} could not be read: {1}.", file, systemWords(error as NodeJS.ErrnoException)), { cause: error });
  }
  return checkedPipeline(text, file, { files });
}

/** Checks a pipeline that need not be on disk as `file`. */
export function checkedPipeline(text: string, file: string, { files = false } = {}): LoadedPipeline {
  const { pipeline, diagnostics } = parsePipeline(text, file);
  const missing = files && pipeline !== null ? pipelineFileProblems(pipeline, existsSync) : [];
  return { file, text, pipeline, diagnostics: [...diagnostics, ...missing] };
}

/** The pipeline, or AppError("bad-pipeline") that lists its errors with line and column. */
export function requirePipeline({ file, pipeline, diagnostics }: LoadedPipeline): Pipeline {
  const errors = diagnostics.filter(({ severity }) => severity === "error");
  if (pipeline !== null && errors.length === 0) return pipeline;
  const lines = errors.map((problem) => `${problem.file}:${problem.range.line}:${problem.range.column}: ${problem.message}`);
  throw new AppError("bad-pipeline", lines.join("\n") || t("{0} is no pipeline.", file));
}

/** AppError("bad-pipeline") that lists the errors with line and column, where there are any. */
export function mustBeValid(diagnostics: readonly Diagnostic[]): void {
  const errors = diagnostics.filter((diagnostic) => diagnostic.severity === "error");
  if (errors.length === 0) return;
  const lines = errors.map(({ file, range, message }) => `${file}:${range.line}:${range.column}: ${message}`);
  throw new AppError("bad-pipeline", lines.join("\n"));
}
