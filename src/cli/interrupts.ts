import type { Pipeline } from "../domain/pipeline/pipelineModel.ts";
import { followRun } from "../targets/followRun.ts";
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
    const waits = process.stdin.isTTY === true;
    context.out.note(`\n${run.stage} goes on without this window (${run.id}). Follow it with \`seesaw logs ${run.stage} -f\`, stop it with \`seesaw stop ${run.stage}\`.`);
    if (waits && this.count < 2) {
      context.out.note(context.out.paint("dim", "Press Ctrl-C again now to stop it as well."));
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, secondChanceMs);
        this.wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    if (this.count < 2) return;
    context.out.rewrite(`stopping ${run.id}`);
    await context.services.launcher.stopRun(pipeline.root, run.id, { trusted: true });
    const ended = await followRun(context.services.runs, pipeline.root, run.id, () => {}, undefined, context.services.remotes);
    context.out.note(`${run.stage} was stopped (${ended.state.status}).`);
  }

  dispose(): void {
    for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.removeListener(name, this.handler);
  }
}
