import { Option, type Command } from "commander";
import { compareFlags, type FlagDifference } from "../domain/flags/compareFlags.ts";
import { detectorIds, type DetectorId } from "../domain/flags/detector.ts";
import type { RecomputedSeries } from "../domain/flags/recompute.ts";
import { flagMark } from "../domain/drift/skillsTable.ts";
import { formatNumber, formatPercent, formatPlural } from "../domain/format.ts";
import { flagCard } from "../domain/run/flagCard.ts";
import { falseAlarmText, flagsInTimeOrder, flagsOfRun, lastOfEachStep, type FlagEntry } from "../domain/run/flagText.ts";
import { splitFlags } from "../domain/report/unwatched.ts";
import { recomputeRun, type RecomputedRun } from "../storage/runs/recomputeRun.ts";
import type { RunRecord } from "../storage/runs/runStore.ts";
import { AppError } from "../util/errors.ts";
import { flagPaint } from "./checkpoints.ts";
import { noteUnreadable, readChain } from "./chainData.ts";
import type { CommandContext, ContextOf } from "./context.ts";
import { exitCodes } from "./exitCodes.ts";
import { table, type Output } from "./output.ts";
import { chooseRun } from "./runChoice.ts";

interface FlagsOptions {
  watch?: boolean;
  recompute?: boolean;
  check?: boolean;
  detector?: DetectorId;
  tolerance?: string;
}

const help = `
With --recompute the verdicts of a run (finished, running or imported) are made again from its traces alone, at every look, and
held against what the runner wrote into the journal. --detector and --tolerance ask what another setting would have said.

Examples:
  seesaw flags
  seesaw flags search
  seesaw flags search --recompute --check   exit 1 where traces and journal differ (for CI)
  seesaw flags search --recompute --detector shift --tolerance 1
  seesaw flags --json`;

export function addFlags(program: Command, contextOf: ContextOf): void {
  program
    .command("flags")
    .argument("[run]", "a stage (its newest run) or a run's id; default: the runs that stand for the chain")
    .description("warnings of all stages in time order, with the numbers behind them")
    .option("--watch", "also warnings that no check confirmed, where the report card says that most of them are wrong")
    .option("--recompute", "make the verdicts of one run again from its traces, and compare")
    .option("--check", "with --recompute: exit 1 where something differs")
    .addOption(new Option("--detector <id>", "with --recompute: watch with this instead").choices([...detectorIds]))
    .option("--tolerance <t>", "with --recompute: points of accuracy that may be lost (nats for nll)")
    .addHelpText("after", help)
    .action(async (named: string | undefined, options: FlagsOptions, command: Command) => {
      const context = contextOf(command);
      if (options.recompute === true) return recompute(context, named, options);
      for (const name of ["check", "detector", "tolerance"] as const) if (options[name] !== undefined) throw new AppError("usage", `--${name} goes with --recompute.`);
      return list(context, named, options.watch === true);
    });
}

async function list(context: CommandContext, named: string | undefined, watch: boolean): Promise<void> {
  const { out } = context;
  const pipeline = await context.pipeline();
  const data = await readChain(context.services, pipeline, watch);
  const chosen = named === undefined ? null : await chooseRun(context.services, pipeline, named);
  const run = data.runs.find(({ id }) => id === chosen?.id) ?? null;
  const flags = run === null ? flagsInTimeOrder(data.chain) : lastOfEachStep(flagsOfRun(run));
  const facts = await context.services.flagFacts(data.runs);
  if (context.json) {
    out.json({
      v: 1,
      alpha: pipeline.flags.alpha,
      flags: flags.map(({ run: id, stage, skill, split, step, state, title, text, t, flag }) => ({
        run: id, stage, skill, split, step, state, title, text, t, value: flag.value, lower: flag.lower, threshold: flag.threshold, test: flag.test ?? null,
        detector: flag.detector ?? "nll", unit: flag.unit ?? "nats", high: flag.high ?? null, points: flag.points ?? null, spent: flag.spent ?? null, weak: flag.weak ?? null, moved: flag.moved ?? [], smallest_drop: flag.smallest_drop ?? null,
        facts: state === "drifting" || state === "confirmed" ? cardOf({ run: id, flag }, data.runs, facts) : [],
      })),
    });
  } else out.print(flagsText(flags, (entry) => cardOf(entry, data.runs, facts), falseAlarmText(pipeline.flags.alpha, facts.card), out));
  noteUnreadable(data, out);
}

type Facts = Awaited<ReturnType<CommandContext["services"]["flagFacts"]>>;

function cardOf({ run: id, flag }: Pick<FlagEntry, "run" | "flag">, runs: readonly RunRecord[], facts: Facts): { label: string; text: string }[] {
  const run = runs.find((one) => one.id === id);
  return run === undefined ? [] : flagCard({ flag, run, runs, card: facts.card, replay: facts.replay(run, flag) });
}

