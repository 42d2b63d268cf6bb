import { formatInterval, formatPercent, formatSigned } from "../../src/domain/format.ts";
import { decodeNumber } from "../../src/protocol/numbers.ts";
import type { Split } from "../../src/protocol/runSpec.ts";
import type { ChartPoint, DriftChart, DriftCheckpoint } from "../../src/protocol/webview.ts";
import { t } from "../../src/util/l10n.ts";

/** Everything known at one step of the chain: a row of the chart's table, and one stop of the keyboard. */
export interface Stop {
  x: number;
  label: string;
  /** The stage whose run this is; null at M0. */
  stage: string | null;
  values: { split: Split; accuracy: ChartPoint | null; logprob: ChartPoint | null }[];
  flags: DriftChart["flags"];
}

export function splitName(split: Split): string {
  return split === "id" ? t("in-domain") : t("OOD");
}

/** The stops of all curves in step order. */
export function stopsOf(chart: DriftChart): Stop[] {
  const stops = new Map<string, Stop>();
  const at = (x: number, label: string): Stop => {
    const key = `${x} ${label}`;
    const known = stops.get(key);
    if (known !== undefined) return known;
    const own = chart.stages.find((stage) => stage.label === label) ?? chart.stages.find(({ stage }) => label.startsWith(`${stage} `));
    const values = chart.splits.map(({ split }) => ({ split, accuracy: null, logprob: null }));
    const stop: Stop = { x, label, stage: own?.stage ?? null, values, flags: [] };
    stops.set(key, stop);
    return stop;
  };
  chart.splits.forEach(({ accuracy, logprob }, index) => {
    for (const [name, points] of [["accuracy", accuracy], ["logprob", logprob]] as const) {
      for (const point of points) {
        const value = at(point.x, point.label).values[index];
        if (value !== undefined) value[name] = point;
      }
    }
  });
  const all = [...stops.values()].sort((a, b) => a.x - b.x);
  for (const flag of chart.flags) all.findLast(({ x }) => x <= flag.x)?.flags.push(flag);
  return all;
}

/** The checkpoint that a stop belongs to: its own, or the one at the end of its stage. -1: it is not shown. */
export function checkpointOf(stop: Stop, checkpoints: readonly DriftCheckpoint[]): number {
  const own = checkpoints.findIndex(({ label }) => label === stop.label);
  return own >= 0 ? own : checkpoints.findIndex(({ stage }) => stage !== null && stage === stop.stage);
}

/** `M2 search`, `search 20`. */
export function stopName({ label, stage }: Stop): string {
  return isCheckpoint(label) ? `${label} ${stage ?? t("base")}` : label;
}

function isCheckpoint(label: string): boolean {
  return /^M\d+$/.test(label);
}

/** `41 % (30–53 %)`. */
export function accuracyText({ y, low, high }: ChartPoint): string {
  const interval = low === null || high === null ? "" : ` (${formatInterval({ low, high }, 0)})`;
  return `${formatPercent(decodeNumber(y), 0)}${interval}`;
}

export function logprobText({ y }: ChartPoint): string {
  return formatSigned(decodeNumber(y), 1);
}

/** A stop as a sentence: what a screen reader says, and what stands under the chart. */
export function stopText(stop: Stop): string {
  const parts = stop.values.flatMap(({ split, accuracy, logprob }) => {
    const known = [...(accuracy === null ? [] : [t("passed {0}", accuracyText(accuracy))]), ...(logprob === null ? [] : [t("log p {0}", logprobText(logprob))])];
    return known.length === 0 ? [] : [`${splitName(split)} ${known.join(", ")}`];
  });
  return [t("{0}, step {1}", stopName(stop), stop.x), ...parts, ...stop.flags.map(({ title }) => title)].join("; ");
}

/** The chart in one line, for when it is closed: how many checks passed at best (the last time so), and how many do now. */
export function summaryOf({ splits }: DriftChart): string {
  const all = splits[0]?.accuracy ?? [];
  const ends = all.filter(({ label }) => isCheckpoint(label));
  const points = ends.length > 0 ? ends : all;
  const last = points.at(-1);
  const best = points.reduce<ChartPoint | undefined>((most, point) => (most === undefined || (decodeNumber(point.y) ?? 0) >= (decodeNumber(most.y) ?? 0) ? point : most), undefined);
  if (best === undefined || last === undefined) return t("not checked yet");
  const percent = ({ y, label }: ChartPoint): string => t("{0} at {1}", formatPercent(decodeNumber(y), 0), label);
  return best === last ? t("passed {0}", percent(last)) : t("passed {0}, {1}", percent(best), percent(last));
}

/** Three or four round numbers that hold every change, zero among them. */
export function changeTicks({ splits }: DriftChart): number[] {
  const values = splits.flatMap(({ logprob }) => logprob.map(({ y }) => decodeNumber(y) ?? 0)).filter(Number.isFinite);
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  const rough = Math.max(high - low, 0.1) / 3;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * unit).find((one) => one >= rough) ?? rough;
  const first = Math.floor(low / step);
  const last = Math.max(first + 1, Math.ceil(high / step));
  return Array.from({ length: last - first + 1 }, (_, index) => Number(((first + index) * step).toPrecision(6)));
}
