import { compatibility } from "../../domain/drift/compatibility.ts";
import { pairProbes, probeDrift } from "../../domain/drift/drift.ts";
import type { ProbeSet } from "../../domain/drift/driftSelection.ts";
import type { TraceData } from "../../domain/drift/traceData.ts";
import { formatInterval, formatNumber, formatP, formatPercent, formatSigned } from "../../domain/format.ts";
import { probeSets, withTraces, type ScoredChain } from "../../domain/report/scoredChain.ts";
import { meanEstimate } from "../../domain/statistics/means.ts";
import { mcnemarExact, tooFewItems } from "../../domain/statistics/pairs.ts";
import { wilsonInterval } from "../../domain/statistics/shares.ts";
import { AppError } from "../../util/errors.ts";
import { didYouMean } from "../../util/nearest.ts";
import type { TraceStore } from "../../storage/traces/traceStore.ts";
import { scoredChain } from "../sharing/scores.ts";
import type { PipelineView } from "../workspaceModel.ts";
import { chooseView, readInput } from "./toolInputs.ts";
import { bounded, markdownTable } from "./toolText.ts";

/** Two checkpoints of a chain on the same prompts: what was lost, what was gained, and how sure that is. */
export async function compareCheckpoints(views: readonly PipelineView[], traces: () => Promise<TraceStore>, input: unknown): Promise<string> {
  const { pipeline, before, after, skill, split } = readInput(input, { pipeline: "text", before: "text", after: "text", skill: "text", split: "text" });
  const view = chooseView(views, pipeline);
  const data = await scoredChain(view, { traces });
  const [a, b] = [labelOf(data, before, "before"), labelOf(data, after, "after")];
  if (a === b) throw new AppError("usage", `before and after are both ${a}: name two checkpoints.`);
  const notes: string[] = [];
  const rows = probeSets(data.pipeline, skill, split).flatMap((set) => {
    const row = compareSet(data, set, a, b);
    if (typeof row !== "string") return [row];
    notes.push(`- ${set.skill}.${set.split}: ${row}`);
    return [];
  });
  const header = ["probe set", `${a} passed`, `${b} passed`, "lost / gained", "exact McNemar", "mean change of log-probability, nats", "beyond the noise"];
  return bounded([
    `# ${a} against ${b} in ${view.label}`,
    "",
    ...(rows.length === 0 ? ["Nothing could be compared."] : markdownTable(header, rows)),
    "",
    "Passed: share of the same prompts that pass the check, with Wilson's 95 % interval. Lost: passed before and fails after; gained: the other way. The mean change has a 95 % t interval over prompts. p-values are two-sided and not corrected for the number of sets.",
    ...notes,
  ]);
}

function labelOf({ chain }: ScoredChain, named: string | undefined, option: string): string {
  const labels = chain.checkpoints.map(({ label }) => label);
  if (named === undefined) throw new AppError("usage", `Name a checkpoint as \`${option}\`: there are ${labels.join(", ")}.`);
  const found = chain.checkpoints.find(({ label, stage }) => label === named || stage === named);
  if (found === undefined) throw new AppError("not-found", `There is no checkpoint ${JSON.stringify(named)}: there are ${labels.join(", ")}.${didYouMean(named, labels)}`);
  return found.label;
}

/** One line of the table, or the sentence that says why there is none. */
function compareSet(data: ScoredChain, set: ProbeSet, a: string, b: string): string[] | string {
  return withTraces(data, set, ({ readers, problems }) => {
    const [before, after] = [readers.get(a), readers.get(b)];
    for (const [label, trace] of [[a, before], [b, after]] as const) if (trace === undefined) return problems.get(label) ?? `${label} has not been scored on these prompts.`;
    if (before === undefined || after === undefined) return "It has not been scored.";
    const settings = compatibility(before.meta, after.meta);
    if (!settings.comparable) return settings.message ?? "The two were scored with unlike settings.";
    return comparison(`${set.skill}.${set.split}`, before, after);
  });
}

function comparison(name: string, before: TraceData, after: TraceData): string[] {
  const pairs = pairProbes(before.probes(), after.probes());
  const checked = pairs.filter(({ reference, other }) => reference.correct !== null && other.correct !== null);
  const lost = checked.filter(({ reference, other }) => reference.correct === true && other.correct === false).length;
  const gained = checked.filter(({ reference, other }) => reference.correct === false && other.correct === true).length;
  const passed = (which: "reference" | "other"): string => {
    const correct = checked.filter((pair) => pair[which].correct === true).length;
    return checked.length === 0 ? "not checked" : `${formatPercent(correct / checked.length)} (${formatInterval(wilsonInterval(correct, checked.length))}, n = ${checked.length})`;
  };
  const drift = probeDrift(before, after);
  const usable = drift.filter(({ delta }) => Number.isFinite(delta));
  const { mean, interval } = meanEstimate(usable.map(({ delta }) => -delta));
  const few = tooFewItems(pairs.length);
  return [
    `${name}${few === null ? "" : ` (${few})`}`,
    passed("reference"),
    passed("other"),
    checked.length === 0 ? "" : `${lost} / ${gained}`,
    checked.length === 0 ? "" : formatP(mcnemarExact(lost, gained)),
    `${formatSigned(mean)} (${formatNumber(interval.low)} to ${formatNumber(interval.high)}, n = ${usable.length})`,
    `${drift.filter(({ withinNoise }) => !withinNoise).length} of ${drift.length} prompts`,
  ];
}
