import type { EvaluationRow } from "../evaluation/evaluationRow.ts";
import { verdictOf } from "../evaluation/evaluationText.ts";
import { t } from "../../util/l10n.ts";
import { formatNumber, formatPlural } from "../format.ts";
import { reasonText } from "../run/reasonText.ts";
import type { TestedMeasure } from "./arenaCharts.ts";
import type { ArenaJobs } from "./arenaPage.ts";
import type { ArenaEntry, Missing, Share } from "./arenaResult.ts";

/** The pass rate that a test is about. */
export function measuredShare({ scores }: ArenaEntry, measure: TestedMeasure): Share | null {
  if (scores === null) return null;
  return { "old-skills": scores.oldSkills, "new-skill": scores.newSkill, ood: scores.ood }[measure];
}

/** Why systems are not there, the same reasons of several systems once. */
export function missingGroups(entries: readonly ArenaEntry[]): { entries: ArenaEntry[]; text: string }[] {
  const byText = new Map<string, ArenaEntry[]>();
  for (const entry of entries) {
    const text = missingTexts(entry).join(" ");
    if (text !== "") byText.set(text, [...(byText.get(text) ?? []), entry]);
  }
  return [...byText].map(([text, of]) => ({ entries: of, text }));
}

/** Why a system is not there, the same reason of several seeds once: sentences. */
export function missingTexts({ missing }: Pick<ArenaEntry, "missing">): string[] {
  const seedsOf = new Map<string, number[]>();
  for (const { seed, why } of missing) {
    const text = missingText(why);
    seedsOf.set(text, [...(seedsOf.get(text) ?? []), seed]);
  }
  return [...seedsOf].map(([text, seeds]) => (seeds.length === 1 ? t("Seed {0}: {1}", seeds.join(), text) : t("Seeds {0}: {1}", seeds.join(", "), text)));
}

function missingText(why: Missing): string {
  if ("sentence" in why) return why.sentence;
  const { stage, status, reason } = why;
  switch (status) {
    case null:
      return t("{0} has not been run.", stage);
    case "queued":
      return t("{0} waits in the queue of its target.", stage);
    case "unreachable":
      return t("{0} is on a target that cannot be reached now; it may well go on there.", stage);
    case "starting":
    case "running":
    case "stopping":
    case "orphan":
      return t("{0} is running.", stage);
    case "done":
      return t("{0} is out of date: it will be run again.", stage);
    default:
      return t("{0} did not finish. {1}", stage, reasonText(reason));
  }
}

/** `gain`, `loss`, or `unsure` for what the corrected test does not show. */
export function verdictClass(row: EvaluationRow): "gain" | "loss" | "unsure" {
  const verdict = verdictOf(row);
  return verdict === "gain" || verdict === "loss" ? verdict : "unsure";
}

/** `< 0.001`, `0.031`: corrected where it is. */
export function pText({ adjusted, p }: Pick<EvaluationRow, "adjusted" | "p">): string {
  const shown = adjusted ?? p;
  return shown === null ? "" : shown < 0.001 ? "< 0.001" : formatNumber(shown, 3);
}

/** `2.5e11`: orders of magnitude are what one compares. */
export function flopsText(flops: number | null): string {
  return flops === null ? "–" : flops === 0 ? "0" : flops.toExponential(1).replace("e+", "e");
}

/** How many seeds will run side by side, and why so many. */
export function jobsText({ count, why }: ArenaJobs): string {
  const seeds = formatPlural(count, "seed");
  switch (why) {
    case "setting":
      return t("{0} at a time, as the setting seesaw.arena.jobs says.", seeds);
    case "cores":
      return t("{0} at a time, with half of this machine's cores.", seeds);
    case "accelerator":
      return t("{0} at a time, so that none shares the accelerator with another; the setting seesaw.arena.jobs changes that.", seeds);
  }
}

/** What a set of prompts is called. */
export function splitName(split: string): string {
  return split === "id" ? "ID" : split === "ood" ? "OOD" : split;
}
