import { Option, type Command } from "commander";
import { benchmarkSets } from "../domain/evaluation/benchmarkChange.ts";
import { chainSystem } from "../domain/evaluation/chainSystem.ts";
import { compareSystems, type Comparison } from "../domain/evaluation/compareSystems.ts";
import { evaluateSystem, type Evaluation } from "../domain/evaluation/evaluateSystem.ts";
import type { EvaluatedSystem } from "../domain/evaluation/evaluatedSystem.ts";
import type { EvaluationRow } from "../domain/evaluation/evaluationRow.ts";
import { evaluationCsv } from "../domain/evaluation/evaluationCsv.ts";
import { dropText, estimateText, intervalText, measureName, questionTitle, rowSubject, tableNotes, verdictOf } from "../domain/evaluation/evaluationText.ts";
import { formatNumber, formatPercent, formatPlural } from "../domain/format.ts";
import type { Pipeline } from "../domain/pipeline/pipelineModel.ts";
import type { Correction } from "../domain/statistics/corrections.ts";
import { readRoutes } from "../storage/runs/routerRoutes.ts";
import { findPipelineFile, loadPipeline, requirePipeline } from "../targets/pipelineFile.ts";
import { AppError } from "../util/errors.ts";
import { readChainBenchmarks } from "./benchmarkData.ts";
import { noteUnreadable, readScores } from "./chainData.ts";
import type { CommandContext, ContextOf } from "./context.ts";
import { table, type Output } from "./output.ts";
import { probeGroups } from "../storage/rows/probeGroups.ts";

interface CompareOptions {
  end?: string;
  correction: Correction;
  csv?: boolean;
}

const help = `
What it answers: are the old skills kept, was the new one learned, does it hold on OOD prompts, does a router pick the
right expert; with backward and forward transfer, the seesaw index of each stage, and the churn beneath the totals.
Every difference is paired by prompt. "p*" is corrected for all tests of the table; "sees" is the smallest drop in
points that a row would show four times in five; "not shown" does not mean that there is none.

Examples:
  seesaw compare                                  the chain of this pipeline
  seesaw compare replay/seesaw.yaml               and another chain against it, prompt by prompt
  seesaw compare seed1/seesaw.yaml seed2/seesaw.yaml   files with one \`name\` and unlike seeds count as one system
  seesaw compare --csv > table.csv
  seesaw compare --json | jq '.systems[].rows[] | select(.question == "retention")'`;

export function addCompare(program: Command, contextOf: ContextOf): void {
  program
    .command("compare")
    .argument("[pipelines...]", "more seesaw.yaml files (or their folders), compared with this one")
    .description("what a chain kept, learned and lost, with intervals, corrected tests, and what the prompts cannot show")
    .option("--end <checkpoint>", "the checkpoint to judge, e.g. M3 (default: the last one that there is)")
    .addOption(new Option("--correction <method>", "for the number of tests: of any false finding, or of the share of false ones").choices(["holm", "benjamini-hochberg"]).default("holm"))
    .option("--csv", "the table as CSV on stdout; shares and differences as fractions")
    .addHelpText("after", help)
    .action(async (named: string[], options: CompareOptions, command: Command) => {
      const context = contextOf(command);
      if (options.csv === true && context.json) throw new AppError("usage", "Give either --csv or --json, not both.");
      const pipelines = [await context.pipeline()];
      for (const name of named) pipelines.push(requirePipeline(await loadPipeline(findPipelineFile(context.cwd, name))));
      const twice = pipelines.find(({ file }, index) => pipelines.findIndex((other) => other.file === file) !== index);
      if (twice !== undefined) throw new AppError("usage", `${twice.file} is given twice: name other pipelines than the one that is compared.`);
      const systems: EvaluatedSystem[] = [];
      for (const pipeline of pipelines) systems.push(await systemOf(context, pipeline, options.end));
      const byName = [...new Map(systems.map(({ name }) => [name, systems.filter((one) => one.name === name)])).values()];
      const evaluations = byName.map((seeds) => evaluateSystem(seeds, options));
      const [baseline = [], ...others] = byName;
      const comparison = others.length === 0 ? null : compareSystems(baseline, others, options);
      if (context.json) context.out.json({ v: 1, correction: options.correction, systems: evaluations.map(({ name, seeds, rows }) => ({ name, seeds, rows: rows.map(rowJson) })), against: comparison === null ? null : { baseline: comparison.baseline, notes: comparison.notes, rows: comparison.rows.map((row) => ({ system: row.system, ...rowJson(row) })) } });
      else if (options.csv === true) process.stdout.write(compareCsv(evaluations, comparison));
      else context.out.print(compareText(evaluations, comparison, context.out));
    });
}

