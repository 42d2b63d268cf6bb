import { Option, type Command } from "commander";
import { formatDrift } from "../domain/format.ts";
import type { DriftCell } from "../domain/drift/drift.ts";
import { startReference } from "../domain/drift/driftSelection.ts";
import { checkReference, driftOfSet, probeSets, type DriftOfSet } from "../domain/report/scoredChain.ts";
import { AppError } from "../util/errors.ts";
import { promptText } from "../domain/drift/promptText.ts";
import { againstHelp, noteUnreadable, readScores } from "./chainData.ts";
import type { ContextOf } from "./context.ts";
import { oneLine, padTo, table, type Output } from "./output.ts";

interface DriftOptions {
  split?: string;
  against: string;
  count: string;
  sort: "worst" | "last";
}

export function addDrift(program: Command, contextOf: ContextOf): void {
  program
    .command("drift")
    .argument("[skill]", "default: all skills")
    .description("the probe prompts, most drifted first: how much less likely each reference answer became")
    .option("--split <id|ood>", "only in-domain or only OOD probes")
    .option("--against <reference>", againstHelp, "own")
    .addOption(new Option("--sort <by>", "the largest fall over the checkpoints, or the last checkpoint's").choices(["worst", "last"]).default("worst"))
    .option("-n, --count <n>", "how many prompts (0: all)", "20")
    .addHelpText("after", "\nNumbers are changes of the answer's log-probability in nats: −1 means e times less likely. Dim: within the rescoring noise.\n\nExamples:\n  seesaw drift\n  seesaw drift math --split id --against M1\n  seesaw drift --json | jq '.sets[].rows[0]'")
    .action(async (skill: string | undefined, options: DriftOptions, command: Command) => {
      const context = contextOf(command);
      const count = Number(options.count);
      if (!Number.isInteger(count) || count < 0) throw new AppError("usage", `--count takes a whole number, not \`${options.count}\`.`);
      const data = await readScores(context.services, await context.pipeline());
      const against = checkReference(data.chain, options.against, "--against");
      const sets = probeSets(data.pipeline, skill, options.split).map((set) => driftOfSet(data, set, against, options.sort));
      if (context.json) context.out.json(driftJson(sets, against, count));
      else context.out.print(driftText(sets, data.chain.checkpoints.map(({ label }) => label), against, count, context.out));
      noteUnreadable(data, context.out);
    });
}

function driftText(sets: readonly DriftOfSet[], labels: readonly string[], against: string, count: number, out: Output): string {
  const all = sets.flatMap(({ skill, split, table: { rows } }) => rows.map((row) => ({ skill, split, row })));
  all.sort((a, b) => (b.row.worst ?? -Infinity) - (a.row.worst ?? -Infinity));
  if (all.length === 0) return [...new Set(sets.flatMap(({ notes }) => notes)), "No probes have been scored yet: start with `seesaw run --all`."][0] ?? "";
  const shown = count === 0 ? all : all.slice(0, count);
  const room = Math.max(20, out.width - 24 - labels.length * 11);
  const rows = shown.map(({ skill, split, row }) => [
    `${skill}.${split}:${row.line}`,
    ...labels.map((label) => driftCell(row.cells.find((cell) => cell.label === label), out)),
    oneLine(promptText(row.prompt), room),
  ]);
  const what = against === "own" ? `against the end of each skill's own stage (${sets.map((set) => `${set.skill} ${set.against}`).filter((text, index, list) => list.indexOf(text) === index).join(", ")})` : against === startReference ? "against the start of each stage" : `against ${against}`;
  const notes = [
    `Change of the reference answer's log-probability in nats, ${what}. ✓ ✗: the check passed or failed there.`,
    ...(all.length > shown.length ? [`${all.length - shown.length} more prompts: --count 0 shows all.`] : []),
    ...new Set(sets.flatMap((set) => [...set.notes, ...set.table.notes.flatMap(({ comparable, message }) => (message !== null && comparable ? [message] : []))])),
    `Token by token: seesaw tokens ${rows[0]?.[0] ?? ""}`,
  ];
  return [table(["prompt", ...labels, "text"], rows, { right: labels.map((_, index) => index + 1), out }), "", ...notes.map((note) => out.paint("dim", note))].join("\n");
}

function driftCell(cell: DriftCell | undefined, out: Output): string {
  if (!cell) return "";
  const check = cell.correct === null ? " " : cell.correct ? out.paint("green", "✓") : out.paint("red", "✗");
  if (cell.delta === null) return `${out.paint("dim", "–")} ${check}`;
  const text = padTo(formatDrift(cell.delta), 6, true);
  const style = cell.withinNoise ? "dim" : cell.delta > 0.7 ? "red" : cell.delta > 0 ? "yellow" : "green";
  return `${out.paint(style, text)} ${check}`;
}

function driftJson(sets: readonly DriftOfSet[], against: string, count: number): object {
  return {
    v: 1,
    against,
    sets: sets.map(({ skill, split, against: reference, table: { rows, notes, skipped }, notes: problems }) => ({
      skill,
      split,
      against: reference,
      notes,
      problems,
      skipped,
      rows: (count === 0 ? rows : rows.slice(0, count)).map(({ withinNoise, cells, ...row }) => ({
        ...row,
        within_noise: withinNoise,
        cells: cells.map(({ label, delta, nll, withinNoise: small, correct, why }) => ({ label, delta_nll: delta, nll, within_noise: small, correct, why })),
      })),
    })),
  };
}
