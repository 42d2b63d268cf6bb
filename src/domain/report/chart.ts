import { formatInterval, formatNumber, formatPercent, formatSigned } from "../format.ts";
import { flagMark } from "../drift/skillsTable.ts";
import { Html, html } from "./html.ts";
import type { CurvePoint, SkillCurves, StageSpan } from "./reportModel.ts";

/** One picture per skill: accuracy above, log-probability below, over all steps of the chain. */
const width = 520;
const left = 46;
const right = 12;
const accuracyTop = 34;
const accuracyHeight = 92;
const logprobTop = 158;
const logprobHeight = 82;
const height = 258;

export function skillChart(curves: SkillCurves, spans: readonly StageSpan[]): Html {
  const last = Math.max(1, ...spans.map(({ to }) => to));
  const x = (value: number): number => round(left + ((width - left - right) * value) / last);
  const accuracyY = (value: number): number => round(accuracyTop + accuracyHeight * (1 - value));
  const values = curves.splits.flatMap(({ logprob }) => logprob.map(({ y }) => y));
  const [low, high] = niceRange(values);
  const logprobY = (value: number): number => round(logprobTop + logprobHeight * (1 - (value - low) / (high - low)));
  const own = spans.find(({ stage }) => stage === curves.ownStage);
  const bottom = logprobTop + logprobHeight;
  return html`<svg class="chart" viewBox="0 0 ${width} ${height}" role="img" aria-label="${describe(curves)}">
${own ? html`<rect class="own" x="${x(own.from)}" y="${accuracyTop - 14}" width="${round(x(own.to) - x(own.from))}" height="${bottom - accuracyTop + 14}"/>` : null}
${spans.map(({ from, to, stage, label }) => html`<line class="border" x1="${x(to)}" x2="${x(to)}" y1="${accuracyTop - 14}" y2="${bottom}"/><text class="stage${stage === curves.ownStage ? " mine" : ""}" x="${round((x(from) + x(to)) / 2)}" y="${accuracyTop - 20}">${stage}</text><text class="tick mid" x="${x(to)}" y="${height - 6}">${label}</text>`)}
<text class="tick mid" x="${x(0)}" y="${height - 6}">M0</text>
${[0, 0.5, 1].map((value) => html`<line class="grid" x1="${left}" x2="${width - right}" y1="${accuracyY(value)}" y2="${accuracyY(value)}"/><text class="tick" x="${left - 6}" y="${accuracyY(value) + 3}">${formatPercent(value, 0)}</text>`)}
${[low, 0, high].filter((value, index, all) => all.indexOf(value) === index && (value === 0 || Math.abs(logprobY(value) - logprobY(0)) > 11)).map((value) => html`<line class="${value === 0 ? "grid zero" : "grid"}" x1="${left}" x2="${width - right}" y1="${logprobY(value)}" y2="${logprobY(value)}"/><text class="tick" x="${left - 6}" y="${logprobY(value) + 3}">${formatSigned(value, 0)}</text>`)}
<text class="axis" x="${left}" y="${logprobTop - 10}">log-probability of the answers against M0, nats</text>
${curves.splits.map(({ split, accuracy, logprob }) => html`${band(accuracy, split, x, accuracyY)}${line(accuracy, split, x, accuracyY)}${line(logprob, split, x, logprobY)}${dots(accuracy, split, x, accuracyY, accuracyTitle)}${dots(logprob, split, x, logprobY, ({ label, y }) => `${label}: ${formatSigned(y)} nats`)}`)}
${marks(curves, x)}
</svg>`;
}

function line(points: readonly CurvePoint[], split: string, x: (v: number) => number, y: (v: number) => number): Html | null {
  if (points.length < 2) return null;
  return html`<polyline class="curve ${split}" points="${points.map((point) => `${x(point.x)},${y(point.y)}`).join(" ")}"/>`;
}

/** The 95 % intervals of the in-domain accuracy; those of both splits would hide each other. */
function band(points: readonly CurvePoint[], split: string, x: (v: number) => number, y: (v: number) => number): Html | null {
  if (split !== "id" || points.length < 2) return null;
  const top = points.map((point) => `${x(point.x)},${y(point.interval?.high ?? point.y)}`);
  const low = points.map((point) => `${x(point.x)},${y(point.interval?.low ?? point.y)}`).reverse();
  return html`<polygon class="band" points="${[...top, ...low].join(" ")}"/>`;
}

function dots(points: readonly CurvePoint[], split: string, x: (v: number) => number, y: (v: number) => number, title: (point: CurvePoint) => string): Html[] {
  return points.map((point) => html`<circle class="dot ${split}" cx="${x(point.x)}" cy="${y(point.y)}" r="2.6"><title>${split === "id" ? "in-domain" : "OOD"}, ${title(point)}</title></circle>`);
}

function accuracyTitle({ label, y, interval }: CurvePoint): string {
  return `${label}: ${formatPercent(y)}${interval ? ` (95 % CI ${formatInterval(interval)})` : ""}`;
}

/** Flag marks stand on the top edge; marks at the same step share one place. */
function marks({ marks: all }: SkillCurves, x: (v: number) => number): Html[] {
  const places = new Map<number, typeof all>();
  for (const mark of all) if (mark.entry.state !== "not-measurable") places.set(mark.x, [...(places.get(mark.x) ?? []), mark]);
  return [...places].map(([at, here]) => {
    const states = here.map(({ entry }) => entry.state);
    const worst = (["confirmed", "drifting", "recovered"] as const).find((state) => states.includes(state)) ?? "recovered";
    return html`<text class="mark ${worst}" x="${x(at)}" y="${accuracyTop - 4}">${flagMark(worst)}<title>${here.map(({ entry }) => `${entry.stage} step ${entry.step}: ${entry.title}`).join("\n")}</title></text>`;
  });
}

/** Ends of an axis that hold all values and 0, at one or two leading digits. */
export function niceRange(values: readonly number[]): [number, number] {
  const low = Math.min(0, ...values);
  const high = Math.max(0, ...values);
  if (low === 0 && high === 0) return [-1, 1];
  const unit = 10 ** Math.floor(Math.log10(Math.max(high, -low)));
  const step = unit >= 1 ? unit / 2 : 1;
  return [Math.floor(low / step) * step, Math.ceil(high / step) * step];
}

function describe({ skill, splits }: SkillCurves): string {
  const parts = splits.flatMap(({ split, accuracy }) => {
    const [first, end] = [accuracy[0], accuracy.at(-1)];
    return first && end ? [`${split === "id" ? "in-domain" : "OOD"} accuracy ${formatPercent(first.y, 0)} at ${first.label}, ${formatPercent(end.y, 0)} at ${end.label}`] : [];
  });
  return `${skill}: ${parts.join("; ") || "not scored"}`;
}

function round(value: number): number {
  return Number(formatNumber(value, 1).replace("−", "-"));
}