async function systemOf(context: CommandContext, pipeline: Pipeline, end: string | undefined): Promise<EvaluatedSystem> {
  const data = await readScores(context.services, pipeline);
  noteUnreadable(data, context.out);
  const groups = await probeGroups(pipeline, data.runs);
  const measured = await readChainBenchmarks(data.chain);
  const { system, problems } = chainSystem({ ...data, groupOf: groups.groupOf, benchmarks: benchmarkSets(measured.found) }, end);
  for (const problem of [...groups.problems, ...measured.problems, ...problems]) context.out.note(context.out.paint("yellow", problem));
  const run = data.chain.checkpoints.find(({ label }) => label === system.label)?.run ?? null;
  const routing = run === null ? null : await readRoutes(run.dir, groups.groupOf);
  if (system.results.length === 0) throw new AppError("not-found", `No check was run at ${system.label} of ${pipeline.name}: run its stage to the end, or name another checkpoint with --end.`);
  return routing === null || routing.length === 0 ? system : { ...system, routing };
}

function rowJson(of: EvaluationRow): object {
  const { tooFew, leftOut, smallestDrop, adjusted, resolution: _resolution, ...row } = of;
  return { ...row, p_adjusted: adjusted, smallest_drop: smallestDrop, left_out: leftOut, too_few: tooFew, verdict: verdictOf(of) };
}

function compareCsv(evaluations: readonly Evaluation[], comparison: Comparison | null): string {
  const against = comparison === null ? [] : [...new Set(comparison.rows.map(({ system }) => system))].map((system) => ({ system, rows: comparison.rows.filter((row) => row.system === system) }));
  return evaluationCsv([...evaluations.map(({ name: system, rows }) => ({ system, rows })), ...against]);
}

function compareText(evaluations: readonly Evaluation[], comparison: Comparison | null, out: Output): string {
  const blocks = evaluations.flatMap(({ name, seeds, rows, correction }) => [
    out.paint("bold", `${name}, ${seeds.length === 1 ? `seed ${seeds[0]}` : formatPlural(seeds.length, "seed")}`),
    ...section(rows, out),
    tableNotes(rows, seeds, correction).map((note) => out.paint("dim", note)).join("\n"),
  ]);
  if (comparison !== null) {
    for (const system of new Set(comparison.rows.map((row) => row.system))) {
      blocks.push(out.paint("bold", `${system} against ${comparison.baseline}`), ...section(comparison.rows.filter((row) => row.system === system), out));
    }
    blocks.push(...comparison.notes.map((note) => out.paint("yellow", note)));
  }
  return blocks.join("\n\n");
}

const columns = ["", "", "", "95 %", "passed", "1→0 / 0→1", "p*", "verdict", "n", "sees"];

/** One table a question; rows without an estimate give their reason below it. */
function section(rows: readonly EvaluationRow[], out: Output): string[] {
  return [...new Set(rows.map(({ question }) => question))].map((question) => {
    const own = rows.filter((row) => row.question === question);
    const shown = own.filter(({ estimate }) => estimate !== null);
    const reasons = [...new Set(own.flatMap(({ why }) => why ?? []))];
    const cells = shown.map((row) => [
      rowSubject(row), measureName(row), estimateText(row), out.paint("dim", intervalText(row)), passedText(row), row.lost === null ? "" : `${counted(row.lost)} / ${counted(row.gained)}`,
      row.p === null ? "" : pText(row), verdict(row, out), row.groups === null ? String(row.n) : `${row.n} in ${row.groups}`, dropText(row),
    ]);
    // A column that this question has no use for is left out.
    const used = columns.map((_, column) => column).filter((column) => column < 3 || cells.some((row) => row[column] !== ""));
    const right = used.flatMap((column, at) => ([2, 6, 8, 9].includes(column) ? [at] : []));
    const shownTable = cells.length === 0 ? [] : [table(used.map((column) => columns[column] ?? ""), cells.map((row) => used.map((column) => row[column] ?? "")), { right, out })];
    return [out.paint("bold", questionTitle(question)), ...shownTable, ...reasons.map((why) => out.paint("dim", why))].join("\n");
  });
}

function passedText({ from, to }: EvaluationRow): string {
  return from === null || to === null ? "" : `${from.label} ${formatPercent(from.accuracy, 0)} → ${to.label} ${formatPercent(to.accuracy, 0)}`;
}

function pText({ adjusted, p }: EvaluationRow): string {
  const value = adjusted ?? p;
  return value !== null && value < 0.001 ? "< 0.001" : formatNumber(value, 3);
}

const counted = (value: number | null): string => formatNumber(value, value !== null && Number.isInteger(Math.round(value * 1e6) / 1e6) ? 0 : 1);

function verdict(row: EvaluationRow, out: Output): string {
  const text = verdictOf(row);
  return text === "loss" ? out.paint("red", text) : text === "gain" ? out.paint("green", text) : out.paint("dim", text);
}
