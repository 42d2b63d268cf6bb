import type { Command } from "commander";
import { resolve } from "node:path";
import { formatCount, formatPercent, formatPlural } from "../domain/format.ts";
import { coverageText, leftOutText, nearnessText } from "../domain/rows/bufferText.ts";
import { joinMembership, ReplayMembership, type RowMembership } from "../domain/rows/membership.ts";
import type { RowIndex } from "../storage/rows/rowIndex.ts";
import { AppError } from "../util/errors.ts";
import { readChain } from "./chainData.ts";
import type { CommandContext, ContextOf } from "./context.ts";
import { table } from "./output.ts";
import { replayRecords, replaySummaries } from "../storage/runs/replaySummaries.ts";

const pageLines = 20_000;

export function addReplay(program: Command, contextOf: ContextOf): void {
  program
    .command("replay")
    .argument("[file]", "a dataset file (JSON Lines, also gzip); default: the buffers themselves")
    .description("which rows of a file are in a replay buffer, since when, and how often they were drawn")
    .option("-n, --count <n>", "how many rows to list (0: all)", "50")
    .addHelpText("after", "\nRows are matched by what they say, not by where they stand: a row that moved, or was copied to another file, is found.\n\nExamples:\n  seesaw replay\n  seesaw replay data/math.train.jsonl\n  seesaw replay data/math.train.jsonl -n 0 --json")
    .action(async (file: string | undefined, options: { count: string }, command: Command) => {
      const context = contextOf(command);
      const count = Number(options.count);
      if (!Number.isInteger(count) || count < 0) throw new AppError("usage", `--count takes a whole number, not \`${options.count}\`.`);
      const data = await readChain(context.services, await context.pipeline());
      if (file === undefined) return showBuffers(context, await replaySummaries(data));
      const { records, problems } = await replayRecords(data);
      await showFile(context, resolve(context.cwd, file), new ReplayMembership(records), problems, count);
    });
}

function showBuffers({ out, json }: CommandContext, { summaries, problems }: Awaited<ReturnType<typeof replaySummaries>>): void {
  if (json) return out.json({ v: 1, buffers: summaries, problems });
  if (summaries.length === 0) out.print("No run of this chain has replayed anything yet: add `replay: { buffer: …, ratio: … }` to a stage.");
  else {
    const rows = summaries.map(({ stage, buffer, rows: size, sources, ratio, draws, distinct, dropped }) => [
      stage,
      buffer,
      formatCount(size),
      sources.map((source) => `${source.stage} ${formatCount(source.rows)}`).join(", "),
      formatPercent(ratio, 0),
      formatCount(draws),
      formatCount(distinct),
      leftOutText(dropped),
    ]);
    out.print(table(["stage", "buffer", "rows", "since", "share", "draws", "distinct", "left out"], rows, { right: [2, 4, 5, 6], out }));
    for (const { buffer, coverage = [], nearness = [] } of summaries) for (const line of [...nearness.map(nearnessText), ...coverage.map(coverageText)]) out.print(`${buffer}: ${line}.`);
  }
  for (const problem of problems) out.note(out.paint("yellow", problem));
}

async function showFile({ out, json, services }: CommandContext, path: string, membership: ReplayMembership, problems: string[], count: number): Promise<void> {
  const index = await services.rows();
  const summary = await index.update(path, { turns: true, onProgress: ({ bytes, total }) => out.rewrite(`indexing ${path}  ${formatPercent(total > 0 ? bytes / total : 1, 0)}`) });
  out.rewrite("");
  const found = relate(index, path, summary.lines, membership);
  const all = index.problems(path);
  const bad = all.filter(({ severity }) => severity === "error");
  const shown = count === 0 ? found : found.slice(0, count);
  if (json) {
    return out.json({
      v: 1,
      file: path,
      rows: summary.rows,
      unreadable: summary.unreadable,
      in_replay: found.length,
      members: shown.map(({ line, relation, label, memberships }) => ({ line, relation, label, memberships: memberships.map(({ buffer, since, run, stage, draws, firstStep, lastStep, row }) => ({ buffer, since, run, stage, draws, first_step: firstStep, last_step: lastStep, hash: row.hash, ...(row.near !== undefined && { near: row.near }) })) })),
      notes: summary.notes,
      problems: [...problems, ...bad],
    });
  }
  const exact = found.filter(({ relation }) => relation === "same-row").length;
  out.print(`${path}: ${formatPlural(summary.rows, "row")}, ${formatCount(exact)} of them in a replay buffer${found.length > exact ? `, ${formatCount(found.length - exact)} more related to one` : ""}.`);
  if (shown.length > 0) out.print(table(["line", "membership"], shown.map(({ line, label }) => [String(line), label]), { right: [0], out }));
  if (found.length > shown.length) out.note(out.paint("dim", `${formatCount(found.length - shown.length)} more rows: --count 0 lists all.`));
  for (const { severity, message } of summary.notes) out.note(out.paint(severity === "error" ? "yellow" : "dim", `${path}: ${message}`));
  for (const { line, column, message } of bad.slice(0, 10)) out.note(out.paint("yellow", `${path}:${line}:${column}: ${message}`));
  if (summary.problems.error > Math.min(10, bad.length)) out.note(out.paint("yellow", `${formatPlural(summary.problems.error - Math.min(10, bad.length), "more error")}.`));
  const odd = all.filter(({ severity }) => severity === "warning");
  for (const { line, column, message } of odd.slice(0, 3)) out.note(out.paint("dim", `${path}:${line}:${column}: ${message}`));
  if (summary.problems.warning > Math.min(3, odd.length)) out.note(out.paint("dim", `${formatPlural(summary.problems.warning - Math.min(3, odd.length), "more warning")}.`));
  for (const problem of problems) out.note(out.paint("yellow", problem));
  if (membership.size === 0) out.note(out.paint("dim", "No run of this chain has replayed anything yet."));
}

/** All rows of the file that have to do with replay, page by page. */
function relate(index: RowIndex, path: string, lines: number, membership: ReplayMembership): RowMembership[] {
  const found: RowMembership[] = [];
  if (membership.size === 0) return found;
  for (let first = 1; first <= lines; first += pageLines) found.push(...joinMembership(index.rows(path, first, first + pageLines - 1), membership));
  return found;
}
