import { nothing, svg, type TemplateResult } from "lit";
import { decodeNumber } from "../src/protocol/numbers.ts";
import type { DriftPrompt } from "../src/protocol/webview.ts";

const width = 44;
const height = 14;
const edge = 2;

/** The largest rise and fall of all prompts: the curves of a list share one scale, so that they can be compared. */
export function scaleOf(prompts: readonly DriftPrompt[]): { low: number; high: number } {
  let [low, high] = [0, 0];
  for (const { changes } of prompts) {
    for (const change of changes) {
      const value = decodeNumber(change) ?? 0;
      if (Number.isFinite(value)) [low, high] = [Math.min(low, value), Math.max(high, value)];
    }
  }
  return { low, high };
}

/** One prompt's change per checkpoint as a curve from the reference on; the numbers are in the row's label. */
export function sparkline({ changes, withinNoise }: DriftPrompt, { low, high }: { low: number; high: number }): TemplateResult | typeof nothing {
  const first = changes.findIndex((change) => change !== null);
  if (first < 0) return nothing;
  // Where the comparison starts from there is no change: the curve begins at zero.
  const values = changes.map((change, index) => decodeNumber(change) ?? (index === first - 1 ? 0 : Number.NaN));
  const x = (index: number): number => edge + ((width - 2 * edge) * index) / Math.max(1, changes.length - 1);
  const y = (value: number): number => edge + (height - 2 * edge) * ((high - value) / Math.max(1e-9, high - low));
  const points = values.flatMap((value, index) => (Number.isFinite(value) ? [`${x(index).toFixed(1)},${y(value).toFixed(1)}`] : []));
  const [endX, endY] = points.at(-1)?.split(",") ?? [];
  return svg`<svg class=${withinNoise ? "spark quiet" : "spark"} viewBox="0 0 ${width} ${height}" width=${width} height=${height} aria-hidden="true">
    <line class="zero" x1=${edge} x2=${width - edge} y1=${y(0)} y2=${y(0)} />
    <polyline points=${points.join(" ")} />
    <circle cx=${endX ?? 0} cy=${endY ?? 0} r="1.7" />
  </svg>`;
}
