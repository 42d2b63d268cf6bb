import { createInterface } from "node:readline/promises";
import type { Pipeline } from "../domain/pipeline/pipelineModel.ts";
import { formatBytes } from "../domain/format.ts";
import { cleaningSum, inOrder, kindText, shortName } from "../domain/targets/cleaning.ts";
import type { CleaningPlan, StoreCleared } from "../protocol/cleaning.ts";
import { AppError } from "../util/errors.ts";
import type { CommandContext } from "./context.ts";
import { exitCodes } from "./exitCodes.ts";
import { Interrupts } from "./interrupts.ts";
import { table, type Output } from "./output.ts";

/** `seesaw targets clean NAME`: what could go, and with a yes it goes. */
export async function cleanTarget(context: CommandContext, pipeline: Pipeline, names: readonly string[], yes: boolean): Promise<void> {
  const { out, services } = context;
  const [name] = names;
  if (name === undefined || names.length > 1) throw new AppError("usage", "`seesaw targets clean` takes the name of one target.");
  const interrupts = new Interrupts();
  const options = context.startOptions(undefined, interrupts.signal);
  const busy = async <T>(what: string, work: Promise<T>): Promise<T> => {
    out.rewrite(what);
    return work.finally(() => out.rewrite(""));
  };
  try {
    const plan = await busy(`looking at what lies on ${name}`, services.targetDesk.cleaning(pipeline, name, options));
    if (!context.json) out.print(planText(plan, out));
    const go = plan.items.length > 0 && (yes || (!context.json && (await agreed(plan))));
    const cleared = go ? await busy(`removing ${cleaningSum(plan.items)} from ${name}`, services.targetDesk.clean(pipeline, name, plan.items, options)) : null;
    if (context.json) out.json({ ...plan, pipeline: pipeline.file, cleared });
    else if (cleared !== null) out.print(clearedText(plan, cleared));
    if (cleared !== null && cleared.failed.length > 0) process.exitCode = exitCodes.failed;
  } finally {
    interrupts.dispose();
  }
}

export function planText(plan: CleaningPlan, out: Output): string {
  const head = `${out.paint("bold", plan.target)}  ${plan.address}  ${plan.dir}`;
  const lines = plan.items.length === 0 ? ["Nothing there can go."] : [table(["what", "name", "size", "why it may go"], inOrder(plan.items).map(({ kind, name, bytes, why }) => [kindText(kind), shortName(name), formatBytes(bytes), why]), { out }), `In all ${cleaningSum(plan.items)}.`];
  const { runs, ...others } = plan.kept;
  const shared = Object.values(others).reduce((sum, one) => sum + one, 0);
  const stays = [`${runs} ${runs === 1 ? "run stays" : "runs stay"} there, and ${shared} shared or run's own ${shared === 1 ? "folder" : "folders"}.`, ...plan.staying.map(({ run, why }) => `  ${run}: ${why}`)];
  return [head, ...lines, out.paint("dim", stays.join("\n")), ...plan.notes.map((note) => out.paint("yellow", note))].join("\n");
}

function clearedText(plan: CleaningPlan, { removed, failed, left }: StoreCleared): string {
  const said = [removed.length === 0 ? `Nothing was removed from ${plan.target}.` : `Removed ${cleaningSum(removed)} from ${plan.target}.`];
  if (left > 0) said.push(`${left} of them ${left === 1 ? "stays" : "stay"}: by now somebody needs ${left === 1 ? "it" : "them"}.`);
  return [...said, ...failed.map(({ path, detail }) => `${path} could not be removed: ${detail}.`)].join("\n");
}

/** AppError("usage") where nobody can be asked. */
async function agreed(plan: CleaningPlan): Promise<boolean> {
  if (process.stdin.isTTY !== true) throw new AppError("usage", `Nothing was removed from ${plan.target}: there is no terminal to ask in. To remove all that is listed: \`seesaw targets clean ${plan.target} --yes\`.`);
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await new Promise<boolean>((resolve) => {
      terminal.once("close", () => resolve(false)); // Ctrl-C or Ctrl-D
      terminal.question(`Remove all this from ${plan.address}, for good? [y/N] `).then((answer) => resolve(/^y(es)?$/i.test(answer.trim())), () => resolve(false));
    });
  } finally {
    terminal.close();
  }
}
