import type { Family, PlanePoint, TestedMeasure } from "../../src/domain/arena/arenaCharts.ts";
import type { ArenaEntry, ArenaResult, Share } from "../../src/domain/arena/arenaResult.ts";
import { verdictClass } from "../../src/domain/arena/arenaText.ts";
import type { EvaluationRow } from "../../src/domain/evaluation/evaluationRow.ts";
import { formatCount, formatInterval, formatPercent, formatPlural } from "../../src/domain/format.ts";
import { t } from "../../src/util/l10n.ts";

/** What a system is called: the result has its title in English. */
export function systemName({ kind, title }: Pick<ArenaEntry, "kind" | "title">): string {
  const share = /(\d+) %/.exec(title)?.[1] ?? "";
  const rest = title.replace(/^[^,]*, /, "");
  switch (kind) {
    case "chain":
      return t("the chain, no remedy");
    case "replay":
      return t("replay {0} %", share);
    case "together":
      return t("replay {0} %, experts and router", share);
    case "experts":
      return t("experts and router");
    case "joint":
      return t("joint training");
    case "self-distill":
      return t("self-distillation");
    case "oracle-sft":
      return t("oracle SFT");
    case "distill":
      return rest === title ? title : t("distillation, {0}", rest);
    case "merge":
      return t("merge, {0}", mergeName(rest));
  }
}

function mergeName(rest: string): string {
  const [, method = rest, chain, weight] = /^(.*?)( of M1 to the end)?(?:, weight ([\d.]+))?$/.exec(rest) ?? [];
  const of = chain === undefined ? method : t("{0} of M1 to the end", method);
  return weight === undefined ? of : t("{0}, weight {1}", of, weight);
}

export function familyName(family: Family): string {
  const names: Record<Family, string> = {
    chain: t("the chain"),
    replay: t("replay"),
    tuning: t("fine-tuning on own or specialists' answers"),
    distill: t("distillation"),
    merge: t("merging"),
    experts: t("experts and router"),
    joint: t("joint training (upper bound)"),
  };
  return names[family];
}

export function measureTitle(measure: TestedMeasure): string {
  const names: Record<TestedMeasure, string> = { "old-skills": t("old skills"), "new-skill": t("new skill"), ood: "OOD" };
  return names[measure];
}

/** What the corrected test says, in a word or two. */
export function verdictText(row: EvaluationRow): string {
  const verdict = verdictClass(row);
  if (verdict !== "unsure") return verdict === "gain" ? t("gain") : t("loss");
  if (row.estimate === null || row.p === null) return "";
  return row.tooFew === null ? t("not shown") : t("too few prompts");
}

export function shareText({ value, interval }: Share): string {
  return t("{0} (95 % interval {1})", formatPercent(value), formatInterval(interval));
}

/** Everything that the plane shows of a system. */
export function pointSentence(point: PlanePoint): string {
  const seeds = point.seeds.length < 2 ? "" : ` ${t("Seeds: {0}.", point.seeds.map(({ seed, x, y }) => `${seed}: ${formatPercent(x, 0)} / ${formatPercent(y, 0)}`).join(", "))}`;
  const cost = point.tokens === null ? "" : ` ${t("Its own stages trained on {0}.", formatPlural(Math.round(point.tokens), "token"))}`;
  return `${t("Old skills {0}, new skill {1}.", shareText(point.x), shareText(point.y))}${seeds}${cost}`;
}

/** What the reader must know besides the numbers. */
export function noteTexts({ seeds, entries }: ArenaResult): string[] {
  return [
    t("A difference is one between these remedies with these settings, on this model, these skills and this data: it does not say how they would rank elsewhere, or each tuned with care."),
    ...(seeds.length < 3 ? [t("With fewer than three seeds, intervals hardly know how much the seed decides; those of a single seed are over prompts only.")] : []),
    ...(entries.some(({ sweep }) => sweep !== null) ? [t("The points of a sensitivity curve are measured on the prompts of the table: its best point, picked afterwards, would flatter the merge.")] : []),
    ...(entries.some(({ kind }) => kind === "joint") ? [t("Joint training sees all rows at once, which a chain cannot: it is an upper bound, not a remedy.")] : []),
    t("Specialists that several remedies need as teachers are counted apart, not against their budgets."),
  ];
}

export function countText(value: number | null): string {
  return value === null ? "–" : formatCount(Math.round(value));
}
