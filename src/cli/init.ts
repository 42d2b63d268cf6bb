import type { Command } from "commander";
import { statSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { diskError } from "../targets/local.ts";
import { pipelineFileName } from "../targets/pipelineFile.ts";
import { AppError } from "../util/errors.ts";
import type { ContextOf } from "./context.ts";
import { pipelineTemplate } from "./pipelineTemplate.ts";

export function addInit(program: Command, contextOf: ContextOf): void {
  program
    .command("init")
    .argument("[folder]", "where to write seesaw.yaml", ".")
    .description("write a commented seesaw.yaml to start from; an existing one is never touched")
    .addHelpText("after", "\nExamples:\n  seesaw init\n  seesaw init experiments/chain-a")
    .action(async (folder: string, _options: object, command: Command) => {
      const context = contextOf(command);
      const dir = resolve(context.cwd, folder);
      if (!statSync(dir, { throwIfNoEntry: false })?.isDirectory()) throw new AppError("not-found", `${dir} is no folder: create it first.`);
      const file = join(dir, pipelineFileName);
      try {
        await writeFile(file, pipelineTemplate(basename(dir)), { flag: "wx" });
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "EEXIST") throw new AppError("usage", `${file} exists already and was left as it is: remove it first if you want a new one.`);
        throw diskError(file, error);
      }
      if (context.json) context.out.json({ v: 1, file });
      else context.out.print(`Wrote ${file}. Fill in your model and data, then \`seesaw validate\` and \`seesaw run --all\`.`);
    });
}
