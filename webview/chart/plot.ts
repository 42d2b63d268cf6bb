import { Chart, LinearScale, LineController, LineElement, PointElement, type ChartConfiguration, type ChartDataset, type Plugin } from "chart.js";
import { formatNumber, formatPercent, formatSigned } from "../../src/domain/format.ts";
import { decodeNumber } from "../../src/protocol/numbers.ts";
import type { ChartPoint, DriftChart } from "../../src/protocol/webview.ts";
import { t } from "../../src/util/l10n.ts";
import type { Colours } from "./colours.ts";
import { changeTicks } from "./stops.ts";

Chart.register(LineController, LineElement, PointElement, LinearScale);

export type Plot = Chart<"line", { x: number; y: number }[]>;
type Line = ChartDataset<"line", { x: number; y: number }[]>;

/** Room above the curves for the names of the stages and the flags. */
const head = 30;

/**
 * Draws the chart: accuracy above, log-probability below, on one axis of steps. `chosen`: where the cursor stands. `ratio`:
 * points of the canvas for each of the screen, for a canvas of a fixed size that is not on the page.
 */
export function drawPlot(canvas: HTMLCanvasElement, chart: DriftChart, colours: Colours, chosen: () => number | null, ratio?: number): Plot {
  const last = Math.max(1, ...chart.stages.map(({ to }) => to), ...chart.splits.flatMap(({ logprob, accuracy }) => [...logprob, ...accuracy].map(({ x }) => x)));
  const font = { family: colours.font, size: 11 };
  const config: ChartConfiguration<"line", { x: number; y: number }[]> = {
    type: "line",
    data: { datasets: chart.splits.flatMap(({ split, accuracy, logprob }) => [lineOf(accuracy, split, "accuracy", colours), lineOf(logprob, split, "drift", colours)]) },
    options: {
      animation: false,
      responsive: ratio === undefined,
      ...(ratio === undefined ? {} : { devicePixelRatio: ratio }),
      maintainAspectRatio: false,
      events: [],
      font,
      layout: { padding: { top: head, right: 14 } },
      scales: {
        x: {
          type: "linear",
          min: 0,
          max: last,
          grid: { display: false },
          border: { color: colours.line },
          ticks: { color: colours.dim, font, autoSkip: false, maxRotation: 0, padding: 4, callback: (value) => tickText(chart, Number(value)) },
          afterBuildTicks: (axis) => {
            axis.ticks = [0, ...chart.stages.map(({ to }) => to)].map((value) => ({ value }));
          },
        },
        // Stacked axes: the first stands lowest. Each leaves room above its curves for its caption.
        drift: panel(changeTicks(chart), 0.5, (value) => formatSigned(value, Number.isInteger(value) ? 0 : 1), colours),
        accuracy: panel([0, 0.5, 1], 0.34, (value) => formatPercent(value, 0), colours),
      },
    },
    plugins: [backdrop(chart, colours, chosen)],
  };
  return new Chart(canvas, config);
}

/** One of the two panels: an axis from its first tick to its last, with `above` of their distance free over them. */
function panel(ticks: number[], above: number, text: (value: number) => string, colours: Colours): Record<string, unknown> {
  const [low, high] = [ticks[0] ?? 0, ticks.at(-1) ?? 1];
  return {
    type: "linear",
    stack: "panels",
    stackWeight: 1,
    position: "left",
    min: low - 0.1 * (high - low),
    max: high + above * (high - low),
    grid: { color: colours.line, drawTicks: false },
    border: { display: false },
    ticks: { color: colours.dim, font: { family: colours.font, size: 11 }, autoSkip: false, padding: 6, callback: (value: string | number) => text(Number(value)) },
    afterBuildTicks: (axis: { ticks: { value: number }[] }) => {
      axis.ticks = ticks.map((value) => ({ value }));
    },
    afterFit: (axis: { width: number }) => {
      axis.width = 46;
    },
  };
}

function lineOf(points: readonly ChartPoint[], split: "id" | "ood", axis: "accuracy" | "drift", colours: Colours): Line {
  const colour = colours[split];
  const dense = points.length > 60;
  return {
    label: `${split} ${axis}`,
    data: points.map(({ x, y }) => ({ x, y: decodeNumber(y) ?? Number.NaN })),
    yAxisID: axis,
    borderColor: colour,
    borderWidth: 1.5,
    borderDash: split === "ood" ? [4, 3] : [],
    pointRadius: dense ? 1 : 2.5,
    pointStyle: split === "ood" ? "rectRot" : "circle",
    pointBackgroundColor: split === "ood" ? colours.background : colour,
    pointBorderColor: colour,
    pointBorderWidth: 1.25,
    tension: 0,
    clip: 8,
  };
}

/** `M2` over its step; steps that would stand on each other are left to the table. */
function tickText(chart: DriftChart, value: number): string | string[] {
  if (value === 0) return ["M0", "0"];
  const here = chart.stages.filter(({ to }) => to === value);
  return here.length === 0 ? "" : [here.map(({ label }) => label).join(" "), formatNumber(value, 0)];
}

