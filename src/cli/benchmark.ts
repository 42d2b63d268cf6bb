import type { Command } from "commander";
import { join } from "node:path";
import { formatInterval, formatNumber, formatPercent, formatPlural, formatSigned } from "../domain/format.ts";
import { benchmarkChange, benchmarkInterval, benchmarkValue, type Benchmarked, type BenchmarkChange } from "../domain/evaluation/benchmarkChange.ts";
import type { Pipeline } from "../domain/pipeline/pipelineModel.ts";
import type { ChainCheckpoint } from "../domain/run/chain.ts";
import { adjustColumn } from "../domain/statistics/corrections.ts";
import type { BenchmarkMessage } from "../protocol/benchmark.ts";
import { benchmarkFolder } from "../storage/runs/benchmarks.ts";
import { runBenchmark, type BenchmarkFailure } from "../targets/benchmark.ts";
import { isActive } from "../targets/standing.ts";
import { requirePython } from "../targets/python.ts";
import { mustBeHere } from "../targets/remote/remoteFolder.ts";
import { didYouMean } from "../util/nearest.ts";
import { AppError } from "../util/errors.ts";
import { benchmarkPlace, readChainBenchmarks } from "./benchmarkData.ts";
import { noteUnreadable, readChain, type ChainData } from "./chainData.ts";
import { installDir, type CommandContext, type ContextOf } from "./context.ts";
import { exitCodes } from "./exitCodes.ts";
import { table, type Output } from "./output.ts";

interface BenchmarkCommand {
  force?: boolean;
  show?: boolean;
  all?: boolean;
  python?: string;
}

const help = `
Tasks are those under \`benchmark\` in seesaw.yaml, of lm-eval or of your own. What is done is kept and not run again, so a
run that was interrupted goes on where it was. Nothing is fetched: the data of a task has to be on the machine. Every
answer is kept in the run folder, benchmarks/step-N/<task>.jsonl.

Examples:
  seesaw benchmark                 all checkpoints M0 … MN that there are
  seesaw benchmark M2              one
  seesaw benchmark --show          only what has been measured
  seesaw benchmark --json | jq '.changes'`;

export function addBenchmark(program: Command, contextOf: ContextOf): void {
  program
    .command("benchmark")
    .argument("[checkpoint...]", "M0, M1, … or ids of stages; default: all that there are")
    .description("run lm-eval benchmarks on checkpoints, and compare them prompt by prompt")
    .option("--show", "run nothing: show what has been measured")
    .option("--all", "show every metric and filter, not only the main one of each task")
    .option("--force", "run again what is there")
    .option("--python <path>", "the Python to use (default: SEESAW_PYTHON, the target's, .venv, PATH)")
    .addHelpText("after", help)
    .action(async (named: string[], options: BenchmarkCommand, command: Command) => {
      const context = contextOf(command);
      const pipeline = await context.pipeline();
      const data = await readChain(context.services, pipeline);
      const checkpoints = chosen(data, named);
      const failed = options.show === true ? [] : await runAll(context, data, checkpoints, options);
      const { found, problems } = await readChainBenchmarks(data.chain, options.all === true);
      const shown = found.filter(({ label }) => checkpoints.some((checkpoint) => checkpoint.label === label));
      const changes = changesOf(shown);
      if (failed.length > 0) process.exitCode = exitCodes.failed;
      if (context.json) context.out.json(benchmarkJson(shown, changes, failed));
      else context.out.print(benchmarkText(shown, changes, checkpoints, context.out));
      for (const problem of problems) context.out.note(context.out.paint("yellow", problem));
      noteUnreadable(data, context.out);
    });
}

/** The checkpoints that were named, or all that can be measured. */
function chosen({ chain, pipeline }: ChainData, named: readonly string[]): ChainCheckpoint[] {
  const known = chain.checkpoints;
  if (named.length === 0) return known.filter((one) => one.status !== "missing" && benchmarkPlace(one) !== null);
  return named.map((name) => {
    const found = known.find(({ label, stage }) => label === name || stage === name || (name === "base" && label === "M0"));
    if (found === undefined) throw new AppError("not-found", `There is no checkpoint \`${name}\` in ${pipeline.file}: there are ${known.map(({ label }) => label).join(", ")}.${didYouMean(name, known.flatMap(({ label, stage }) => [label, stage ?? "base"]))}`);
    if (found.status === "missing" || benchmarkPlace(found) === null) throw new AppError("not-finished", `${found.label} cannot be measured yet: ${found.reason ?? "no stage has been run, and its results are kept in a run folder."}`);
    return found;
  });
}

