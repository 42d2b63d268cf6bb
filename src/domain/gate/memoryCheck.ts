import { formatBytes, formatCount } from "../format.ts";
import { measuredPeak } from "../cost/measured.ts";
import type { StageCost } from "../cost/stageCost.ts";
import type { GateInput, GateItem } from "./gate.ts";

const title = "Memory tested with the number of experts";

/** What is known of the memory of base and experts together. */
export interface MemoryFacts {
  /** The price of the router's stage on the device that is asked for; null without such a stage or device. */
  plan: StageCost | null;
}

/**
 * The router's run holds the frozen base and all its experts: its measured peak is the test. It has to have been made with as
 * many experts as the pipeline now has, and to fit the device where one is known.
 */
export function memoryCheck({ pipeline, routers, memory: { plan } }: Pick<GateInput, "pipeline" | "routers" | "memory">): GateItem {
  const item = { id: "memory" as const, title };
  const stage = pipeline.stages.find(({ recipe }) => recipe === "router");
  const wanted = stage === undefined ? pipeline.stages.filter(({ recipe }) => recipe === "experts").length : expertsOf(stage.options);
  if (stage === undefined || wanted === 0) return { ...item, state: "missing", found: [wanted === 0 ? "The pipeline has no experts." : `There are ${formatCount(wanted)} experts, but no router that loads them together.`], todo: ["Add a stage of the recipe router over the experts: its run loads the base and all of them, and records the peak."] };
  const run = routers.find((one) => one.run.state.cost !== null)?.run ?? null;
  if (run === null) return { ...item, state: "missing", found: [`No run of ${stage.id} has told its peak memory.`], todo: [`seesaw run ${stage.id}, then seesaw plan ${stage.id} --measured`] };
  const cost = run.state.cost as NonNullable<typeof run.state.cost>;
  const tested = expertsOf(run.spec.options ?? {});
  const peak = measuredPeak(cost);
  const found = [`${run.id} held the base and ${formatCount(tested)} ${tested === 1 ? "expert" : "experts"}: ${formatBytes(peak)} at the peak on ${run.state.device ?? "its device"}${cost.memory.kind === "resident" ? ", Python itself not counted" : ""}.`];
  if (tested < wanted) return { ...item, state: "failed", found, todo: [`The pipeline has ${formatCount(wanted)} experts by now: seesaw run ${stage.id}`] };
  const device = plan?.device ?? null;
  if (plan === null || plan.memory === null || device === null || device.memory === null) return { ...item, state: "met", found, todo: [] };
  found.push(`Planned for ${device.name}: ${formatBytes(plan.memory.peak)} of ${formatBytes(device.memory)}; the measured peak ${peak <= device.memory ? "fits" : "does not fit"}.`);
  const fits = peak <= device.memory && plan.fit !== "no";
  return { ...item, state: fits ? "met" : "failed", found, todo: fits ? [] : [`Lower the rank of the adapters, or choose a larger device: seesaw plan ${stage.id} --device <size> tells how many experts fit.`] };
}

function expertsOf(options: Readonly<Record<string, unknown>>): number {
  const experts = options["experts"];
  return typeof experts === "object" && experts !== null ? Object.keys(experts).length : 0;
}
