import { InvalidArgumentError, Option, type Command } from "commander";
import { availableParallelism } from "node:os";
import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { arenaCsv, arenaTables, type ArenaTable } from "../domain/arena/arenaCsv.ts";
import { missingTexts } from "../domain/arena/arenaText.ts";
import { arenaResult, type ArenaEntry, type ArenaResult, type Share } from "../domain/arena/arenaResult.ts";
import { formatNumber, formatPercent, formatPlural } from "../domain/format.ts";
import { verdictOf } from "../domain/evaluation/evaluationText.ts";
import type { Pipeline } from "../domain/pipeline/pipelineModel.ts";
import { readRoutes } from "../storage/runs/routerRoutes.ts";
import { runsFolder } from "../storage/runs/runStore.ts";
import { arenaFolder, type ArenaSeed } from "../targets/arena/arenaFiles.ts";
import { pricedOnce, readArena } from "../targets/arena/arenaReading.ts";
import { readSeeds, runArena, type ArenaEvent } from "../targets/arena/arenaRunner.ts";
import { AppError } from "../util/errors.ts";
import type { CommandContext, ContextOf } from "./context.ts";
import { Interrupts } from "./interrupts.ts";
import { table, type Output } from "./output.ts";
import { probeGroups } from "../storage/rows/probeGroups.ts";

interface ArenaOptions {
  only?: string[];
  seeds?: number[];
  jobs?: number;
  dryRun?: boolean;
  results?: boolean;
  csv?: ArenaTable;
  html?: string;
  python?: string;
}

const help = `
Runs the chain and every remedy under \`arena\` of seesaw.yaml, for each seed, from the same data and within the same budget,
and compares them prompt by prompt. Every stage is an ordinary run below .seesaw/arena: Ctrl-C leaves the running one
alone, and the same command goes on where it was. A stage that fails costs its own remedy and those that build on it.

Examples:
  seesaw arena --dry-run             what would be run, and what each stage costs
  seesaw arena --jobs 2              two seeds at the same time
  seesaw arena --only replay-10 joint
  seesaw arena --results             the table of what is there, nothing run
  seesaw arena --results --html arena.html
  seesaw arena --results --csv > arena.csv
  seesaw arena --results --csv tests > tests.csv`;

export function addArena(program: Command, contextOf: ContextOf): void {
  program
    .command("arena")
    .description("compare the remedies of `arena` in seesaw.yaml on the same chain, budget and prompts, over several seeds")
    .option("--only <remedy...>", "only these remedies (the chain is always there)")
    .option("--seeds <n...>", "only these seeds", seedList)
    .option("-j, --jobs <n>", "seeds that run at the same time (default 1)", wholeNumber)
    .option("--dry-run", "list the stages and their cost; nothing is run")
    .option("--results", "show what there is; nothing is run")
    .addOption(new Option("--csv [table]", "a table as CSV on stdout: the numbers of every chart (scores), the paired tests, …").choices(arenaTables).preset("scores"))
    .option("--html <file>", "write a report that is one file")
    .option("--python <path>", "the Python to use (default: SEESAW_PYTHON, the target's, .venv, PATH)")
    .addHelpText("after", help)
    .action(async (options: ArenaOptions, command: Command) => {
      const context = contextOf(command);
      if (options.csv !== undefined && context.json) throw new AppError("usage", "Give either --csv or --json, not both.");
      const pipeline = await context.pipeline();
      const chosen = { ...(options.only !== undefined && { only: options.only }), ...(options.seeds !== undefined && { seeds: options.seeds }) };
      if (options.dryRun === true) return void (await dryRun(context, await readSeeds(context.services, pipeline, chosen)));
      const seeds = options.results === true ? await readSeeds(context.services, pipeline, chosen) : await runSeeds(context, pipeline, chosen, options);
      await show(context, pipeline, seeds, options);
    });
}

