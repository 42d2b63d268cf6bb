import { probeSetsOf } from "../../domain/drift/driftSelection.ts";
import type { DriftRow } from "../../domain/drift/drift.ts";
import type { FilmFrame, Filmstrip } from "../../domain/drift/filmstrip.ts";
import { firstDivergence } from "../../domain/drift/firstDivergence.ts";
import { promptText } from "../../domain/drift/promptText.ts";
import { skillsTable } from "../../domain/drift/skillsTable.ts";
import { formatDrift, formatInterval, formatNumber, formatPercent, formatPlural, formatSigned } from "../../domain/format.ts";
import { checkReference, driftOfSet, filmOf, mostDrifted, probeSets, withTraces, type DriftOfSet, type ScoredChain } from "../../domain/report/scoredChain.ts";
import { splitFlags } from "../../domain/report/unwatched.ts";
import { flagsInTimeOrder } from "../../domain/run/flagText.ts";
import { AppError } from "../../util/errors.ts";
import type { TraceStore } from "../../storage/traces/traceStore.ts";
import { scoredChain } from "../sharing/scores.ts";
import type { PipelineView } from "../workspaceModel.ts";
import { chooseView, readInput } from "./toolInputs.ts";
import { bounded, dataNote, markdownTable, quote } from "./toolText.ts";

const fields = { pipeline: "text", skill: "text", split: "text", row: "row", reference: "text", count: "count" } as const;
const mostPrompts = 20;
/** Tokens named per checkpoint: the worst first. */
const mostTokens = 6;

/** Which prompts of a skill drifted, by how much, and which tokens of one of them fell where. */
export async function explainDrift(views: readonly PipelineView[], traces: () => Promise<TraceStore>, input: unknown): Promise<string> {
  const { pipeline, skill, split, row, reference = "own", count = 8 } = readInput(input, fields);
  const view = chooseView(views, pipeline);
  const data = await scoredChain(view, { traces });
  const asked = checkReference(data.chain, reference, "reference");
  if (row !== undefined && skill === undefined) throw new AppError("usage", "A row belongs to a skill: name it as `skill`.");
  const sets = probeSets(data.pipeline, skill, split ?? (row === undefined ? undefined : "id")).map((set) => driftOfSet(data, set, asked));
  const scored = sets.filter(({ table }) => table.rows.length > 0);
  const lines = [`# Drift in ${view.label}`, ""];
  for (const note of new Set(sets.flatMap(({ notes, table }) => [...notes, ...table.notes.flatMap(({ message, comparable }) => (message !== null && (!comparable || scored.length > 0) ? [message] : []))]))) lines.push(`- ${note}`);
  if (scored.length === 0) return bounded([...lines, "", "Nothing that can be shown has been scored yet: run a stage first."]);
  lines.push("", "Numbers are changes of the reference answer's log-probability in nats, summed over its tokens; −1 means e times less likely. `noise`: within what scoring the same weights twice changes. One prompt is one observation (n = 1); the accuracies have Wilson's 95 % interval.", dataNote);
  for (const set of scored) lines.push("", ...setLines(data, set, Math.min(count, mostPrompts)));
  const chosen = row === undefined ? mostDrifted(scored) : rowOf(data, scored, row);
  if (chosen !== null) lines.push("", ...filmLines(data, chosen, asked));
  return bounded(lines);
}

function setLines(data: ScoredChain, { skill, split, against, table }: DriftOfSet, count: number): string[] {
  const labels = data.chain.checkpoints.map(({ label }) => label);
  const place = labels.indexOf(against);
  const shown = table.rows.slice(0, count);
  const standing = skillsTable(data.pipeline.skills.filter(({ id }) => id === skill), data.chain).rows.find((one) => one.split === split);
  const accuracies = standing?.cells.flatMap(({ label, accuracy, interval, n }) => (accuracy === null || interval === null ? [] : `${label} ${formatPercent(accuracy)} (${formatInterval(interval)}, n = ${n})`)) ?? [];
  const { flags, unwatched } = splitFlags(flagsInTimeOrder(data.chain).filter((flag) => flag.skill === skill && flag.split === split));
  return [
    `## ${skill}.${split}, against ${against === "start" ? "the start of each stage" : against} (${formatPlural(table.rows.length, "prompt")}${table.skipped.length === 0 ? "" : `, ${table.skipped.length} more could not be scored`})`,
    "",
    `Passing the check: ${accuracies.join("; ") || "not checked"}.`,
    ...flags.map(({ text }) => `Flag: ${text}`),
    ...unwatched,
    "",
    ...markdownTable(["row", "line", ...labels.map((label, index) => `${label}${label === against ? " (reference)" : index < place ? " (before it)" : ""}`), "prompt"], shown.map((row) => [String(row.row), String(row.line), ...labels.map((label) => cellText(row, label, against)), quote(promptText(row.prompt), 80)])),
    ...(table.rows.length > shown.length ? [`${table.rows.length - shown.length} less drifted prompts are not listed.`] : []),
  ];
}

