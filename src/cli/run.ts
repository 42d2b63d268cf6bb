import { Option, type Command } from "commander";
import { join } from "node:path";
import { flagMark } from "../domain/skillsTable.ts";
import { flagsOfRun } from "../domain/flagText.ts";
import { formatDuration, formatNumber } from "../domain/format.ts";
import type { Pipeline } from "../domain/pipelineModel.ts";
import { reasonText } from "../domain/reasonText.ts";
import type { RunRecord } from "../storage/runStore.ts";
import { followRun } from "../targets/followRun.ts";
import { runChain, type ChainEvent, type ChainResult } from "../targets/chainRunner.ts";
import { stageOf } from "../targets/freezeRun.ts";
import { requirePipeline } from "../targets/pipelineFile.ts";
import { spawnDetached } from "../targets/spawn.ts";
import { AppError } from "../util/errors.ts";
import type { CommandContext, ContextOf } from "./context.ts";
import { exitCodes } from "./exitCodes.ts";
import { Interrupts } from "./interrupts.ts";
import { ProgressLine } from "./progressLine.ts";

interface RunOptions {
  all?: boolean;
  force?: boolean;
  detach?: boolean;
  resume?: boolean;
  python?: string;
  failOn?: "drifting" | "confirmed";
}

const help = `
Stages run detached: closing this terminal, or Ctrl-C, leaves the running stage alone, and \`seesaw status\`,
\`seesaw logs -f\` and VS Code find it again. Ctrl-C twice stops the stage too, as \`seesaw stop\` does. A chain
that was left goes on with \`seesaw run --all\`: what is up to date is skipped, what still runs is followed.

Examples:
  seesaw run --all                 the whole chain; stages that are up to date are skipped
  seesaw run math                  one stage
  seesaw run math search --force   two stages, even if nothing changed
  seesaw run tool --resume         go on from the last checkpoint of its newest unfinished run
  seesaw run --all --detach        start and return; output in .seesaw/chain.log
  seesaw run --all --fail-on confirmed   exit 1 when a loss was confirmed (for CI)

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
    .addOption(new Option("--fail-on <state>", "exit 1 when a flag is in this state at the end").choices(["drifting", "confirmed"]))
    .addHelpText("after", help)
    .action(async (named: string[], options: RunOptions, command: Command) => {
      const context = contextOf(command);
      // A whole chain is checked to its end before its first stage takes its hours.
      const loaded = await context.load({ files: options.all === true });
      const pipeline = requirePipeline(loaded);
      const stages = chosenStages(pipeline, named, options);
      if (options.detach && (stages.length > 1 || options.all)) return detachChain(context, pipeline);
      const interrupts = new Interrupts();
      const view = new ChainView(context, pipeline, interrupts);
      try {
        const start = context.startOptions(options.python, interrupts.signal);
        if (options.detach || options.resume) {
          const stage = stages[0] ?? "";
          const run = options.resume
            ? await context.services.launcher.resumeRun(pipeline.root, await unfinished(context, pipeline, stage), start)
            : await context.services.launcher.startStage(pipeline, loaded.diagnostics, stage, start);
          view.show({ type: "started", stage, run });
          if (options.detach) return view.detached(stage, run.id);
          const ended = await followRun(context.services.runs, pipeline.root, run.id, (state) => view.show({ type: "progress", stage, run: state }), interrupts.signal);
          view.show({ type: "finished", stage, run: ended });
          return view.result({ runs: [ended], failed: ended.state.status === "done" ? null : ended }, options);
        }
        const chain = { ...start, stages, force: options.force === true, join: options.all === true };
        const result = await runChain(context.services, pipeline, loaded.diagnostics, { ...chain, onEvent: (event) => view.show(event) });
        view.result(result, options);
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

function chosenStages(pipeline: Pipeline, named: string[], { all, resume }: RunOptions): string[] {
  for (const id of named) stageOf(pipeline, id);
  const ids = pipeline.stages.map(({ id }) => id);
  if (all && named.length > 0) throw new AppError("usage", "Give either --all or names of stages, not both.");
  const chosen = all || (named.length === 0 && ids.length === 1) ? ids : ids.filter((id) => named.includes(id));
  if (chosen.length === 0) throw new AppError("usage", `Name the stages to run (${ids.join(", ")}), or give --all.`);
  if (resume && chosen.length !== 1) throw new AppError("usage", "--resume takes exactly one stage.");
  return chosen;
}

async function unfinished(context: CommandContext, pipeline: Pipeline, stage: string): Promise<string> {
  const { runs } = await context.services.runs.list(pipeline.root);
  const newest = runs.find((run) => run.stage === stage);
  if (newest && newest.state.status !== "done") return newest.id;
  throw new AppError("not-found", newest ? `The newest run of \`${stage}\`, ${newest.id}, is finished: there is nothing to resume.` : `Stage \`${stage}\` has not been run yet.`);
}

async function detachChain(context: CommandContext, pipeline: Pipeline): Promise<void> {
  const log = join(pipeline.root, ".seesaw", "chain.log");
  const args = process.argv.slice(1).filter((argument) => argument !== "--detach" && argument !== "-d");
  const { mkdir } = await import("node:fs/promises");
  await mkdir(join(pipeline.root, ".seesaw"), { recursive: true });
  const pid = await spawnDetached([process.execPath, ...process.execArgv, ...args], { log });
  if (context.json) context.out.json({ event: "detached", pid, log });
  else context.out.print(`The chain runs in the background (process ${pid}): see \`seesaw status\` and ${log}.`);
}

