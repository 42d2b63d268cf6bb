import type { Command } from "commander";
import type { RunRecord } from "../storage/runs/runStore.ts";
import { followRun } from "../targets/followRun.ts";
import { isActive } from "../targets/standing.ts";
import { AppError } from "../util/errors.ts";
import { chooseRun } from "./runChoice.ts";
import type { ContextOf } from "./context.ts";

/** How long other machines may take to say how their runs are, in ms. */
const askMs = 30_000;

export function addStop(program: Command, contextOf: ContextOf): void {
  program
    .command("stop")
    .argument("[stage-or-run]", "default: the stage that runs now")
    .description("stop a running stage; its checkpoints stay, and `seesaw run STAGE --resume` goes on from them")
    .option("--all", "all that runs")
    .addHelpText("after", "\nExamples:\n  seesaw stop\n  seesaw stop math")
    .action(async (named: string | undefined, options: { all?: boolean }, command: Command) => {
      const context = contextOf(command);
      const { out, services } = context;
      const pipeline = await context.pipeline();
      await services.remotes.refresh(pipeline.root, { signal: AbortSignal.timeout(askMs) });
      const active = (await services.runs.list(pipeline.root)).runs.filter(isActive);
      const chosen = named === undefined ? active : [await chooseRun(services, pipeline, named)];
      const first = chosen[0];
      if (!first) throw new AppError("not-found", "Nothing runs here.");
      if (chosen.length > 1 && !options.all) throw new AppError("usage", `Several runs are under way (${chosen.map(({ id }) => id).join(", ")}): name one, or give --all.`);
      const ended: RunRecord[] = [];
      for (const run of chosen) {
        await services.launcher.stopRun(pipeline.root, run.id, context.startOptions(undefined));
        out.rewrite(`stopping ${run.id}`);
        ended.push(await followRun(services.runs, pipeline.root, run.id, () => {}, undefined, services.remotes));
      }
      if (context.json) out.json({ v: 1, stopped: ended.map(({ id, stage, state }) => ({ id, stage, status: state.status, step: state.step })) });
      else for (const { id, state } of ended) out.print(`${id}: ${state.status} at step ${state.step}`);
    });
}