function cellText({ cells }: DriftRow, label: string, against: string): string {
  const cell = cells.find((one) => one.label === label);
  if (cell === undefined) return "";
  const check = cell.correct === null ? "" : cell.correct ? " passed" : " failed";
  if (label === against) return `0${check}`;
  return `${formatDrift(cell.delta)}${cell.delta !== null && cell.withinNoise ? " noise" : ""}${check}`;
}

/** The probe with this number. It may have been scored under no checkpoint that can be compared. */
function rowOf(data: ScoredChain, sets: readonly DriftOfSet[], row: number): { skill: string; split: "id" | "ood"; row: { hash: string; row: number } } | null {
  for (const { skill, split, table } of sets) {
    const found = table.rows.find((one) => one.row === row);
    if (found !== undefined) return { skill, split, row: found };
    const skipped = table.skipped.find((one) => one.row === row);
    if (skipped !== undefined) throw new AppError("not-found", `Row ${row} (line ${skipped.line}) of ${skill}.${split} was not scored: ${skipped.reason}`);
  }
  const [set] = sets;
  const splits = data.pipeline.skills.filter(({ id }) => id === set?.skill).flatMap(probeSetsOf).map(({ split }) => split);
  throw new AppError("not-found", `${set?.skill}.${set?.split} has no row ${row}: rows are counted from 0, and there are ${set?.table.rows.length}.${splits.length > 1 ? ` Its splits are ${splits.join(" and ")}.` : ""}`);
}

function filmLines(data: ScoredChain, { skill, split, row }: { skill: string; split: "id" | "ood"; row: { hash: string; row: number } }, asked: string): string[] {
  // Of several copies of a row, the one that was named.
  const occurrence = withTraces(data, { skill, split }, ({ readers }) => {
    const [reader] = readers.values();
    return Math.max(0, reader?.probes().filter(({ hash, status }) => hash === row.hash && status === "ok").findIndex((probe) => probe.row === row.row) ?? 0);
  });
  const { film, against } = filmOf(data, { skill, split, hash: row.hash, occurrence }, asked);
  const { probe, frames, tokens } = film;
  return [
    `## Row ${probe.row} of ${skill}.${split}, line ${probe.line}, token by token against ${against === "start" ? "the start of each stage" : against}`,
    "",
    `Prompt ${quote(promptText(probe.prompt), 400)}`,
    `Reference answer ${quote(probe.reference, 400)} (${formatPlural(tokens.length, "token")})`,
    "",
    ...frames.flatMap((frame, index) => frameLines(frame, film, index <= frames.findIndex(({ label }) => label === against))),
  ];
}

/** `before`: the reference itself and what came before it, where nothing can have been lost yet. */
function frameLines({ label, cells, why, note, delta, nll, correct, generated }: FilmFrame, { tokens, probe }: Filmstrip, before: boolean): string[] {
  if (cells === null) return [`- ${label}: ${why ?? "not scored"}`];
  if (before) return [`- ${label}: log-probability ${formatNumber(nll === null ? null : -nll)}; ${checkWords(correct)}; the reference, or before it`];
  const fallen = cells.flatMap((cell, index) => (cell.coloured && cell.class !== "kept" && delta !== null ? [{ cell, index }] : [])).sort((a, b) => (a.cell.delta ?? 0) - (b.cell.delta ?? 0));
  const counts = (["lost", "weakened"] as const).map((kind) => `${fallen.filter(({ cell }) => cell.class === kind).length} ${kind}`).join(", ");
  const parts = [`log-probability ${formatNumber(nll === null ? null : -nll)}`, ...(delta === null ? ["nothing to compare with"] : [`change ${formatDrift(delta)}`, `of ${formatPlural(cells.length, "token")}: ${counts}`]), checkWords(correct)];
  const place = generated === null ? null : firstDivergence(probe.reference, generated);
  return [
    `- ${label}: ${parts.join("; ")}${note === null ? "" : `. ${note}`}`,
    ...fallen.slice(0, mostTokens).map(({ cell, index }) => {
      const token = tokens[index];
      const instead = cell.alternatives.find(({ isReference }) => !isReference);
      return `  - token ${index} ${quote(token?.terminator === true ? "end of answer" : (token?.display ?? ""), 40)}${token?.segment == null ? "" : ` (${token.segment})`} ${cell.class}: ${formatSigned(cell.delta)} to ${formatNumber(cell.logprob)}, rank ${cell.rank + 1}${instead === undefined || cell.rank === 0 ? "" : `; rather ${quote(instead.display, 40)} at ${formatPercent(instead.probability)}`}`;
    }),
    ...(fallen.length > mostTokens ? [`  - ${fallen.length - mostTokens} more tokens fell`] : []),
    ...(generated === null || place === null ? [] : [`  - it writes ${quote(generated, 240)}, which leaves the reference at character ${place}`]),
  ];
}

function checkWords(correct: boolean | null): string {
  return correct === null ? "check not run" : correct ? "check passed" : "check failed";
}
