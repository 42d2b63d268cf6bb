import { skillsTable } from "../../domain/drift/skillsTable.ts";
import { formatInterval, formatPercent, formatPlural } from "../../domain/format.ts";
import { splitFlags } from "../../domain/report/unwatched.ts";
import { flagsInTimeOrder } from "../../domain/run/flagText.ts";
import { endText, runLine } from "../runWords.ts";
import type { PipelineView } from "../workspaceModel.ts";
import { chooseView, readInput } from "./toolInputs.ts";
import { bounded, markdownTable } from "./toolText.ts";

const mostRuns = 20;

/** The runs of a pipeline, what its checkpoints can do, and its flags. Reads no trace. */
export function listRuns(views: readonly PipelineView[], input: unknown): string {
  const { pipeline: named, stage, count = mostRuns } = readInput(input, { pipeline: "text", stage: "text", count: "count" });
  const view = chooseView(views, named);
  const { listing, chain, shown } = view;
  const runs = listing.runs.filter((run) => stage === undefined || run.stage === stage);
  const shownRuns = runs.slice(0, Math.min(count, mostRuns));
  const lines = [`# Runs of ${view.label}${shown === null ? "" : ` (pipeline ${shown.name})`}`, ""];
  if (stage !== undefined && shown !== null && !shown.stages.some(({ id }) => id === stage)) lines.push(`There is no stage ${JSON.stringify(stage)}: there are ${shown.stages.map(({ id }) => id).join(", ")}.`, "");
  if (shown === null) lines.push(`${view.label} has errors: ${view.diagnostics.find(({ severity }) => severity === "error")?.message ?? "it could not be read"}.`, "");
  if (runs.length === 0) lines.push("No runs are recorded.");
  else {
    lines.push(
      ...markdownTable(
        ["run", "stage", "state", "started from", "why it ended"],
        shownRuns.map(({ id, stage: of, state, spec }) => [id, of, runLine(state), spec.start === undefined ? "" : `${spec.start.label}${spec.start.run === null ? "" : ` (${spec.start.run})`}`, endText(state) ?? ""]),
      ),
    );
    if (runs.length > shownRuns.length) lines.push("", `${formatPlural(runs.length - shownRuns.length, "older run")} not listed.`);
  }
  for (const { message } of listing.unreadable) lines.push("", message);
  if (chain !== null && shown !== null && stage === undefined) {
    const { columns, rows } = skillsTable(shown.skills, chain);
    lines.push("", "## Checkpoints: share of answers that pass, with Wilson's 95 % interval and n", "");
    lines.push(
      ...markdownTable(
        ["skill", ...columns.map(({ label, stage: of, status }) => `${label}${of === null ? " base" : ` ${of}`}${status === "ready" ? "" : ` (${status})`}`)],
        rows.map(({ skill, split, cells }) => [`${skill}.${split}`, ...cells.map(({ accuracy, interval, n, flag }) => (accuracy === null || interval === null ? "not checked" : `${formatPercent(accuracy)} (${formatInterval(interval)}, n = ${n})${flag === null || flag === "not-measurable" ? "" : ` ${flag}`}`))]),
      ),
      ...rows.flatMap(({ skill, split, tooFew }) => (tooFew === null ? [] : ["", `${skill}.${split}: ${tooFew}`])),
      ...columns.flatMap(({ label, status, reason }) => (status === "ready" || reason === null ? [] : ["", `${label}: ${reason}`])),
    );
    const { flags, unwatched } = splitFlags(flagsInTimeOrder(chain));
    lines.push("", "## Flags", "", ...(flags.length === 0 ? ["No flags were raised."] : flags.map(({ text }) => `- ${text}`)), "", ...unwatched);
  }
  return bounded(lines);
}
