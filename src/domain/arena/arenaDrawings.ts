import { formatInterval, formatPercent } from "../format.ts";
import { html, type Html } from "../report/html.ts";
import type { SweepCurve } from "./arenaCharts.ts";
import type { Share } from "./arenaResult.ts";

/** A share on a line from 0 to 100 %: its interval as a bar, the mean as a stroke, every seed as a point. 112 × 16. */
export function dotsSvg({ value, interval, seeds }: Share, split: "id" | "ood"): Html {
  const x = (share: number): number => round(4 + 104 * share);
  return html`<svg class="dots ${split}" viewBox="0 0 112 16" role="img" aria-label="${formatPercent(value)} (95 % CI ${formatInterval(interval)}); ${seeds.map(({ seed, value: one }) => `seed ${seed}: ${formatPercent(one, 0)}`).join(", ")}"><line class="track" x1="4" x2="108" y1="8" y2="8"/><line class="range" x1="${x(interval.low)}" x2="${Math.max(x(interval.high), x(interval.low) + 1)}" y1="8" y2="8"/>${seeds.length < 2 ? null : seeds.map((one, index) => html`<circle class="seed" cx="${x(one.value)}" cy="${index % 2 === 0 ? 5 : 11}" r="1.6"/>`)}<line class="mean" x1="${x(value)}" x2="${x(value)}" y1="2" y2="14"/></svg>`;
}

const width = 520;
const height = 260;
const area = { left: 46, top: 12, right: 76, bottom: 40 };

/** Pass rate of every skill over the coefficient; names stand at the ends of their lines. */
export function sweepSvg({ title, skills, points }: SweepCurve): Html {
  const weights = points.map(({ weight }) => weight);
  const [low, high] = [Math.min(...weights), Math.max(...weights)];
  const x = (weight: number): number => round(area.left + ((width - area.left - area.right) * (weight - low)) / Math.max(high - low, 1e-9));
  const y = (share: number): number => round(area.top + (height - area.top - area.bottom) * (1 - share));
  const last = points.at(-1);
  const heights = spread(skills.map((skill) => y(last?.skills[skill]?.value ?? 0)), 13, area.top + 4, height - area.bottom);
  return html`<svg class="chart sweep" viewBox="0 0 ${width} ${height}" role="img" aria-label="${title}: pass rate of every skill over the weight; the table below has the numbers">
${[0, 0.25, 0.5, 0.75, 1].map((value) => html`<line class="grid" x1="${area.left}" x2="${width - area.right}" y1="${y(value)}" y2="${y(value)}"/><text class="tick" x="${area.left - 6}" y="${y(value) + 3}">${formatPercent(value, 0)}</text>`)}
${weights.map((weight) => html`<text class="tick mid" x="${x(weight)}" y="${height - 22}">${weight}</text>`)}
<text class="axis mid" x="${(area.left + width - area.right) / 2}" y="${height - 6}">weight of the merged update</text>
${skills.map((skill, index) => {
    const known = points.flatMap(({ weight, skills: of }) => (of[skill] == null ? [] : [{ weight, share: of[skill] }]));
    const way = known.map(({ weight, share }) => `${x(weight)},${y(share.value)}`).join(" ");
    // Intervals of unlike skills stand beside each other.
    const beside = (index - (skills.length - 1) / 2) * 3;
    return html`<g class="s${index % 6}"><polyline class="line" points="${way}"/>${known.map(({ weight, share }) => html`<line class="whisker" x1="${x(weight) + beside}" x2="${x(weight) + beside}" y1="${y(share.interval.low)}" y2="${y(share.interval.high)}"/>${share.seeds.length < 2 ? null : share.seeds.map((one) => html`<circle class="seed" cx="${x(weight) + beside}" cy="${y(one.value)}" r="1.6"/>`)}<circle class="mean" cx="${x(weight)}" cy="${y(share.value)}" r="3"><title>${skill}, weight ${weight}: ${formatPercent(share.value)} (95 % CI ${formatInterval(share.interval)})</title></circle>`)}<text class="label" x="${width - area.right + 10}" y="${(heights[index] ?? 0) + 4}">${skill}</text></g>`;
  })}
</svg>`;
}

/** The same heights, in the same order, but at least `gap` apart and between `top` and `bottom` as far as they fit. */
export function spread(heights: readonly number[], gap: number, top: number, bottom: number): number[] {
  const order = heights.map((value, index) => ({ value, index })).sort((a, b) => a.value - b.value);
  const placed = order.map(({ value }) => value);
  for (let i = 1; i < placed.length; i++) placed[i] = Math.max(placed[i] as number, (placed[i - 1] as number) + gap);
  const over = (placed.at(-1) ?? 0) - bottom;
  if (over > 0) {
    placed[placed.length - 1] = bottom;
    for (let i = placed.length - 2; i >= 0; i--) placed[i] = Math.max(top, Math.min(placed[i] as number, (placed[i + 1] as number) - gap));
  }
  const result = new Array<number>(heights.length).fill(0);
  order.forEach(({ index }, place) => (result[index] = placed[place] as number));
  return result;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
