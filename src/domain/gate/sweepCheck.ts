import type { ChainRun } from "../run/chain.ts";
import { formatCount } from "../format.ts";
import type { GateInput, GateItem } from "./gate.ts";

const title = "Merge coefficients swept";
/** Fewer points are no curve. */
const leastPoints = 3;

/** A finished merge. */
export interface MergeRun {
  run: ChainRun;
  /** Whether its folder has a merge-report.json that can be read. */
  reported: boolean;
}

/** The same models merged by the same method with at least three coefficients, each checked on the skills. */
export function sweepCheck({ pipeline, merges }: Pick<GateInput, "pipeline" | "merges">): GateItem {
  const item = { id: "sweep" as const, title };
  const recorded = merges.filter(({ run, reported }) => reported && run.state.evals.length > 0);
  const sweeps = new Map<string, Map<string, ChainRun>>();
  for (const { run } of recorded) {
    const { what, coefficient } = keyOf(run);
    const points = sweeps.get(what) ?? new Map<string, ChainRun>();
    if (!points.has(coefficient)) points.set(coefficient, run);
    sweeps.set(what, points);
  }
  const [best] = [...sweeps].sort(([, a], [, b]) => b.size - a.size);
  const found = best === undefined ? [] : [`${best[0].split("\n")[0] ?? ""}: ${formatCount(best[1].size)} ${best[1].size === 1 ? "coefficient" : "coefficients"} (${[...best[1].keys()].sort((a, b) => a.localeCompare(b, "en", { numeric: true })).join("; ")}), each with its checks.`];
  const silent = merges.filter(({ reported }) => !reported);
  if (silent.length > 0) found.push(`${silent.map(({ run }) => run.id).join(", ")} ${silent.length === 1 ? "has" : "have"} no merge-report.json and ${silent.length === 1 ? "does" : "do"} not count.`);
  if (best !== undefined && best[1].size >= leastPoints) return { ...item, state: "met", found, todo: [] };
  const stages = pipeline.stages.filter(({ recipe }) => recipe === "merge").map(({ id }) => id);
  const how = stages.length === 0 ? "Add merge stages of the same models" : `Run ${stages.join(", ")}, or add merge stages of the same models`;
  return { ...item, state: "missing", found: found.length > 0 ? found : ["No merge with its report and checks is recorded."], todo: [`${how} that differ in the weight only (such as 0.3, 0.5 and 0.7): ${formatCount(leastPoints)} points at least. seesaw arena does it for all remedies.`] };
}

/** What a merge does besides its coefficients, and the coefficients. Its first line is for people. */
function keyOf({ spec }: ChainRun): { what: string; coefficient: string } {
  const options = spec.options ?? {};
  const models = (Array.isArray(options["models"]) ? options["models"] : []).map((one: unknown): { name: string; weight: unknown } => {
    if (typeof one === "string") return { name: one, weight: null };
    const { model, weight } = one as { model?: unknown; weight?: unknown };
    return { name: String(model), weight: weight ?? null };
  });
  const { models: _models, weight, ...rest } = options;
  const weights = models.map((one) => one.weight).filter((one) => one !== null);
  const coefficient = [weight === undefined ? "" : String(weight), weights.length === 0 ? "" : weights.join(" + ")].filter(Boolean).join(", ") || "default";
  return { what: `${String(options["method"] ?? "merge")} of ${models.map(({ name }) => name).join(", ")}\n${JSON.stringify(rest, Object.keys(rest).sort())}`, coefficient };
}
