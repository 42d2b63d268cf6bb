import { t } from "../../util/l10n.ts";
import { formatBytes, formatCount, formatDuration, formatNumber, formatPlural } from "../format.ts";
import { momentName } from "./assumptions.ts";
import type { Fit } from "./devices.ts";
import type { Compared, CostComparison } from "./measured.ts";
import type { MemoryParts } from "./memory.ts";
import type { StageCost } from "./stageCost.ts";

/** The name of a part of memory. */
function partName(part: keyof MemoryParts): string {
  const names: Record<keyof MemoryParts, string> = {
    weights: t("weights"),
    adapters: t("LoRA adapters"),
    gradients: t("gradients"),
    optimizer: t("optimizer"),
    activations: t("activations"),
    logits: t("logits and loss"),
    cache: t("KV cache"),
    reference: t("reference model"),
    teachers: t("teachers"),
    copies: t("16-bit copies, buckets"),
    probes: t("probes"),
    heap: t("heap fragments, late libraries"),
  };
  return names[part];
}

function fitName(fit: Fit): string {
  return fit === "yes" ? t("fits") : fit === "tight" ? t("tight") : t("does not fit");
}

/** `[part, bytes, share]` of the peak, the largest first, without what is nothing. */
export function memoryRows({ memory }: StageCost): [name: string, bytes: string, share: string][] {
  if (memory === null) return [];
  return (Object.entries(memory.parts) as [keyof MemoryParts, number][])
    .filter(([, bytes]) => bytes > 0)
    .sort(([, a], [, b]) => b - a)
    .map(([part, bytes]) => [partName(part), formatBytes(bytes), `${formatNumber((100 * bytes) / memory.peak, 0)} %`]);
}

/** `[size, fits?, experts float32, experts bfloat16]`. */
export function sizeRows({ sizes }: StageCost): [size: string, fit: string, full: string, half: string][] {
  return sizes.map(({ label, fit, experts }) => [label, fitName(fit), formatCount(experts.float32), formatCount(experts.bfloat16)]);
}

/** `[kind of work, model, tokens, FLOPs, rule]`. */
export function workRows({ work }: StageCost): [what: string, model: string, tokens: string, flops: string, rule: string][] {
  return work.map(({ what, model, tokens, flops, rule }) => [what, model, formatCount(tokens.nominal), formatFlops(flops), rule]);
}

/** The price in a few lines, for the question before a stage starts: memory, whether it fits, tokens, work, time. */
export function summaryLines(cost: StageCost): string[] {
  const { memory, device, fit, distill } = cost;
  if (memory === null) return [];
  const largest = memoryRows(cost).slice(0, 3).map(([name, bytes]) => `${name} ${bytes}`).join(", ");
  const fits = device?.memory != null && fit !== null ? ` ${t("{0}: {1}.", device.name, fitName(fit))}` : device === null || device.cuda ? ` ${fitSentence(cost)}` : "";
  const lines = [`${t("Memory: {0} at the peak, {1} ({2}).", rangeOfBytes(memory), momentName(memory.moment), largest)}${fits}`];
  const work = workSentence(cost);
  if (work !== null) lines.push(work);
  if (distill !== null) lines.push(t("Teachers online: {0}; offline: {1} and {2} on disk.", rangeOfBytes(distill.online.memory), rangeOfBytes(distill.offline.memory), formatBytes(distill.offline.diskBytes)));
  return lines;
}

/** `Fits in 24 GB.`, or where it begins to fit. */
export function fitSentence({ sizes }: Pick<StageCost, "sizes">): string {
  const first = sizes.find(({ fit }) => fit === "yes");
  const tight = sizes.find(({ fit }) => fit === "tight");
  if (first === undefined) return tight === undefined ? t("It fits in no single device of up to 141 GB.") : t("It is tight in {0}, and fits in no single device of up to 141 GB.", tight.label);
  const fits = first === sizes[0] ? t("Fits in {0}.", first.label) : t("Fits in {0} and more.", first.label);
  return tight === undefined ? fits : `${fits} ${t("Tight in {0}.", tight.label)}`;
}

function workSentence({ steps, tokens, flops, time }: StageCost): string | null {
  if (flops === 0) return null;
  const parts = [...(steps === null ? [] : [formatPlural(steps, "step")]), ...(tokens > 0 ? [formatPlural(Math.round(tokens), "token")] : []), formatFlops(flops)].join(", ");
  if (time === null) return t("Work: {0}.", parts);
  const [about, low, high] = [time.seconds, time.low, time.high].map(formatDuration) as [string, string, string];
  return time.from === "measured" ? t("Work: {0}; about {1} ({2} to {3}), by what earlier runs took.", parts, about, low, high) : t("Work: {0}; about {1} ({2} to {3}), assumed.", parts, about, low, high);
}

/** `13 GB (12 to 16 GB)`. */
export function rangeOfBytes({ peak, low, high }: { peak: number; low: number; high: number }): string {
  return t("{0} ({1} to {2})", formatBytes(peak), formatBytes(low), formatBytes(high));
}

/** `4.2 PFLOP`. */
export function formatFlops(flops: number): string {
  const units = ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP", "ZFLOP"];
  let value = flops;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value >= 9.95 ? formatNumber(value, 0) : formatNumber(value, 1)} ${units[unit] as string}`;
}

/** `[what, predicted, measured, ratio, in the range?]`. */
export function comparisonRows({ rows }: CostComparison): [what: string, predicted: string, measured: string, ratio: string, inside: string][] {
  const names: Record<Compared["what"], string> = { memory: "peak memory", seconds: "training time", tokens: "trained tokens" };
  return rows.map(({ what, predicted, measured, ratio, inside }) => {
    const text = what === "memory" ? formatBytes : what === "seconds" ? formatDuration : formatCount;
    const before = predicted === null ? "–" : what === "tokens" ? text(predicted.expected) : `${text(predicted.expected)} (${text(predicted.low)} to ${text(predicted.high)})`;
    return [names[what], before, text(measured), ratio === null ? "–" : formatNumber(ratio, 2), inside === null ? "" : inside ? "yes" : "no"];
  });
}