async function runSeeds(context: CommandContext, pipeline: Pipeline, chosen: { only?: string[]; seeds?: number[] }, options: ArenaOptions): Promise<ArenaSeed[]> {
  const interrupts = new Interrupts();
  const jobs = options.jobs ?? 1;
  // Runs side by side share the cores; said in the environment, since it changes no result and so no fingerprint.
  if (jobs > 1) process.env["OMP_NUM_THREADS"] ??= String(Math.max(1, Math.floor(availableParallelism() / jobs)));
  try {
    return await runArena(context.services, pipeline, { ...context.startOptions(options.python, interrupts.signal), ...chosen, jobs, onEvent: (event) => tell(context, event) });
  } catch (error) {
    if (AppError.is(error, "cancelled")) throw new AppError("cancelled", "The arena was left; a stage that runs goes on. `seesaw arena` goes on from there, `seesaw arena --results` shows what there is.");
    throw error;
  } finally {
    interrupts.dispose();
  }
}

function tell({ json, out }: CommandContext, event: ArenaEvent): void {
  if (json) {
    if (event.type !== "stage") out.json({ event: event.type, ...event });
    else if (event.event.type !== "progress") out.json({ event: event.event.type, seed: event.seed, stage: event.event.stage });
    return;
  }
  const head = out.paint("dim", `seed ${event.seed}`);
  if (event.type === "seed") out.note(`${head}  ${formatPlural(event.stages, "stage")} for ${formatPlural(event.systems, "system")}`);
  else if (event.type === "skipped") out.note(`${head}  ${event.stage}  ${out.paint("yellow", `skipped: ${event.reason}`)}`);
  else if (event.type === "failed") out.note(`${head}  ${event.stage}  ${out.paint("red", event.reason)}`);
  else if (event.event.type === "up-to-date") out.note(`${head}  ${place(event)} ${event.event.stage}  ${out.paint("dim", "up to date")}`);
  else if (event.event.type === "started") out.note(`${head}  ${place(event)} ${event.event.stage}`);
}

function place({ position, of }: { position: number; of: number }): string {
  return `${String(position).padStart(String(of).length)}/${of}`;
}

async function dryRun(context: CommandContext, seeds: readonly ArenaSeed[]): Promise<void> {
  const [first] = seeds;
  if (first === undefined) return;
  const rows = await Promise.all(first.pipeline.stages.map(async (stage) => {
    const cost = await context.services.costs.plan(first.pipeline, stage.id).catch(() => null);
    const systems = first.compiled.systems.filter(({ own, shared }) => own.includes(stage.id) || shared.includes(stage.id));
    return { stage: stage.id, recipe: stage.recipe, from: stage.from ?? "base", steps: cost?.steps ?? null, tokens: cost?.tokens ?? null, flops: cost?.flops ?? null, seconds: cost?.time?.seconds ?? null, needed_by: systems.length === first.compiled.systems.length ? ["all"] : systems.map(({ id }) => id) };
  }));
  if (context.json) return context.out.json({ v: 1, seeds: seeds.map(({ seed }) => seed), stages: rows });
  const cells = rows.map(({ stage, recipe, from, steps, tokens, seconds, needed_by }) => [stage, recipe, from, steps === null ? "" : formatNumber(steps, 0), tokens === null || tokens === 0 ? "" : formatNumber(tokens, 0), seconds === null ? "" : `${formatNumber(seconds, 0)} s`, needed_by.length > 3 ? `${needed_by.slice(0, 3).join(", ")} and ${needed_by.length - 3} more` : needed_by.join(", ")]);
  context.out.print(table(["stage", "recipe", "from", "steps", "tokens", "expected", "needed by"], cells, { right: [3, 4, 5], out: context.out }));
  const whole = rows.reduce((sum, { seconds }) => sum + (seconds ?? 0), 0);
  context.out.print(`\n${formatPlural(rows.length, "stage")} for each of ${formatPlural(seeds.length, "seed")}: ${whole > 0 ? `about ${formatNumber((whole * seeds.length) / 60, 0)} min of training, and the start-up of each stage besides` : "how long they take is known when a stage has run on this target"}. Nothing was started.`);
}

