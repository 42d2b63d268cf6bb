import { formatPlural } from "../domain/format.ts";
import type { Pipeline } from "../domain/pipeline/pipelineModel.ts";
import type { RunRecord } from "../storage/runs/runStore.ts";
import { followRun } from "../targets/followRun.ts";
import { AppError } from "../util/errors.ts";
import type { CommandContext } from "./context.ts";
import { exitCodes } from "./exitCodes.ts";

/** How long the second Ctrl-C is waited for. */
const secondChanceMs = 3_000;

/** Ctrl-C, SIGTERM and a closed terminal: the first one stops the following (`signal`), a second one means the run itself. */
export class Interrupts {
  readonly signal: AbortSignal;
  private readonly controller = new AbortController();
  private count = 0;
  private wake = (): void => {};
  private readonly handler = (): void => {
    this.count += 1;
    this.controller.abort();
    this.wake();
  };

  constructor() {
    this.signal = this.controller.signal;
    for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, this.handler);
  }

  /** After the first interrupt: says that the run goes on, waits a moment for a second one, and then stops the run too. */
  async leave(context: CommandContext, pipeline: Pipeline, run: { stage: string; id: string }): Promise<void> {
    process.exitCode = exitCodes.interrupted;
    if (context.json) context.out.json({ event: "interrupted", stage: run.stage, run: run.id });
    context.out.note(`\n${run.stage} goes on without this window (${run.id}). Follow it with \`seesaw logs ${run.stage} -f\`, stop it with \`seesaw stop ${run.stage}\`.`);
    if (!(await this.again(context, "it"))) return;
    await this.ask(context, pipeline, run.id);
    const ended = await this.end(context, pipeline, run.id);
    context.out.note(`${run.stage} was stopped (${ended.state.status}).`);
  }

  /** The same for several runs of a stage. */
  async leaveAll(context: CommandContext, pipeline: Pipeline, stage: string, ids: readonly string[]): Promise<void> {
    process.exitCode = exitCodes.interrupted;
    if (context.json) context.out.json({ event: "interrupted", stage, runs: ids });
    const [only] = ids;
    const stopping = ids.length === 1 ? `\`seesaw stop ${only}\` stops it.` : "`seesaw stop RUN` stops one, `seesaw stop --all` all that runs.";
    context.out.note(`\n${formatPlural(ids.length, "run")} of ${stage} ${ids.length === 1 ? "goes" : "go"} on without this window (${ids.join(", ")}); seeds that had not started do not start. ${stopping}`);
    if (!(await this.again(context, ids.length === 1 ? "it" : "them"))) return;
    // The last ones wait for a place in their array: they are taken out before another gives it up.
    for (const id of [...ids].reverse()) {
      await this.ask(context, pipeline, id).catch((error: unknown) => {
        if (!AppError.is(error, "usage")) throw error; // it has just ended
      });
    }
    const ended = await Promise.all(ids.map((id) => this.end(context, pipeline, id)));
    context.out.note(`Stopped: ${ended.map(({ id, state }) => `${id} (${state.status})`).join(", ")}.`);
  }

  /** Whether a second interrupt came, for which a person at a terminal gets a moment. */
  private async again({ out }: CommandContext, what: string): Promise<boolean> {
    if (process.stdin.isTTY === true && this.count < 2) {
      out.note(out.paint("dim", `Press Ctrl-C again now to stop ${what} as well.`));
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, secondChanceMs);
        this.wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    return this.count >= 2;
  }

  private async ask({ out, services }: CommandContext, { root }: Pipeline, id: string): Promise<void> {
    out.rewrite(`stopping ${id}`);
    await services.launcher.stopRun(root, id, { trusted: true });
  }

  private end({ services: { runs, remotes } }: CommandContext, { root }: Pipeline, id: string): Promise<RunRecord> {
    return followRun(runs, root, id, () => {}, undefined, remotes);
  }

  dispose(): void {
    for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.removeListener(name, this.handler);
  }
}
