import type { Command } from "commander";
import { resolve } from "node:path";
import { confirmationText, planConfirmation, type Confirmation, type ConfirmationPlan } from "../domain/run/confirmation.ts";
import type { Pipeline } from "../domain/pipeline/pipelineModel.ts";
import { AppError } from "../util/errors.ts";
import type { CommandContext, ContextOf } from "./context.ts";
import { Interrupts } from "./interrupts.ts";
import { chooseRun } from "./runChoice.ts";

interface ConfirmOptions {
  prompts?: string;
  split: "id" | "ood";
  count: string;
  python?: string;
}

const help = `
The check of the skill is run on greedy answers of the checkpoint that the stage started from and of the first one saved since
the flag was raised, and tested by McNemar's exact test (one-sided, 5 %). Without --prompts on all rows of the skill's probe
file, which the run has tested itself where it raised the flag; more, and other, prompts say more. Prompts that the stage
trains on are left out. The verdict is kept beside the run (checked/ in its folder), where seesaw flags, seesaw status and the
editor show it with the flag; the run's own journal and flags stay as they are.

Examples:
  seesaw confirm search math --prompts data/math.more.jsonl -n 500
  seesaw confirm search --json`;

export function addConfirm(program: Command, contextOf: ContextOf): void {
  program
    .command("confirm")
    .argument("<run>", "a stage (its newest run) or a run's id")
    .argument("[skill]", "default: the one that a flag stands for")
    .description("hold a flag against the skill's check on further prompts")
    .option("--prompts <file>", "rows with verified answers, as a probe file has them")
    .option("--split <id|ood>", "without --prompts: which probe file", "id")
    .option("-n, --count <n>", "prompts at most", "200")
    .option("--python <path>", "the Python to compute with")
    .addHelpText("after", help)
    .action(async (named: string, skill: string | undefined, options: ConfirmOptions, command: Command) => {
      const context = contextOf(command);
      const count = Number(options.count);
      if (!Number.isInteger(count) || count < 1) throw new AppError("usage", `--count takes a whole number from 1, not \`${options.count}\`.`);
      if (options.split !== "id" && options.split !== "ood") throw new AppError("usage", `--split takes id or ood, not \`${String(options.split)}\`.`);
      const pipeline = await context.pipeline();
      const plan = planConfirmation(await chooseRun(context.services, pipeline, named), skill);
      const prompts = options.prompts === undefined ? plan.run.spec.skills.find(({ id }) => id === plan.skill)?.probes[options.split] : resolve(context.cwd, options.prompts);
      if (prompts === undefined) throw new AppError("usage", `${plan.skill} has no ${options.split} probes: give --prompts.`);
      const found = await asked(context, pipeline, plan, prompts, count, options.python);
      if (context.json) context.out.json({ v: 1, run: plan.run.id, stage: plan.run.stage, skill: plan.skill, step: plan.step, prompts, ...found });
      else context.out.print(confirmationText({ ...plan, stage: plan.run.stage }, found));
    });
}

/** The verdicts, with a live line meanwhile; Ctrl-C stops it. */
async function asked(context: CommandContext, pipeline: Pipeline, plan: ConfirmationPlan, prompts: string, count: number, python: string | undefined): Promise<Confirmation> {
  const interrupts = new Interrupts();
  context.out.rewrite(`asking the start of ${plan.run.stage} and step ${plan.step}`);
  try {
    return await context.services.confirmer.confirm(pipeline, plan, prompts, count, context.startOptions(python, interrupts.signal));
  } finally {
    context.out.rewrite("");
    interrupts.dispose();
  }
}
