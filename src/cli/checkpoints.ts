import type { Command } from "commander";
import { formatInterval, formatPercent } from "../domain/format.ts";
import { flagMark, skillsTable, type SkillsTable } from "../domain/drift/skillsTable.ts";
import type { FlagState } from "../protocol/journal.ts";
import { noteUnreadable, readChain, type ChainData } from "./chainData.ts";
import type { ContextOf } from "./context.ts";
import { table, type Output } from "./output.ts";

export function addCheckpoints(program: Command, contextOf: ContextOf): void {
  program
    .command("checkpoints")
    .description("accuracy of every skill at every checkpoint M0 … MN, with 95 % intervals and flags")
    .addHelpText("after", "\nExamples:\n  seesaw checkpoints\n  seesaw checkpoints --json | jq '.rows[] | {skill, split, cells}'")
    .action(async (_options: object, command: Command) => {
      const context = contextOf(command);
      const data = await readChain(context.services, await context.pipeline());
      const skills = skillsTable(data.pipeline.skills, data.chain);
      if (context.json) context.out.json(checkpointsJson(data, skills));
      else context.out.print(checkpointsText(skills, context.out));
      noteUnreadable(data, context.out);
    });
}

/** Skills × checkpoints: `100.0 %  (94.3–100.0)  ✗`. */
export function checkpointsText({ columns, rows }: SkillsTable, out: Output): string {
  const header = ["skill", ...columns.map(({ label, stage, status }) => `${label}${stage === null ? " base" : ` ${stage}`}${status === "ready" ? "" : ` (${status})`}`)];
  let last = "";
  const lines = rows.map(({ skill, split, cells }) => {
    const name = `${skill === last ? " ".repeat(skill.length) : skill} ${split === "id" ? "ID" : "OOD"}`;
    last = skill;
    return [
      name,
      ...cells.map(({ accuracy, interval, flag, stale }) => {
        if (accuracy === null || interval === null) return out.paint("dim", "–");
        const mark = flag === null || flag === "not-measurable" ? "" : ` ${flagPaint(flag, flagMark(flag), out)}`;
        const range = out.paint("dim", `(${formatInterval(interval, 0).replace(" %", "")})`);
        return `${out.paint(stale ? "dim" : accuracyStyle(accuracy), formatPercent(accuracy, 0).padStart(5))} ${range}${mark}`;
      }),
    ];
  });
  const notes = [
    "Share of answers that pass the skill's check, with Wilson's interval (95 % CI).",
    [...new Set(rows.flatMap(({ cells }) => cells.flatMap(({ flag }) => (flag === null || flag === "not-measurable" ? [] : flag))))].map((state) => `${flagMark(state)} ${flagNames[state]}`).join("   "),
    ...rows.flatMap(({ skill, split, tooFew }) => (tooFew === null ? [] : [`${skill} ${split}: ${tooFew}`])),
    ...columns.flatMap(({ label, status, reason }) => (status === "ready" ? [] : [`${label}: ${reason ?? status}`])),
  ];
  return [table(header, lines, { out }), "", ...notes.filter((note) => note !== "").map((note) => out.paint("dim", note))].join("\n");
}

const flagNames: Record<FlagState, string> = { drifting: "drifting", confirmed: "loss confirmed in this stage", recovered: "recovered", "not-measurable": "not measurable" };

export function flagPaint(state: FlagState, text: string, out: Output): string {
  return out.paint(({ confirmed: "red", drifting: "yellow", recovered: "green", "not-measurable": "dim" } as const)[state], text);
}

function accuracyStyle(accuracy: number): "green" | "yellow" | "red" {
  return accuracy >= 0.8 ? "green" : accuracy >= 0.4 ? "yellow" : "red";
}

function checkpointsJson({ pipeline, chain }: ChainData, { columns, rows }: SkillsTable): object {
  return {
    v: 1,
    pipeline: pipeline.file,
    checkpoints: columns.map((column, index) => ({ ...column, step: chain.checkpoints[index]?.step ?? null, path: chain.checkpoints[index]?.path ?? null, run: chain.checkpoints[index]?.run?.id ?? null })),
    rows: rows.map(({ skill, split, cells, tooFew }) => ({ skill, split, too_few: tooFew, cells })),
  };
}