/** Shows what happens to the chain, for people or as JSON lines. */
class ChainView {
  /** The run that is followed now. */
  current: { stage: string; id: string } | null = null;
  private readonly context: CommandContext;
  private readonly progress: ProgressLine;
  private readonly nameWidth: number;
  private readonly interrupts: Interrupts;
  private flagsSeen = 0;
  private readonly shownStates = new Map<string, string>();

  constructor(context: CommandContext, pipeline: Pipeline, interrupts: Interrupts) {
    this.context = context;
    this.interrupts = interrupts;
    this.nameWidth = Math.max(...pipeline.stages.map(({ id }) => id.length));
    this.progress = new ProgressLine(context.out, this.nameWidth);
  }

  show(event: ChainEvent): void {
    const { out, json } = this.context;
    if (json) out.json(jsonEvent(event));
    switch (event.type) {
      case "starting":
        if (!json && !out.live) out.note(`${event.stage}: starting (${event.position} of ${event.of})`);
        else out.rewrite(`${event.stage}: reading inputs, checking the environment`);
        return;
      case "up-to-date":
        if (!json) out.print(`${out.paint("green", "✓")} ${event.stage.padEnd(this.nameWidth)}  ${out.paint("dim", `up to date (${event.run.id})`)}`);
        return;
      case "joined":
      case "started":
        this.current = { stage: event.stage, id: event.run.id };
        this.flagsSeen = 0;
        this.shownStates.clear();
        if (event.type === "started") for (const note of event.run.notes) out.note(out.paint("dim", note));
        if (!json && event.type === "joined") out.note(`${event.stage} already runs as ${event.run.id}: following it.`);
        this.context.log.debug(event.type === "started" ? event.run.argv.join(" ") : "");
        return;
      case "progress":
        if (!json && !this.interrupts.signal.aborted) this.progress.update(event.run);
        this.newFlags(event.run);
        return;
      case "finished":
        this.progress.end();
        this.current = null;
        if (!json) out.print(this.finishedLine(event.run));
    }
  }

  result({ runs, failed }: ChainResult, options: RunOptions): void {
    const { out, json } = this.context;
    const states = runs.flatMap((run) => run.state.flags.map(({ state }) => state));
    const flagged = options.failOn !== undefined && (states.includes("confirmed") || (options.failOn === "drifting" && states.includes("drifting")));
    if (failed !== null || flagged) process.exitCode = exitCodes.failed;
    if (json) out.json({ event: "result", ok: failed === null, runs: runs.map(({ id, stage, state }) => ({ id, stage, status: state.status })) });
    if (failed && !json) out.note(`The chain stopped at ${failed.stage}: \`seesaw logs ${failed.stage}\` shows its output, \`seesaw run ${failed.stage} --resume\` goes on from its last checkpoint.`);
    if (flagged && !json) out.note(`A flag is ${options.failOn}: exit code 1, as --fail-on asks.`);
  }

  detached(stage: string, id: string): void {
    if (!this.context.json) this.context.out.print(`${stage} runs as ${id}: \`seesaw logs ${stage} -f\` follows it.`);
  }

  close(): void {
    this.progress.end();
  }

  private newFlags(run: RunRecord): void {
    const flags = flagsOfRun(run);
    const { out, json } = this.context;
    for (const flag of flags.slice(this.flagsSeen)) {
      if (json) out.json({ event: "flag", run: run.id, stage: run.stage, skill: flag.skill, split: flag.split, step: flag.step, state: flag.state, text: flag.text });
      // A test that did not confirm changes the flag's text, not its state: no news for this line.
      else if (flag.state !== "not-measurable" && this.shownStates.get(flag.id) !== flag.state) out.print(`  ${out.paint(flag.state === "confirmed" ? "red" : flag.state === "recovered" ? "green" : "yellow", flagMark(flag.state))} ${flag.title} ${out.paint("dim", `at step ${flag.step} of ${run.stage}`)}`);
      this.shownStates.set(flag.id, flag.state);
    }
    this.flagsSeen = Math.max(this.flagsSeen, flags.length);
  }

  private finishedLine({ stage, state, spec }: RunRecord): string {
    const { paint } = this.context.out;
    const name = stage.padEnd(this.nameWidth);
    const took = state.startedAt === null || state.endedAt === null ? "" : formatDuration(state.endedAt - state.startedAt);
    if (state.status !== "done") return `${paint("red", "✗")} ${name}  ${state.status}${took ? ` after ${took}` : ""}. ${reasonText(state.reason)}`;
    const parts = [`M${spec.index}`, `${state.step} steps`, took, state.loss === null ? "" : `loss ${formatNumber(state.loss, 3)}`];
    const probing = state.probeShare === null ? "" : paint("dim", `probing ${formatNumber(state.probeShare * 100, 0)} % of the time`);
    return `${paint("green", "✓")} ${name}  ${[...parts, probing].filter(Boolean).join("  ")}`;
  }
}

function jsonEvent(event: ChainEvent): object {
  const head = { event: event.type, stage: event.stage };
  switch (event.type) {
    case "starting":
      return { ...head, position: event.position, of: event.of };
    case "started":
      return { ...head, run: event.run.id, dir: event.run.dir, attempt: event.run.attempt, argv: event.run.argv };
    default: {
      const { id, state } = event.run;
      const { status, step, total, loss, tokensPerSecond, etaSeconds, phase } = state;
      return { ...head, run: id, status, step, total, loss, tokens_per_s: tokensPerSecond, eta_s: etaSeconds, phase, ...(event.type === "finished" ? { reason: state.reason } : {}) };
    }
  }
}
