import { formatDuration, formatNumber, formatPlural } from "../domain/format.ts";
import type { Pipeline } from "../domain/pipeline/pipelineModel.ts";
import type { SeedList } from "../domain/pipeline/seedList.ts";
import { reasonText } from "../domain/run/reasonText.ts";
import { runSeconds } from "../domain/run/reduceRun.ts";
import type { RunRecord } from "../storage/runs/runStore.ts";
import type { ChainEvent } from "../targets/chainRunner.ts";
import { runSeeds } from "../targets/seedRuns.ts";
import type { LoadedPipeline } from "../targets/pipelineFile.ts";
import { AppError } from "../util/errors.ts";
import { ChainView, eventJson } from "./chainView.ts";
import type { CommandContext } from "./context.ts";
import type { Interrupts } from "./interrupts.ts";
import { oneLine } from "./output.ts";

export interface SeedsCommand {
  stage: string;
  list: SeedList;
  force: boolean;
  detach: boolean;
  python: string | undefined;
  failOn: "drifting" | "confirmed" | undefined;
}

/** `seesaw run STAGE --seeds …`: a run for each seed, and one line about all that are under way. */
export async function runWithSeeds(context: CommandContext, pipeline: Pipeline, { diagnostics }: LoadedPipeline, interrupts: Interrupts, command: SeedsCommand): Promise<void> {
  const { out } = context;
  const { stage, list, force, detach } = command;
  const chain = new ChainView(context, pipeline, interrupts);
  const view = new SeedsView(context, stage, list.seeds);
  chain.announce(stage);
  try {
    const start = { ...context.startOptions(command.python, interrupts.signal), onCopy: chain.copying };
    const result = await runSeeds(context.services, pipeline, diagnostics, { ...start, stage, list, force, detach, onEvent: (seed, event) => view.show(seed, event) });
    out.rewrite("");
    if (!detach) return chain.result(result, command.failOn, ({ id, spec }) => `\`seesaw logs ${id}\` shows its output, \`seesaw run ${stage} --resume --seeds ${spec.seed}\` goes on with it.`);
    if (!context.json && view.going.size > 0) out.print(`${stage} runs with ${formatPlural(view.going.size, "seed")}: \`seesaw status\` shows them all, \`seesaw logs RUN -f\` follows one.`);
  } catch (error) {
    out.rewrite("");
    if (!AppError.is(error, "cancelled") || view.going.size === 0) throw error;
    await interrupts.leaveAll(context, pipeline, stage, [...view.going.values()].map(({ id }) => id));
  } finally {
    chain.close();
  }
}

/** Shows what happens to the runs of several seeds, for people or as JSON lines. */
class SeedsView {
  /** Runs under way, by seed. */
  readonly going = new Map<number, { id: string; words: string }>();
  private readonly context: CommandContext;
  private readonly stage: string;
  private readonly width: number;

  constructor(context: CommandContext, stage: string, seeds: readonly number[]) {
    this.context = context;
    this.stage = stage;
    this.width = Math.max(...seeds.map((seed) => String(seed).length));
  }

  show(seed: number, event: ChainEvent): void {
    const { out, json } = this.context;
    if (json) return out.json({ ...eventJson(event), seed });
    const name = this.name(seed);
    switch (event.type) {
      case "starting":
        return out.live ? out.rewrite(`${name}: reading inputs, checking the environment`) : out.note(`${name}: starting (${event.position} of ${event.of})`);
      case "up-to-date":
        return out.print(`${out.paint("green", "✓")} ${name}  ${out.paint("dim", `up to date (${event.run.id})`)}`);
      case "joined":
      case "started":
        this.going.set(seed, { id: event.run.id, words: "starting" });
        if (event.type === "started") for (const note of event.run.notes) out.note(out.paint("dim", note));
        return out.note(event.type === "joined" ? `${name} already runs as ${event.run.id}: following it.` : `${name} is ${event.run.id}`);
      case "progress":
        this.going.set(seed, { id: event.run.id, words: wordsOf(event.run) });
        return out.rewrite(`${this.stage}: ${[...this.going].map(([one, { words }]) => `seed ${one} ${words}`).join(" · ")}`);
      case "finished":
        this.going.delete(seed);
        out.rewrite("");
        return out.print(this.finishedLine(name, event.run));
    }
  }

  private name(seed: number): string {
    return `${this.stage} seed ${String(seed).padEnd(this.width)}`;
  }

  private finishedLine(name: string, { id, state }: RunRecord): string {
    const { paint } = this.context.out;
    const took = runSeconds(state, Date.now() / 1000);
    const spent = took === null ? "" : formatDuration(took);
    if (state.status !== "done") return `${paint("red", "✗")} ${name}  ${state.status}${spent ? ` after ${spent}` : ""}. ${oneLine(reasonText(state.reason), 400)} (${id})`;
    return `${paint("green", "✓")} ${name}  ${[`${state.step} steps`, spent, state.loss === null ? "" : `loss ${formatNumber(state.loss, 3)}`, id].filter(Boolean).join("  ")}`;
  }
}

function wordsOf({ state }: RunRecord): string {
  return state.status === "running" && state.total > 0 ? `${state.step}/${state.total}` : state.status;
}
