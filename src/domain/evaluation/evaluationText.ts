import { t } from "../../util/l10n.ts";
import { formatNumber, formatP, formatPercent, formatPlural, formatSigned } from "../format.ts";
import type { Correction } from "../statistics/corrections.ts";
import type { EvaluationRow, Question } from "./evaluationRow.ts";

/** The heading of a question's table. */
export function questionTitle(question: Question): string {
  switch (question) {
    case "retention": return t("Retention of old skills");
    case "new-skill": return t("Gain of the new skill");
    case "ood": return t("OOD robustness");
    case "routing": return t("Routing");
    case "transfer": return t("Transfer between stages");
    case "seesaw": return t("Seesaw index");
    case "churn": return t("Churn since each skill's own stage");
    case "benchmark": return t("Benchmarks");
    case "against-baseline": return t("Against the baseline");
  }
}

/** What a row is about: `math ID`, `all skills`, `paraphrase`. */
export function rowSubject({ question, skill, split }: EvaluationRow): string {
  if (question === "seesaw") return split ?? "";
  const set = split === "id" ? "ID" : split === "ood" ? "OOD" : split === "benchmark" ? "" : split ?? "";
  return `${skill ?? (question === "routing" ? t("all prompts") : t("mean of skills"))}${set === "" ? "" : ` ${set}`}`;
}

export function measureName({ measure }: Pick<EvaluationRow, "measure">): string {
  switch (measure) {
    case "retention": return t("kept share");
    case "gain": return t("gain");
    case "ood-shift": return t("OOD less ID change");
    case "ood-accuracy": return t("OOD pass rate");
    case "routing-accuracy": return t("accuracy");
    case "routing-accuracy-balanced": return t("accuracy, mean of skills");
    case "routing-regret": return t("regret");
    case "bwt": return t("backward transfer");
    case "fwt": return t("forward transfer");
    case "seesaw-index": return t("index");
    case "seesaw-index-all": return t("index, all stages");
    case "forgotten": return t("1→0 forgotten");
    case "learned": return t("0→1 learned");
    case "old-skills": return t("old skills");
    case "new-skill": return t("new skill");
    case "ood": return "OOD";
    case "all-skills": return t("all skills");
    case "skill": return t("skill");
    case "benchmark": return "";
    default: return measure;
  }
}

/** The estimate in the unit of its row: `+12.5`, `87.3 %`, `0.42`. */
export function estimateText({ estimate, unit }: Pick<EvaluationRow, "estimate" | "unit">): string {
  if (estimate === null) return "–";
  return unit === "points" ? formatSigned(100 * estimate, 1) : unit === "index" ? formatNumber(estimate, 2) : formatPercent(estimate, 1);
}

export function intervalText({ interval, unit }: Pick<EvaluationRow, "interval" | "unit">): string {
  if (interval === null) return "";
  const show = (value: number): string => (unit === "points" ? formatSigned(100 * value, 1) : unit === "index" ? formatNumber(value, 2) : formatNumber(100 * value, 1));
  return t("{0} to {1}", show(interval.low), show(interval.high));
}

/** `12.1` points; `none` where no drop of any size would show. */
export function dropText({ smallestDrop, resolution }: Pick<EvaluationRow, "smallestDrop" | "resolution">): string {
  if (resolution === null) return "";
  return smallestDrop === null ? t("none") : formatNumber(100 * smallestDrop, 1);
}

/** One or two words for a table: what the corrected test says, and no more. For programs; people get `verdictText`. */
export function verdictOf(row: Pick<EvaluationRow, "estimate" | "p" | "adjusted" | "tooFew" | "unit">, level = 0.05): "" | "too few" | "not shown" | "loss" | "gain" {
  if (row.estimate === null || row.p === null) return "";
  if (row.tooFew !== null) return "too few";
  if ((row.adjusted ?? row.p) > level) return "not shown";
  const change = row.unit === "ratio" ? row.estimate - 1 : row.estimate;
  return change < 0 ? "loss" : "gain";
}

export function verdictText(verdict: ReturnType<typeof verdictOf>): string {
  switch (verdict) {
    case "": return "";
    case "too few": return t("too few");
    case "not shown": return t("not shown");
    case "loss": return t("loss");
    case "gain": return t("gain");
  }
}

/**
 * One row as a sentence. What is not shown is said as such: with the drop that would have gone unseen, never as "unchanged".
 * `level`: of the corrected p-value.
 */
export function rowSentence(row: EvaluationRow, level = 0.05): string {
  if (row.why !== null) return row.why;
  const subject = [measureName(row), rowSubject(row)].filter(Boolean).join(", ");
  const range = row.interval === null ? "" : ` (95 %: ${intervalText(row)})`;
  const value = `${subject}: ${row.unit === "points" ? t("{0} points", estimateText(row)) : estimateText(row)}${range}`;
  if (row.p === null) return `${value}.${row.tooFew === null ? "" : ` ${row.tooFew}`}`;
  if (row.tooFew !== null) return `${value}. ${row.tooFew} ${t("No verdict.")}`;
  const p = row.adjusted ?? row.p;
  const verdict = verdictOf(row, level);
  if (verdict === "loss") return t("{0}: a loss ({1} after correction).", value, formatP(p));
  if (verdict === "gain") return t("{0}: a gain ({1} after correction).", value, formatP(p));
  const unseen = row.smallestDrop === null ? t("With so few prompts no drop of any size would be shown.") : t("That is no proof of none: a drop below {0} points would mostly go unseen here.", dropText(row));
  return `${t("{0}: no change is shown ({1} after correction).", value, formatP(p))} ${unseen}`;
}

/** What a table as a whole does not show. */
export function tableNotes(rows: readonly EvaluationRow[], seeds: readonly number[], correction: Correction): string[] {
  const tests = rows.filter(({ p }) => p !== null).length;
  const notes = [t("Intervals are 95 %, each for itself; p-values are corrected for {0} ({1}). \"Sees\" is the smallest drop a test would show four times in five.", formatPlural(tests, "test"), correction === "holm" ? "Holm" : "Benjamini–Hochberg")];
  if (seeds.length === 1) notes.push(t("One seed: the intervals hold for these weights and other prompts like these. How much another seed of the same training would differ is not in them."));
  else notes.push(t("{0} seeds: the intervals hold for other prompts and other seeds; with few seeds they are wide, as they must be.", seeds.length));
  const left = Math.max(0, ...rows.map(({ leftOut }) => leftOut));
  if (left > 0) notes.push(t("Up to {0} prompts of a set were answered on one side only and are left out.", left));
  return notes;
}