function flagsText(all: readonly FlagEntry[], card: (entry: FlagEntry) => { label: string; text: string }[], promise: string, out: Output): string {
  const { flags, unwatched } = splitFlags(all);
  // The facts stand once, under the newest word on each flag.
  const newest = new Set([...new Map(flags.map((flag) => [`${flag.run} ${flag.id}`, flag])).values()]);
  const lines = flags.flatMap((flag) => [
    `${flagPaint(flag.state, `${flagMark(flag.state)} ${flag.stage} step ${flag.step}`, out)}  ${flag.text}`,
    ...(newest.has(flag) && flag.state !== "recovered" ? card(flag).map(({ label, text }) => out.paint("dim", `    ${label}: ${text}`)) : []),
  ]);
  return [lines.length === 0 ? "No flags were raised." : lines.join("\n"), "", ...unwatched.map((sentence) => out.paint("dim", sentence)), out.paint("dim", promise)].join("\n");
}

async function recompute(context: CommandContext, named: string | undefined, options: FlagsOptions): Promise<void> {
  const { out, services } = context;
  const tolerance = options.tolerance === undefined ? undefined : Number(options.tolerance);
  if (tolerance !== undefined && !(tolerance >= 0 && tolerance <= 100)) throw new AppError("usage", `--tolerance takes a number from 0 to 100, not \`${options.tolerance}\`.`);
  const other = options.detector !== undefined || tolerance !== undefined;
  if (options.check === true && other) throw new AppError("usage", "--check compares with what the runner did: leave --detector and --tolerance out.");
  const run = await chooseRun(services, await context.pipeline(), named);
  if (!run.state.probes.some(({ step }) => step === 0)) throw new AppError("not-finished", `Run ${run.id} has no scores of its start yet, so there is nothing to compare with: wait for its first probe point.`);
  const found = await recomputeRun(await services.traces(), await services.rows(), run, { detector: options.detector, tolerance });
  const differences = other ? [] : compareFlags(found.result, run.state.flagHistory);
  if (options.check === true && differences.length > 0) process.exitCode = exitCodes.failed;
  if (context.json) return out.json({ v: 1, run: run.id, stage: run.stage, equal: other ? null : differences.length === 0, differences, notes: found.notes, ...found.result });
  out.print(recomputedText(run, found, other ? null : differences, out));
}

function recomputedText(run: RunRecord, { result, notes }: RecomputedRun, differences: readonly FlagDifference[] | null, out: Output): string {
  const unit = result.detector === "nll" ? "nats" : "points";
  const head = `${run.id}: detector ${result.detector}, tolerance ${formatNumber(result.tolerance, 2)} ${unit}, false-alarm budget ${formatPercent(result.alpha, 0)} over ${formatPlural(result.series.filter(({ reason }) => reason === null).length, "series", "series")}.`;
  const rows = result.series.flatMap((series) => series.looks.map((look) => lookCells(series, look, out)));
  const unwatched = result.series.flatMap(({ id, reason }) => (reason === null ? [] : [out.paint("dim", `${id} is not watched: ${reason}`)]));
  const verdict =
    differences === null ? "With another setting than the run's, so it is not compared with its journal."
    : differences.length === 0 ? out.paint("green", "Equal: the traces give what the runner journalled.")
    : out.paint("red", [`${formatPlural(differences.length, "difference")} from the journal:`, ...differences.map(({ id, step, journal, traces }) => `  ${id}${step === null ? "" : ` at step ${step}`}: the journal says ${journal}, the traces give ${traces}`)].join("\n"));
  return [
    head,
    ...(rows.length === 0 ? [] : [table(["series", "step", "loss", "band", "tolerated", "spent", "state"], rows, { right: [1, 2, 3, 4, 5], out })]),
    ...unwatched,
    ...notes.map((note) => out.paint("yellow", note)),
    verdict,
  ].join("\n");
}

function lookCells({ id, n, weak }: RecomputedSeries, { step, verdict, state, entered }: RecomputedSeries["looks"][number], out: Output): string[] {
  const { estimate, low, high, threshold, unit, spent, alarm } = verdict;
  const digits = unit === "points" ? 1 : 3;
  const word = state === "calm" ? out.paint("dim", "calm") : flagPaint(state, state, out);
  return [
    `${id} (${n}${weak ? ", weak" : ""})`,
    String(step),
    `${formatNumber(estimate, digits)} ${unit}`,
    `${formatNumber(low, digits)} … ${formatNumber(high, digits)}`,
    formatNumber(threshold, digits),
    formatPercent(spent, 1),
    `${word}${alarm ? " ⚑" : ""}${entered.length > 1 ? out.paint("dim", ` (${entered.join(", ")})`) : ""}`,
  ];
}
