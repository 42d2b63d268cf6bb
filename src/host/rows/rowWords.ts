import type { DriftCell } from "../../domain/drift/drift.ts";
import { formatSigned } from "../../domain/format.ts";
import { whyNotReplayed } from "../../domain/rows/whyNotReplayed.ts";
import type { Split } from "../../protocol/runSpec.ts";
import { t } from "../../util/l10n.ts";
import type { LineRow } from "./lineRows.ts";
import type { KnownProbe, RowKnowledge } from "./rowKnowledge.ts";
import type { WorstToken } from "./worstToken.ts";

/** What a click on a row's drift opens: the argument of `seesaw.showDrift`. */
export interface DriftTarget {
  file: string;
  skill: string;
  split: Split;
  row: number;
}

/** One lens over a row. Without a target it is only text. */
export interface RowLens {
  text: string;
  target: DriftTarget | null;
}

/** Colours of a decoration, as what they mean. */
export type RowColour = "passed" | "failed" | "weakened" | "lost" | "plain";

export interface RowMarks {
  marks: string;
  marksColour: RowColour;
  /** Empty where no token fell beyond the noise. */
  token: string;
  tokenColour: RowColour;
}

/** A longer line is no opening bracket of an array that is written over lines. */
const arrayLineLimit = 64 * 1024;
/** Characters of a token that are shown at a line's end. */
const tokenLimit = 24;

/** A line with more characters ends out of sight in most windows, and with it what stands at its end. */
const longLine = 100;

/** What the lenses over a row say; none where there is nothing to say. `length`: characters of the line. */
export function rowLenses(row: LineRow, knowledge: RowKnowledge, length = 0): RowLens[] {
  const replay = replayText(row, knowledge);
  const lenses: RowLens[] = replay === null ? [] : [{ text: replay, target: null }];
  const probes = knowledge.probes.get(row.hashes.full) ?? [];
  for (const probe of probes) lenses.push({ text: `${probes.length > 1 ? `${probe.set.skill}: ` : ""}${driftText(probe)}${length > longLine ? ` · ${marksText(probe)}` : ""}`, target: targetOf(probe) });
  if (probes.length === 0) {
    const text = unscoredText(row, knowledge);
    if (text !== null) lenses.push({ text, target: null });
  }
  return lenses;
}

/**
 * What is said once, over a file that is one JSON array: its rows are not its lines, so nothing can be said over them. Takes
 * the first line that is not blank; null where that is a row, or a whole value that rows follow.
 */