/** What Chart.js does not draw: the stages, the intervals, the flags and the cursor. */
function backdrop(chart: DriftChart, colours: Colours, chosen: () => number | null): Plugin<"line"> {
  return {
    id: "seesaw",
    beforeDatasetsDraw: ({ ctx, chartArea: { left, right, top, bottom }, scales: { x: axis, accuracy, drift } }) => {
      if (axis === undefined || accuracy === undefined || drift === undefined) return;
      ctx.save();
      ctx.font = `11px ${colours.font}`;
      ctx.textBaseline = "alphabetic";
      for (const { stage, from, to } of chart.stages) {
        const [start, end] = [axis.getPixelForValue(from), axis.getPixelForValue(to)];
        if (stage === chart.ownStage) {
          ctx.globalAlpha = 0.07;
          ctx.fillStyle = colours.text;
          ctx.fillRect(start, top, end - start, bottom - top);
          ctx.globalAlpha = 1;
        }
        ctx.strokeStyle = colours.line;
        ctx.beginPath();
        ctx.moveTo(Math.round(end) + 0.5, top - 4);
        ctx.lineTo(Math.round(end) + 0.5, bottom);
        ctx.stroke();
        ctx.fillStyle = stage === chart.ownStage ? colours.text : colours.dim;
        ctx.textAlign = "center";
        const name = fitted(ctx, stage, end - start - 4);
        if (name !== "") ctx.fillText(name, (start + end) / 2, 11);
      }
      caption(ctx, t("checks passed, 95 % intervals"), left + 4, accuracy.top + 4, right - left, colours);
      caption(ctx, t("mean change of log p since M0, nats"), left + 4, drift.top + 4, right - left, colours);
      const cursor = chosen();
      if (cursor !== null) {
        const at = Math.round(axis.getPixelForValue(cursor)) + 0.5;
        ctx.strokeStyle = colours.accent;
        ctx.lineWidth = 2;
        ctx.beginPath();
        ctx.moveTo(at, top - 4);
        ctx.lineTo(at, bottom);
        ctx.stroke();
      }
      chart.splits.forEach(({ split, accuracy: points }, place) => {
        ctx.strokeStyle = colours[split];
        ctx.lineWidth = 1.5;
        for (const { x, low, high } of points) {
          if (low === null || high === null) continue;
          // The two sets' intervals stand side by side, or they would hide each other.
          const at = axis.getPixelForValue(x) + (place === 0 ? 0 : 4);
          const [from, to] = [accuracy.getPixelForValue(low), accuracy.getPixelForValue(high)];
          ctx.beginPath();
          for (const end of [from, to]) {
            ctx.moveTo(at - 3, end);
            ctx.lineTo(at + 3, end);
          }
          ctx.moveTo(at, from);
          ctx.lineTo(at, to);
          ctx.stroke();
        }
      });
      ctx.restore();
    },
    afterDatasetsDraw: ({ ctx, chartArea: { top, bottom }, scales: { x: axis } }) => {
      if (axis === undefined) return;
      ctx.save();
      for (const { x, state } of flagPlaces(chart)) {
        const at = Math.round(axis.getPixelForValue(x)) + 0.5;
        ctx.strokeStyle = ctx.fillStyle = colours[state];
        ctx.setLineDash(state === "drifting" ? [3, 3] : []);
        ctx.beginPath();
        ctx.moveTo(at, top - 14);
        ctx.lineTo(at, bottom);
        ctx.stroke();
        ctx.setLineDash([]);
        pennant(ctx, at, top - 14, state);
      }
      ctx.restore();
    },
  };
}

/** One mark per step, the gravest of those that fell together. */
function flagPlaces({ flags }: DriftChart): { x: number; state: "drifting" | "confirmed" | "recovered" }[] {
  const order = ["recovered", "drifting", "confirmed"] as const;
  const places = new Map<number, (typeof order)[number]>();
  for (const { x, state } of flags) {
    if (state === "not-measurable") continue;
    const before = places.get(x);
    if (before === undefined || order.indexOf(state) > order.indexOf(before)) places.set(x, state);
  }
  return [...places].map(([x, state]) => ({ x, state }));
}

/** Full for a confirmed loss, hollow for a drift, down for a recovery: the shape says it without the colour. */
function pennant(ctx: CanvasRenderingContext2D, x: number, y: number, state: "drifting" | "confirmed" | "recovered"): void {
  ctx.beginPath();
  ctx.moveTo(x, y);
  ctx.lineTo(x + 8, y + (state === "recovered" ? 7 : 3.5));
  ctx.lineTo(x, y + 7);
  ctx.closePath();
  if (state === "confirmed") ctx.fill();
  ctx.stroke();
}

/** What a panel shows, on a ground of its own so that it can be read over the curves. */
function caption(ctx: CanvasRenderingContext2D, text: string, x: number, y: number, room: number, colours: Colours): void {
  const shown = fitted(ctx, text, room - 8);
  ctx.textAlign = "left";
  ctx.strokeStyle = colours.background;
  ctx.lineWidth = 3;
  ctx.strokeText(shown, x, y + 8);
  ctx.lineWidth = 1;
  ctx.fillStyle = colours.dim;
  ctx.fillText(shown, x, y + 8);
}

/** The text, cut with `…` where there is no room for it; empty when not even three letters fit. */
function fitted(ctx: CanvasRenderingContext2D, text: string, room: number): string {
  if (ctx.measureText(text).width <= room) return text;
  for (let length = text.length - 1; length >= 3; length -= 1) {
    const cut = `${text.slice(0, length)}…`;
    if (ctx.measureText(cut).width <= room) return cut;
  }
  return "";
}