async function runAll(context: CommandContext, data: ChainData, checkpoints: readonly ChainCheckpoint[], options: BenchmarkCommand): Promise<BenchmarkFailure[]> {
  const { pipeline } = data;
  const { benchmark } = pipeline;
  if (benchmark === null || benchmark === undefined) throw new AppError("usage", `${pipeline.file} names no benchmarks: add, for instance, "benchmark: { lm_eval: [gsm8k] }".`);
  if (checkpoints.length === 0) throw new AppError("not-found", `There is no checkpoint to measure yet: start with \`seesaw run --all\`.`);
  const start = context.startOptions(options.python);
  const failed: BenchmarkFailure[] = [];
  for (const checkpoint of checkpoints) failed.push(...(await runOne(context, pipeline, checkpoint, benchmark, start, options.force === true)));
  context.out.rewrite("");
  return failed;
}

async function runOne(context: CommandContext, pipeline: Pipeline, checkpoint: ChainCheckpoint, benchmark: NonNullable<Pipeline["benchmark"]>, start: ReturnType<CommandContext["startOptions"]>, force: boolean): Promise<BenchmarkFailure[]> {
  const { label, run, step, path } = checkpoint;
  if (run === null || step === null || path === null) return [];
  const { runs } = await context.services.runs.list(pipeline.root);
  const record = runs.find(({ id }) => id === run.id);
  if (record !== undefined && isActive(record)) throw new AppError("already-running", `${run.id} is running and may be measuring ${label} itself: wait for it, or stop it with \`seesaw stop ${run.stage}\`.`);
  await mustBeHere(path);
  const python = requirePython(await context.services.launcher.localPython(pipeline, run.stage, start));
  const { every: _every, ...spec } = benchmark;
  context.out.rewrite(`${label}: benchmarks ${spec.lm_eval.join(", ")}`);
  return runBenchmark({
    runnerDir: join(installDir(), "runner"), root: pipeline.root, python: python.command, folder: benchmarkFolder(run.dir, step), env: run.spec.env, force,
    request: { v: 1, checkpoint: path, run: run.id, stage: run.stage, step, label, benchmark: spec, trusted: start.trusted, use_cpu: run.spec.args["use_cpu"] === true },
    onMessage: (message) => show(message, label, context),
  });
}

function show(message: BenchmarkMessage, label: string, { out, json }: CommandContext): void {
  const task = message.task ?? "benchmark";
  if (message.event === "started") out.rewrite(`${label}: ${task}`);
  else if (message.event === "failed") out.note(out.paint("yellow", `${label} ${task}: ${message.message}`));
  else if (!json && !message.again) out.note(out.paint("dim", `${label} ${task}: ${formatPlural(message.n, "prompt")} in ${formatNumber(message.seconds, 0)} s`));
}

/** Of every metric: each of the shown checkpoints that has it against the one before, and the last against the first. */
function changesOf(found: readonly Benchmarked[]): (BenchmarkChange & { adjusted: number | null })[] {
  const changes = [...grouped(found).values()].flatMap((list) => {
    const steps = list.slice(1).map((one, index) => benchmarkChange(list[index] as Benchmarked, one));
    return steps.length < 2 ? steps : [...steps, benchmarkChange(list[0] as Benchmarked, list.at(-1) as Benchmarked)];
  });
  const adjusted = adjustColumn(changes.map(({ p }) => p), "holm");
  return changes.map((change, index) => ({ ...change, adjusted: adjusted[index] ?? null }));
}

