import { flagsOfRun } from "../domain/run/flagText.ts";
import { formatDuration, formatNumber } from "../domain/format.ts";
import { ownCommand, type OwnCommand } from "../domain/pipeline/ownCommand.ts";
import type { Pipeline } from "../domain/pipeline/pipelineModel.ts";
import { hidesWatch } from "../domain/run/flagEpisode.ts";
import type { ReportCard } from "../protocol/reportCard.ts";
import { copyText } from "../domain/targets/copyText.ts";
import { reasonText } from "../domain/run/reasonText.ts";
import { runSeconds } from "../domain/run/reduceRun.ts";
import { flagMark } from "../domain/drift/skillsTable.ts";
import type { RunRecord } from "../storage/runs/runStore.ts";
import type { ChainEvent, ChainResult } from "../targets/chainRunner.ts";
import type { CommandContext } from "./context.ts";
import { exitCodes } from "./exitCodes.ts";
import type { Interrupts } from "./interrupts.ts";
import { ProgressLine } from "./progressLine.ts";

/** Between two lines about one copy, in ms. */
const copyingEveryMs = 1_000;

/** Shows what happens to the chain, for people or as JSON lines. */
export class ChainView {
  /** The run that is followed now. */
  current: { stage: string; id: string } | null = null;
  private readonly context: CommandContext;
  private readonly pipeline: Pipeline;
  private readonly progress: ProgressLine;
  private readonly nameWidth: number;
  private readonly interrupts: Interrupts;
  private flagsSeen = 0;
  private readonly shownStates = new Map<string, string>();
  /** The stage that is being started, and what was last said of its copies. */
  private starting = "";
  private said = { what: "", at: 0 };

  private readonly card: ReportCard | null;

  /** `card`: what it says of a detector decides whether a warning is news before the check confirmed it. */
  constructor(context: CommandContext, pipeline: Pipeline, interrupts: Interrupts, card: ReportCard | null = null) {
    this.card = card;
    this.context = context;
    this.pipeline = pipeline;
    this.interrupts = interrupts;
    this.nameWidth = Math.max(...pipeline.stages.map(({ id }) => id.length));
    this.progress = new ProgressLine(context.out, this.nameWidth);
  }

  show(event: ChainEvent): void {
    const { out, json } = this.context;
    if (json) out.json(eventJson(event, event.type === "starting" ? ownCommandOf(this.pipeline, event.stage) : null));
    switch (event.type) {
      case "starting":
        if (!json && !out.live) out.note(`${event.stage}: starting (${event.position} of ${event.of})`);
        else out.rewrite(`${event.stage}: reading inputs, checking the environment`);
        this.announce(event.stage);
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

  /** What is done on another machine before a stage starts there, as it goes on. */
  readonly copying = (what: string, copied: number, total: number): void => {
    const { out, json } = this.context;
    const now = Date.now();
    const news = what !== this.said.what;
    if (!news && now - this.said.at < (json ? copyingEveryMs : 100)) return;
    this.said = { what, at: now };
    if (json) out.json({ event: "copying", stage: this.starting, what, copied, total });
    else if (out.live) out.rewrite(`${this.starting}: ${copyText(what, copied, total)}`);
    else if (news) out.note(`${this.starting}: ${copyText(what, 0, 0)}`);
  };

  /** A program of the person's own is shown before it runs. */
  announce(stage: string): void {
    this.starting = stage;
    const { out, json } = this.context;
    const own = ownCommandOf(this.pipeline, stage);
    if (own === null || json) return;
    out.note(`${stage} runs your own ${own.shell ? "shell line" : "command"} in ${own.cwd ?? this.pipeline.root}:`);
    out.note(`  ${own.line}`);
  }

  /** `after`: what is said of a run that did not finish. */
  result({ runs, failed }: ChainResult, failOn: "drifting" | "confirmed" | undefined, after = stoppedText): void {
    const { out, json } = this.context;
    const states = runs.flatMap((run) => run.state.flags.map(({ state }) => state));
    const flagged = failOn !== undefined && (states.includes("confirmed") || (failOn === "drifting" && states.includes("drifting")));
    if (failed !== null || flagged) process.exitCode = exitCodes.failed;
    if (json) out.json({ event: "result", ok: failed === null, runs: runs.map(({ id, stage, state }) => ({ id, stage, status: state.status })) });
    if (failed && !json) out.note(after(failed));
    if (flagged && !json) out.note(`A flag is ${failOn}: exit code 1, as --fail-on asks.`);
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
      else if (flag.state !== "not-measurable" && (flag.state === "confirmed" || !hidesWatch(this.card, flag.flag)) && this.shownStates.get(flag.id) !== flag.state) out.print(`  ${out.paint(flag.state === "confirmed" ? "red" : flag.state === "recovered" ? "green" : "yellow", flagMark(flag.state))} ${flag.title} ${out.paint("dim", `at step ${flag.step} of ${run.stage}`)}`);
      this.shownStates.set(flag.id, flag.state);
    }
    this.flagsSeen = Math.max(this.flagsSeen, flags.length);
  }

  private finishedLine({ stage, state, spec }: RunRecord): string {
    const { paint } = this.context.out;
    const name = stage.padEnd(this.nameWidth);
    const seconds = runSeconds(state, Date.now() / 1000);
    const took = seconds === null ? "" : formatDuration(seconds);
    if (state.status === "paused") return `${paint("yellow", "‖")} ${name}  paused${took ? ` after ${took}` : ""}. ${reasonText(state.reason)}`;
    if (state.status !== "done") return `${paint("red", "✗")} ${name}  ${state.status}${took ? ` after ${took}` : ""}. ${reasonText(state.reason)}`;
    const parts = [`M${spec.index}`, `${state.step} steps`, took, state.loss === null ? "" : `loss ${formatNumber(state.loss, 3)}`];
    const probing = state.probeShare === null ? "" : paint("dim", `probing ${formatNumber(state.probeShare * 100, 0)} % of the time`);
    return `${paint("green", "✓")} ${name}  ${[...parts, probing].filter(Boolean).join("  ")}`;
  }
}

function stoppedText({ stage, state }: RunRecord): string {
  return state.status === "paused" ? `The chain waits at ${stage}: \`seesaw flags\` says why, \`seesaw run ${stage} --resume\` goes on with it.` : `The chain stopped at ${stage}: \`seesaw logs ${stage}\` shows its output, \`seesaw run ${stage} --resume\` goes on with it.`;
}

function ownCommandOf(pipeline: Pipeline, id: string): OwnCommand | null {
  const stage = pipeline.stages.find((one) => one.id === id);
  return stage === undefined ? null : ownCommand(stage);
}

export function eventJson(event: ChainEvent, own: OwnCommand | null = null): object {
  const head = { event: event.type, stage: event.stage };
  switch (event.type) {
    case "starting":
      return { ...head, position: event.position, of: event.of, ...(own === null ? {} : { command: own }) };
    case "started":
      return { ...head, run: event.run.id, dir: event.run.dir, attempt: event.run.attempt, argv: event.run.argv };
    default: {
      const { id, state } = event.run;
      const { status, step, total, loss, tokensPerSecond, etaSeconds, phase } = state;
      return { ...head, run: id, status, step, total, loss, tokens_per_s: tokensPerSecond, eta_s: etaSeconds, phase, ...(event.type === "finished" ? { reason: state.reason } : {}) };
    }
  }
}