async function show(context: CommandContext, pipeline: Pipeline, seeds: readonly ArenaSeed[], options: ArenaOptions): Promise<void> {
  const { services, out } = context;
  const runs = seeds[0] === undefined ? [] : (await services.runs.list(seeds[0].pipeline.root)).runs;
  const groups = await probeGroups(pipeline, runs);
  const result = arenaResult(await readArena({ runs: services.runs, costs: pricedOnce(services.costs), traces: await services.traces(), groupOf: groups.groupOf, routes: readRoutes }, pipeline, seeds));
  if (options.html !== undefined) {
    const { arenaHtml } = await import("../domain/arena/arenaHtml.ts");
    const file = resolve(context.cwd, options.html);
    await writeFile(file, arenaHtml(result));
    out.note(`Written to ${file}.`);
  }
  if (context.json) out.json(result);
  else if (options.csv !== undefined) process.stdout.write(arenaCsv(result, options.csv));
  else out.print(resultText(result, out, seeds.map(({ pipeline: { root } }) => runsFolder(root)).length > 0 ? arenaFolder(pipeline.root) : ""));
}

function resultText(result: ArenaResult, out: Output, folder: string): string {
  const skills = Object.keys(result.entries.find(({ scores }) => scores !== null)?.scores?.skills ?? {});
  const header = ["system", ...skills, "old skills", "95 %", "new skill", "95 %", "OOD", "vs chain, old", "p*", "seeds", "tokens", "s"];
  const rows = result.entries.filter(({ scores }) => scores !== null).map((entry) => rowOf(entry, skills, result, out));
  const missing = result.entries.flatMap((entry) => missingTexts(entry).map((sentence) => out.paint("yellow", `${entry.id}: ${sentence}`)));
  const right = header.flatMap((_, column) => (column === 0 ? [] : [column]));
  return [
    out.paint("bold", `${result.pipeline}: ${formatPlural(result.seeds.length, "seed")}, budget ${result.budget}`),
    rows.length === 0 ? "Nothing has finished yet: run `seesaw arena`." : table(header, rows, { right, out }),
    ...(missing.length === 0 ? [] : [missing.join("\n")]),
    out.paint("dim", [`Pass rates on the ID probes, means over seeds. Intervals are over prompts and seeds; p* is of the paired difference to the chain, corrected for the whole table.`, ...(result.newSkill === null ? [] : [`New skill: ${result.newSkill}; old: ${result.oldSkills.join(", ")}.`]), ...result.notes, `Runs are in ${folder}.`].join("\n")),
  ].join("\n\n");
}

function rowOf(entry: ArenaEntry, skills: readonly string[], result: ArenaResult, out: Output): string[] {
  const { scores, cost } = entry;
  const row = result.comparison?.rows.find(({ system, measure }) => system === entry.id && measure === "old-skills");
  const difference = row?.estimate == null ? "" : `${row.estimate >= 0 ? "+" : "−"}${formatNumber(Math.abs(100 * row.estimate), 1)}`;
  const p = row?.adjusted ?? row?.p ?? null;
  const certain = row !== undefined && verdictOf(row) !== "not shown";
  return [
    entry.id, ...skills.map((skill) => share(scores?.skills[skill]?.id)), share(scores?.oldSkills), out.paint("dim", interval(scores?.oldSkills)), share(scores?.newSkill), out.paint("dim", interval(scores?.newSkill)), share(scores?.ood),
    certain ? difference : out.paint("dim", difference), p === null ? "" : p < 0.001 ? "< 0.001" : formatNumber(p, 3), String(entry.seeds.length),
    cost.own === null ? "" : formatNumber(cost.own.tokens, 0), cost.own === null ? "" : formatNumber(cost.own.seconds, 0),
  ];
}

function share(value: Share | null | undefined): string {
  return value == null ? "" : formatPercent(value.value, 0);
}

function interval(value: Share | null | undefined): string {
  return value == null ? "" : `${formatNumber(100 * value.interval.low, 0)} to ${formatNumber(100 * value.interval.high, 0)}`;
}

function wholeNumber(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError("Give a whole number from 1 on.");
  return value;
}

function seedList(text: string, before: number[] | undefined): number[] {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0) throw new InvalidArgumentError("Seeds are whole numbers from 0 on.");
  return [...(before ?? []), value];
}