export function arrayText(line: string): string | null {
  if (!/^\ufeff?\s*\[/.test(line) || line.length > arrayLineLimit) return null;
  try {
    JSON.parse(line.replace(/^\ufeff/, ""));
    return null;
  } catch {
    return t("one JSON array: write one row on each line (JSON Lines) to see what is known about its rows");
  }
}

export function targetOf({ pipeline, set, row }: KnownProbe): DriftTarget {
  return { file: pipeline, skill: set.skill, split: set.split, row: row.row };
}

/** `replay: main since search · drawn 14×`, or why not; null for a row that no buffer draws from. */
export function replayText(row: LineRow, knowledge: RowKnowledge): string | null {
  const related = knowledge.membership.relate({ line: 0, ...row.hashes });
  if (related?.relation === "same-row") return related.label;
  const reasons = absences(row, knowledge);
  if (reasons.length === 0) return related?.label ?? null;
  const byReason = new Map<string, string[]>();
  for (const { buffer, reason } of reasons) byReason.set(reason, [...(byReason.get(reason) ?? []), buffer]);
  const several = new Set(reasons.map(({ buffer }) => buffer)).size > 1;
  const texts = [...byReason].map(([reason, buffers]) => `${several ? `${[...new Set(buffers)].join(", ")}: ` : ""}${reason}`);
  // "…: below the quality threshold" alone, where there is but one buffer: the hover names it.
  const words = several ? t("not in the replay buffers: {0}", texts.join("; ")) : t("not in the replay buffer: {0}", texts.join("; "));
  return related === null ? words : `${words} · ${related.label}`;
}

/** Why the row is in none of the buffers that draw from its file; empty where it is in one, or no buffer does. */
export function absences(row: LineRow, { membership, replay, role, probes }: RowKnowledge): { buffer: string; stage: string; reason: string }[] {
  if (membership.of(row.hashes.full).length > 0) return [];
  return replay.flatMap(({ spec, record }) => {
    const origins = spec.from.filter(({ stage }) => role.stages.includes(stage));
    return origins.map(({ stage }) => ({ buffer: record.buffer, stage: record.stage, reason: whyNotReplayed({ value: row.value, isProbe: probes.has(row.hashes.full) }, spec, stage, record) }));
  });
}

/** `drift −7.9 nats at M2 · lost since M2`. */
export function driftText({ row }: KnownProbe): string {
  return [changeText(row.cells, row.withinNoise), historyText(row.cells)].filter((part) => part !== null).join(" · ");
}

function changeText(cells: readonly DriftCell[], withinNoise: boolean): string {
  const compared = cells.filter((cell): cell is DriftCell & { delta: number } => cell.delta !== null);
  const last = compared.at(-1);
  if (last === undefined) {
    const scored = cells.filter(({ nll }) => nll !== null).map(({ label }) => label);
    return scored.length === 0 ? t("no drift: not scored") : t("no drift yet: scored at {0}, nothing to compare", scored.join(", "));
  }
  if (withinNoise) return t("drift within the noise");
  const worst = compared.reduce((a, b) => (b.delta > a.delta ? b : a));
  const shown = worst.delta > 0 && !worst.withinNoise ? worst : last;
  const now = shown === last ? "" : t(", {0} at {1}", formatSigned(-last.delta, 1), last.label);
  return t("drift {0} nats at {1}{2}", formatSigned(-shown.delta, 1), shown.label, now);
}

/** When the check failed after it had passed; null where it was never run, or is as it always was. */
function historyText(cells: readonly DriftCell[]): string | null {
  const checked = cells.filter(({ correct }) => correct !== null);
  const passed = checked.findLastIndex(({ correct }) => correct === true);
  if (checked.length === 0) return null;
  if (passed < 0) return t("never answered right");
  if (passed < checked.length - 1) return t("lost since {0}", checked[passed + 1]?.label ?? "");
  const first = checked.findIndex(({ correct }) => correct === true);
  const lost = checked.slice(first, passed).findLastIndex(({ correct }) => correct === false);
  if (lost < 0) return null;
  return t("back since {0}", checked[first + lost + 1]?.label ?? "");
}

/** For a row of a scored probe file that has no scores: why. */
export function unscoredText(row: LineRow, { scored, skipped }: RowKnowledge): string | null {
  const reason = skipped.get(row.hashes.full);
  if (reason !== undefined) return t("not scored: {0}", reason);
  return scored ? t("no scores: edited or added since the probes were scored") : null;
}

/** What stands at the end of a probe's line. Within the noise nothing is coloured. */
export function rowMarks({ row }: KnownProbe, worst: WorstToken | null): RowMarks {
  const checked = row.cells.filter(({ correct }) => correct !== null);
  const last = checked.at(-1)?.correct;
  const wasRight = checked.some(({ correct }) => correct === true);
  const plain = row.withinNoise || last === undefined || (last === false && !wasRight);
  return {
    marks: marksText({ row }),
    marksColour: plain ? "plain" : last === true ? "passed" : "failed",
    token: worst === null || row.withinNoise ? "" : t("‘{0}’ {1} at {2}", shorten(worst.display), formatSigned(worst.delta, 1), worst.label),
    tokenColour: worst === null || row.withinNoise || worst.tokenClass === "kept" ? "plain" : worst.tokenClass,
  };
}

/** The check under every checkpoint: `M0 ✗  M1 ✓  M2 ✗`. */
function marksText({ row }: Pick<KnownProbe, "row">): string {
  return row.cells.map(({ label, correct }) => `${label} ${correct === null ? "–" : correct ? "✓" : "✗"}`).join("  ");
}

function shorten(text: string): string {
  const characters = Array.from(text);
  return characters.length > tokenLimit ? `${characters.slice(0, tokenLimit).join("")}…` : text;
}
