import type { Command } from "commander";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { renderReport } from "../domain/report/renderReport.ts";
import { reportInput } from "../domain/report/reportInput.ts";
import { replaySummaries } from "../storage/runs/replaySummaries.ts";
import { diskError } from "../targets/local.ts";
import { readScores } from "./chainData.ts";
import type { ContextOf } from "./context.ts";

export function addReport(program: Command, contextOf: ContextOf): void {
  program
    .command("report")
    .description("write everything known about the chain into one HTML file that opens offline")
    .option("-o, --output <file>", "where to write it", "report.html")
    .addHelpText("after", "\nExamples:\n  seesaw report\n  seesaw report -o /tmp/chain.html")
    .action(async (options: { output: string }, command: Command) => {
      const context = contextOf(command);
      const data = await readScores(context.services, await context.pipeline());
      const file = resolve(context.cwd, options.output);
      const page = renderReport(reportInput(data, await replaySummaries(data), Date.now(), await context.services.flagFacts(data.runs)));
      await writePage(file, page);
      if (context.json) context.out.json({ v: 1, file, bytes: Buffer.byteLength(page) });
      else context.out.print(`Wrote ${file}`);
    });
}

/** Writes beside the file and renames: a report that is open in a browser is never half a page. */
async function writePage(file: string, page: string): Promise<void> {
  const temporary = join(dirname(file), `.${basename(file)}.${process.pid}.tmp`);
  try {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(temporary, page);
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {});
    throw diskError(file, error);
  }
}