function grouped(found: readonly Benchmarked[]): Map<string, Benchmarked[]> {
  const groups = new Map<string, Benchmarked[]>();
  for (const one of found) {
    const key = JSON.stringify([one.result.task, one.metric.metric, one.metric.filter]);
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  return groups;
}

function benchmarkText(found: readonly Benchmarked[], changes: readonly (BenchmarkChange & { adjusted: number | null })[], checkpoints: readonly ChainCheckpoint[], out: Output): string {
  if (found.length === 0) return "No benchmark has been measured on these checkpoints yet: `seesaw benchmark` runs them.";
  const labels = checkpoints.map(({ label }) => label);
  const rows = [...grouped(found).values()].map((list) => {
    const [one] = list as [Benchmarked];
    return [nameOf(one.result.task, one.metric, out), ...labels.map((label) => cellText(list.find((cell) => cell.label === label), out)), String(one.result.n)];
  });
  const values = table(["benchmark", ...labels, "n"], rows, { right: [labels.length + 1], out });
  if (changes.length === 0) return values;
  const binary = ({ task, metric, filter }: BenchmarkChange): boolean => found.some((one) => one.result.task === task && one.metric.metric === metric && one.metric.filter === filter && one.metric.binary);
  const made = changes.filter(({ estimate }) => estimate !== null).map((change) => [nameOf(change.task, change, out), `${change.from} → ${change.to}`, ...changeCells(change, binary(change), out)]);
  const refused = [...new Set(changes.flatMap(({ note, estimate }) => (note !== null && estimate === null ? [note] : [])))];
  const tests = formatPlural(changes.filter(({ p }) => p !== null).length, "test");
  const notes = [...refused, `Shares with Wilson's 95 % intervals. Changes are paired by prompt; p* is corrected for ${tests} (Holm). "Sees" is the smallest drop in points that one such test would show four times in five; "not shown" does not mean that there is none.`];
  const second = made.length === 0 ? [] : [table(["change", "", "", "95 %", "1→0 / 0→1", "p*", "verdict", "n", "sees"], made, { right: [2, 5, 7, 8], out }), ""];
  return [values, "", ...second, ...notes.map((note) => out.paint("dim", note))].join("\n");
}

function nameOf(task: string, { metric, filter }: { metric: string; filter: string }, out: Output): string {
  return `${task}  ${out.paint("dim", filter === "none" ? metric : `${metric}, ${filter}`)}`;
}

function cellText(cell: Benchmarked | undefined, out: Output): string {
  if (cell === undefined) return out.paint("dim", "–");
  const value = benchmarkValue(cell);
  const interval = benchmarkInterval(cell);
  return interval === null ? formatNumber(value, 3) : `${formatPercent(value, 1)} ${out.paint("dim", `(${formatInterval(interval, 0).replace(" %", "")})`)}`;
}

function changeCells({ estimate, interval, adjusted, lost, gained, n, note, smallestDrop }: BenchmarkChange & { adjusted: number | null }, binary: boolean, out: Output): string[] {
  const number = (value: number): string => formatSigned(binary ? 100 * value : value, binary ? 1 : 3);
  const verdict = note !== null ? out.paint("dim", "too few") : adjusted === null || adjusted > 0.05 ? out.paint("dim", "not shown") : (estimate ?? 0) < 0 ? out.paint("red", "loss") : out.paint("green", "gain");
  return [
    estimate === null ? "–" : number(estimate), interval === null ? "" : out.paint("dim", `${number(interval.low)} to ${number(interval.high)}`), `${lost ?? "–"} / ${gained ?? "–"}`,
    adjusted === null ? "" : adjusted < 0.001 ? "< 0.001" : formatNumber(adjusted, 3), verdict, String(n), binary ? (smallestDrop === null ? "none" : formatNumber(100 * smallestDrop, 1)) : "",
  ];
}

function benchmarkJson(found: readonly Benchmarked[], changes: readonly (BenchmarkChange & { adjusted: number | null })[], failed: readonly BenchmarkFailure[]): object {
  return {
    v: 1,
    results: found.map((one) => ({ checkpoint: one.label, run: one.result.run, step: one.result.step, task: one.result.task, metric: one.metric.metric, filter: one.metric.filter, main: one.metric.main, n: one.result.n, value: one.metric.value, interval: benchmarkInterval(one), settings: one.result.settings })),
    changes: changes.map(({ adjusted, smallestDrop, ...change }) => ({ ...change, p_adjusted: adjusted, smallest_drop: smallestDrop })),
    failed: failed.map(({ task, code, message }) => ({ task, code, message })),
  };
}
