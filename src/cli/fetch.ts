import { InvalidArgumentError, type Command } from "commander";
import { copyText } from "../domain/targets/copyText.ts";
import { AppError } from "../util/errors.ts";
import { chooseRun } from "./runChoice.ts";
import type { ContextOf } from "./context.ts";

const help = `
Weights stay on the target that trained them; everything else of a run is copied here as it comes. What works on weights
here (live scoring, \`seesaw weights\`, \`seesaw benchmark\`) needs them here. A copy that was cut goes on where it stopped.

Examples:
  seesaw fetch math               the last checkpoint of the newest run of math
  seesaw fetch math --step 40     the one of step 40
  seesaw fetch math --all         all that it saved`;

export function addFetch(program: Command, contextOf: ContextOf): void {
  program
    .command("fetch")
    .argument("<stage-or-run>", "a stage (its newest run) or a run's id")
    .description("copy a checkpoint's weights here from the target that trained it")
    .option("--step <n>", "the checkpoint of this step; default: the last one", stepNumber)
    .option("--all", "every checkpoint of the run")
    .addHelpText("after", help)
    .action(async (named: string, { step, all }: { step?: number; all?: boolean }, command: Command) => {
      const context = contextOf(command);
      const { out, services } = context;
      if (all === true && step !== undefined) throw new AppError("usage", "Give either --step or --all, not both.");
      const pipeline = await context.pipeline();
      const run = await chooseRun(services, pipeline, named);
      const steps = all === true ? run.state.checkpoints.map((one) => one.step) : [step ?? null];
      if (steps.length === 0) throw new AppError("not-found", `Run ${run.id} has saved no checkpoint yet.`);
      const abort = new AbortController();
      const stop = (): void => abort.abort();
      for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, stop);
      const fetched: { folder: string; fetched: boolean }[] = [];
      try {
        for (const one of steps) {
          const onCopy = (what: string, copied: number, total: number): void => out.rewrite(copyText(what, copied, total));
          const done = await services.launcher.fetchCheckpoint(pipeline.root, run.id, one, { ...context.startOptions(undefined, abort.signal), onCopy });
          out.rewrite("");
          fetched.push(done);
          if (!context.json) out.print(done.fetched ? done.folder : `${done.folder} is here already.`);
        }
      } finally {
        for (const signal of ["SIGINT", "SIGTERM"] as const) process.removeListener(signal, stop);
      }
      if (context.json) out.json({ v: 1, run: run.id, checkpoints: fetched });
    });
}

function stepNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError("It must be the number of a step.");
  return Number(text);
}
