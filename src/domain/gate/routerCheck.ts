import { formatNumber, formatPercent, formatSigned } from "../format.ts";
import type { RouterScore } from "../../protocol/routerReport.ts";
import type { GateInput, GateItem } from "./gate.ts";

const title = "Rule router recorded, and the trained router better by the margin";
/** Points, where a report does not say. */
const usualMargin = 5;

/** A trained router has to beat a plain rule by the margin, with a paired interval that excludes 0; a chain may also go live with the rule alone. */
export function routerCheck({ pipeline, routers }: Pick<GateInput, "pipeline" | "routers">): GateItem {
  const item = { id: "router" as const, title };
  const stages = pipeline.stages.filter(({ recipe }) => recipe === "router");
  const stage = stages[0];
  if (stage === undefined) return { ...item, state: "missing", found: ["The pipeline has no stage of the recipe router."], todo: ["Add experts (recipe: experts, one for each skill) and a stage { recipe: router, options: { experts: { <skill>: <stage> }, rule: tfidf } }."] };
  const newest = routers[0];
  if (newest === undefined) return { ...item, state: "missing", found: [`${stage.id} has no finished run.`], todo: [`seesaw run ${stage.id}`] };
  const { run, report } = newest;
  if (report?.rule == null) return { ...item, state: "missing", found: [`${run.id} recorded no rule router (router-report.json).`], todo: [`seesaw run ${run.stage} --force`] };
  const found = [`Rule router of ${run.id}: ${scoreText(report.rule)}.`];
  const policy = run.spec.options?.["policy"] as { algorithm?: unknown } | undefined;
  if (report.policy === null && policy?.algorithm === "none") return { ...item, state: "met", found: [...found, "No router is trained (policy.algorithm: none): the rule goes live."], todo: [] };
  if (report.policy === null || report.difference === null) return { ...item, state: "missing", found: [...found, "No trained router was compared with it on the same prompts."], todo: [`Set options.policy.algorithm of ${run.stage} to reinforce or grpo (or to none, to go live with the rule), then seesaw run ${run.stage}.`] };
  const { estimate, low, high } = report.difference;
  const margin = report.margin ?? usualMargin;
  const better = estimate >= margin && low > 0;
  found.push(`Trained router: ${scoreText(report.policy)}; ${formatSigned(estimate, 1)} points against the rule (95 % interval ${formatSigned(low, 1)} to ${formatSigned(high, 1)}), ${formatNumber(margin, 1)} are asked for.`);
  if (better) return { ...item, state: "met", found, todo: [] };
  const reason = estimate < margin ? "it is not better by the margin" : "its interval includes 0";
  return { ...item, state: "failed", found, todo: [`The trained router stays out: ${reason}. Train it longer (options.policy.pulls), test it on prompts that a rule cannot tell apart (options.paraphrases), or go live with the rule (options.policy.algorithm: none).`] };
}

function scoreText({ kind, accuracy }: RouterScore): string {
  const sets = Object.entries(accuracy).map(([set, share]) => `${set} ${formatPercent(share, 0)}`).join(", ");
  return [kind, sets].filter(Boolean).join(": ");
}
