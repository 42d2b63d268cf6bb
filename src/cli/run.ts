import { Option, type Command } from "commander";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Pipeline } from "../domain/pipeline/pipelineModel.ts";
import { parseSeeds, type SeedList } from "../domain/pipeline/seedList.ts";
import { isBeside } from "../domain/run/seedOf.ts";
import { followRun } from "../targets/followRun.ts";
import { runChain } from "../targets/chainRunner.ts";
import { stageOf } from "../targets/freezeRun.ts";
import { requirePipeline } from "../targets/pipelineFile.ts";
import { spawnDetached } from "../targets/spawn.ts";
import { AppError } from "../util/errors.ts";
import { ChainView } from "./chainView.ts";
import type { CommandContext, ContextOf } from "./context.ts";
import { showDryRun } from "./dryRun.ts";
import { Interrupts } from "./interrupts.ts";
import { runWithSeeds } from "./runSeeds.ts";

interface RunOptions {
  all?: boolean;
  force?: boolean;
  detach?: boolean;
  resume?: boolean;
  python?: string;
  dryRun?: boolean;
  seeds?: SeedList;
  failOn?: "drifting" | "confirmed";
}

/** How long other machines may take to say how their runs are, in ms. */
const askMs = 30_000;

const help = `
Stages run detached: closing this terminal, or Ctrl-C, leaves the running stage alone, and \`seesaw status\`,
\`seesaw logs -f\` and VS Code find it again. Ctrl-C twice stops the stage too, as \`seesaw stop\` does. A chain
that was left goes on with \`seesaw run --all\`: what is up to date is skipped, what still runs is followed.

Examples:
  seesaw run --all                 the whole chain; stages that are up to date are skipped
  seesaw run math                  one stage
  seesaw run math --dry-run        what that would do, on whatever target; nothing is done
  seesaw run math search --force   two stages, even if nothing changed
  seesaw run tool --resume         go on from the last checkpoint of its newest unfinished run
  seesaw run --all --detach        start and return; output in .seesaw/chain.log
  seesaw run --all --fail-on confirmed   exit 1 when a loss was confirmed (for CI)
  seesaw run math --seeds 0-4%2    the stage with five seeds, at most two at once

--seeds makes an ordinary run for each seed, from the same checkpoint. Those with another seed than the file's stand beside
the chain: later stages start from the run with the file's seed. On Slurm all are submitted as one job array, and %2 lets two
of its tasks run at once. On any other target one starts when the one before has ended; with %2 two go side by side. A seed
that is up to date is skipped, one that fails does not stop the others. Ctrl-C leaves all that have started alone, twice stops
them, as above. \`--resume --seeds 2\` goes on with seed 2.

With --json: one event a line, {"event": …}, and at last {"event": "result"}.`;

