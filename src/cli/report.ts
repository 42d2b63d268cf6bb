import type { Command } from "commander";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { renderReport } from "../domain/report/renderReport.ts";
import type { ReportFilm, ReportInput } from "../domain/report/reportModel.ts";
import { compareWith, startReference } from "../domain/drift/driftSelection.ts";
import { summaryDrift } from "../domain/drift/summaryDrift.ts";
import { diskError } from "../targets/local.ts";
import { AppError } from "../util/errors.ts";
import { probeSets, readScores, withTraces, type ScoredChain } from "./chainData.ts";
import type { ContextOf } from "./context.ts";
import { driftOfSet, mostDrifted } from "./drift.ts";
import { replaySummaries } from "./replayData.ts";
import { filmOf } from "./tokens.ts";

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
      const page = renderReport(await reportInput(data));
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

/** Collects what the report shows: one film per skill, the segments of its in-domain probes, replay, remarks. */
export async function reportInput(data: ScoredChain): Promise<ReportInput> {
  const { pipeline, chain, unreadable } = data;
  const films: ReportFilm[] = [];
  const segments: { skill: string; lines: ReturnType<typeof summaryDrift> }[] = [];
  const notes = unreadable.map(({ message }) => message);
  for (const { id: skill } of pipeline.skills) {
    const sets = probeSets(pipeline, skill).map((set) => driftOfSet(data, set, "own"));
    notes.push(...sets.flatMap((set) => set.notes));
    const worst = mostDrifted(sets);
    if (worst) {
      const of = sets.find(({ split }) => split === worst.split)?.table.rows.length ?? 0;
      try {
        const { film, against } = filmOf(data, { skill, split: worst.split, hash: worst.row.hash, occurrence: 0 }, "own");
        films.push({ skill, split: worst.split, against, film, of });
      } catch (error) {
        if (!AppError.is(error)) throw error;
        notes.push(error.message);
      }
    }
    withTraces(data, { skill, split: "id" }, (opened) => segments.push({ skill, lines: summaryDrift(null, compareWith(pipeline, opened, startReference).compared) }));
  }
  const { summaries: replay, problems } = await replaySummaries(data);
  notes.push(...problems);
  return {
    pipeline,
    chain,
    films,
    segments,
    replay,
    notes: [...new Set(notes)],
    made: Date.now(),
    formatTime: (ms) => `${new Date(ms).toISOString().slice(0, 16).replace("T", " ")} UTC`,
  };
}
