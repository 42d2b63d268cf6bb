import { formatInterval, formatNumber, formatPercent } from "../format.ts";
import { html, type Html } from "../report/html.ts";
import { drawingOrder, mostTokens, radiusOf, type Plane, type PlanePoint } from "./arenaCharts.ts";
import { shapePath, ticks } from "./arenaMarks.ts";
import { nearestPoint, placeLabels } from "./placeLabels.ts";

const width = 900;
const height = 560;
const area = { left: 56, top: 64, width: width - 76, height: height - 118 };
/** Labels may stand above the plot as well: what keeps all of the new skill has its mark on the upper edge. */
const room = { left: area.left + 2, top: 4, width: area.width + 16, height: area.height + 56 };
/** Advance of a letter at 11 px, on the safe side: the page has no fonts of its own. */
const letter = 6.3;

/** The plane as a drawing: intervals as whiskers, every seed as a small point, the area of a mark as tokens. */
export function planeSvg(plane: Plane, old: string, fresh: string): Html {
  const x = (value: number): number => round(area.left + (area.width * (value - plane.x.low)) / (plane.x.high - plane.x.low));
  const y = (value: number): number => round(area.top + area.height * (1 - (value - plane.y.low) / (plane.y.high - plane.y.low)));
  const most = mostTokens(plane.points);
  const marks = plane.points.map(({ x: a, y: b, tokens, title }) => ({ x: x(a.value), y: y(b.value), radius: radiusOf(tokens, most), width: title.length * letter, height: 14 }));
  const labels = placeLabels(marks, room);
  const bottom = area.top + area.height;
  return html`<svg class="chart plane" viewBox="0 0 ${width} ${height}" role="img" aria-label="Share of old skills restored against share of the new skill kept, of ${plane.points.length} systems; the table below has the numbers">
${ticks(plane.x).map((value) => html`<line class="grid" x1="${x(value)}" x2="${x(value)}" y1="${area.top}" y2="${bottom}"/><text class="tick mid" x="${x(value)}" y="${bottom + 16}">${formatPercent(value, 0)}</text>`)}
${ticks(plane.y).map((value) => html`<line class="grid" x1="${area.left}" x2="${area.left + area.width}" y1="${y(value)}" y2="${y(value)}"/><text class="tick" x="${area.left - 6}" y="${y(value) + 4}">${formatPercent(value, 0)}</text>`)}
<text class="axis end" x="${area.left + area.width}" y="${height - 10}">old skills restored: mean pass rate of ${old} →</text>
<text class="axis end" transform="translate(14 ${area.top}) rotate(-90)">new skill kept: pass rate of ${fresh} →</text>
${plane.points.map((point, index) => seedMarks(point, marks[index] as { x: number; y: number }, x, y))}
${plane.points.map((point) => whiskers(point, x, y))}
${labels.map((label, index) => {
    const mark = marks[index] as { x: number; y: number };
    if (!label.far) return null;
    const end = nearestPoint(label, mark.x, mark.y);
    return html`<line class="leader" x1="${mark.x}" y1="${mark.y}" x2="${round(end.x)}" y2="${round(end.y)}"/>`;
  })}
${drawingOrder(plane.points).map((point) => {
    const { x: at, y: down, radius } = marks[plane.points.indexOf(point)] as { x: number; y: number; radius: number };
    return html`<g class="f-${point.family}${point.family === "joint" ? " hollow" : ""}"><path class="shape" d="${shapePath(point.family, at, down, radius)}"><title>${pointText(point)}</title></path></g>`;
  })}
${labels.map(({ left, top, width: wide, height: high }, index) => html`<rect class="ground" x="${round(left - 1)}" y="${round(top)}" width="${round(wide + 1)}" height="${high}" rx="2"/><text class="name${plane.points[index]?.family === "chain" ? " strong" : ""}" x="${round(left)}" y="${round(top + 11)}">${plane.points[index]?.title}</text>`)}
</svg>`;
}

function whiskers({ family, x: { value: a, interval: wide }, y: { value: b, interval: high } }: PlanePoint, x: (v: number) => number, y: (v: number) => number): Html {
  return html`<g class="f-${family}"><line class="whisker" x1="${x(wide.low)}" x2="${x(wide.high)}" y1="${y(b)}" y2="${y(b)}"/><line class="whisker" x1="${x(a)}" x2="${x(a)}" y1="${y(high.low)}" y2="${y(high.high)}"/></g>`;
}

function seedMarks({ family, seeds }: PlanePoint, mean: { x: number; y: number }, x: (v: number) => number, y: (v: number) => number): Html | null {
  if (seeds.length < 2) return null;
  return html`<g class="f-${family}">${seeds.map((one) => html`<line class="ray" x1="${mean.x}" y1="${mean.y}" x2="${x(one.x)}" y2="${y(one.y)}"/><circle class="seed" cx="${x(one.x)}" cy="${y(one.y)}" r="1.9"><title>seed ${one.seed}: ${formatPercent(one.x, 0)} old, ${formatPercent(one.y, 0)} new</title></circle>`)}</g>`;
}

export function pointText({ title, x, y, seeds, tokens }: PlanePoint): string {
  return `${title}: old skills ${formatPercent(x.value)} (95 % CI ${formatInterval(x.interval)}), new skill ${formatPercent(y.value)} (${formatInterval(y.interval)}), ${seeds.length === 1 ? "1 seed" : `${seeds.length} seeds`}${tokens === null ? "" : `, ${formatNumber(tokens, 0)} tokens`}`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