export function addRun(program: Command, contextOf: ContextOf): void {
  program
    .command("run")
    .argument("[stage...]", "ids of stages, run in the order of the chain")
    .description("run stages, follow them, and stop at the first that does not finish")
    .option("-a, --all", "all stages of the chain")
    .option("--force", "run again what is up to date")
    .option("--resume", "go on with the newest unfinished run of the stage")
    .option("-d, --detach", "return as soon as it has started")
    .option("--python <path>", "the Python to use (default: SEESAW_PYTHON, the target's, .venv, PATH)")
    .option("--seeds <list>", "one stage with these seeds, a run each: 0,1,2 or 0-4, or 0-4%2 for at most two at once", parseSeeds)
    .option("--dry-run", "show the exact commands, files and job script instead; nothing is started or copied")
    .addOption(new Option("--fail-on <state>", "exit 1 when a flag is in this state at the end").choices(["drifting", "confirmed"]))
    .addHelpText("after", help)
    .action(async (named: string[], options: RunOptions, command: Command) => {
      const context = contextOf(command);
      // A whole chain is checked to its end before its first stage takes its hours.
      const loaded = await context.load({ files: options.all === true });
      const pipeline = requirePipeline(loaded);
      const stages = chosenStages(pipeline, named, options);
      if (options.dryRun) return showDryRun(context, pipeline, loaded, stages, context.startOptions(options.python), options.seeds);
      const together = options.seeds !== undefined && context.services.launcher.startsTogether(pipeline, stages[0] ?? "");
      if (options.seeds !== undefined && options.detach && !together) return detachChain(context, pipeline);
      if (options.detach && (stages.length > 1 || options.all)) return detachChain(context, pipeline);
      const interrupts = new Interrupts();
      if (options.seeds !== undefined && options.resume !== true) {
        const { force = false, detach = false, python, failOn, seeds: list } = options;
        return runWithSeeds(context, pipeline, loaded, interrupts, { stage: stages[0] ?? "", list, force, detach, python, failOn }).finally(() => interrupts.dispose());
      }
      const view = new ChainView(context, pipeline, interrupts, await context.services.reportCard());
      try {
        const start = { ...context.startOptions(options.python, interrupts.signal), onCopy: view.copying };
        if (options.detach || options.resume) {
          const stage = stages[0] ?? "";
          view.announce(stage);
          await context.services.remotes.refresh(pipeline.root, { signal: AbortSignal.any([interrupts.signal, AbortSignal.timeout(askMs)]) });
          const run = options.resume
            ? await context.services.launcher.resumeRun(pipeline.root, await unfinished(context, pipeline, stage, options.seeds?.seeds[0]), start)
            : await context.services.launcher.startStage(pipeline, loaded.diagnostics, stage, start);
          view.show({ type: "started", stage, run });
          if (options.detach) return view.detached(stage, run.id);
          const ended = await followRun(context.services.runs, pipeline.root, run.id, (state) => view.show({ type: "progress", stage, run: state }), interrupts.signal, context.services.remotes);
          view.show({ type: "finished", stage, run: ended });
          return view.result({ runs: [ended], failed: ended.state.status === "done" ? null : ended }, options.failOn);
        }
        const chain = { ...start, stages, force: options.force === true, join: options.all === true };
        const result = await runChain(context.services, pipeline, loaded.diagnostics, { ...chain, onEvent: (event) => view.show(event) });
        view.result(result, options.failOn);
      } catch (error) {
        if (!AppError.is(error, "cancelled") || view.current === null) throw error;
        view.close();
        await interrupts.leave(context, pipeline, view.current);
      } finally {
        view.close();
        interrupts.dispose();
      }
    });
}

function chosenStages(pipeline: Pipeline, named: string[], { all, resume, detach, dryRun, seeds }: RunOptions): string[] {
  for (const id of named) stageOf(pipeline, id);
  const ids = pipeline.stages.map(({ id }) => id);
  if (all && named.length > 0) throw new AppError("usage", "Give either --all or names of stages, not both.");
  const chosen = all || (named.length === 0 && ids.length === 1) ? ids : ids.filter((id) => named.includes(id));
  if (chosen.length === 0) throw new AppError("usage", `Name the stages to run (${ids.join(", ")}), or give --all.`);
  if (dryRun && (resume || detach)) throw new AppError("usage", "--dry-run shows how a new run would start: leave --resume and --detach out.");
  if (seeds !== undefined && chosen.length !== 1) throw new AppError("usage", `--seeds takes exactly one stage: name it (${ids.join(", ")}).`);
  if (resume && seeds !== undefined && seeds.seeds.length !== 1) throw new AppError("usage", "--resume goes on with one run: give the one seed of it.");
  if (resume && chosen.length !== 1) throw new AppError("usage", "--resume takes exactly one stage.");
  return chosen;
}

/** The newest run of the stage that stands for it, or the newest with this seed. */
async function unfinished(context: CommandContext, pipeline: Pipeline, stage: string, seed: number | undefined): Promise<string> {
  const { runs } = await context.services.runs.list(pipeline.root);
  const newest = runs.find((run) => run.stage === stage && (seed === undefined ? !isBeside(run, pipeline) : run.spec.seed === seed));
  if (newest && newest.state.status !== "done") return newest.id;
  const with_ = seed === undefined ? "" : ` with seed ${seed}`;
  throw new AppError("not-found", newest ? `The newest run of \`${stage}\`${with_}, ${newest.id}, is finished: there is nothing to resume.` : `Stage \`${stage}\` has not been run${with_} yet.`);
}

async function detachChain(context: CommandContext, pipeline: Pipeline): Promise<void> {
  const log = join(pipeline.root, ".seesaw", "chain.log");
  const args = process.argv.slice(1).filter((argument) => argument !== "--detach" && argument !== "-d");
  await mkdir(join(pipeline.root, ".seesaw"), { recursive: true });
  const pid = await spawnDetached([process.execPath, ...process.execArgv, ...args], { log });
  if (context.json) context.out.json({ event: "detached", pid, log });
  else context.out.print(`The chain runs in the background (process ${pid}): see \`seesaw status\` and ${log}.`);
}
