import { Chart, LinearScale, LineController, LineElement, PointElement, type ChartConfiguration, type Plugin } from "chart.js";
import { drawingOrder, type Family, type Plane, type PlanePoint, type SweepCurve } from "../../src/domain/arena/arenaCharts.ts";
import { shapePath, ticks } from "../../src/domain/arena/arenaMarks.ts";
import { formatPercent } from "../../src/domain/format.ts";
import type { Colours } from "./colours.ts";
import { dashes, marks } from "./lineLooks.ts";

Chart.register(LineController, LineElement, PointElement, LinearScale);

export type ArenaPlot = Chart<"line", { x: number; y: number }[]>;

/** Room above the plane for names of what keeps all of the new skill. */
export const headroom = 44;

/** A mark on the plane, in points of the canvas. */
export interface Mark {
  x: number;
  y: number;
  radius: number;
}

/** What the page decides about the plane while it is drawn. */
export interface PlaneLook {
  colours: Readonly<Record<Family, string>>;
  radius(point: PlanePoint): number;
  /** The system that is pointed at. */
  chosen(): string | null;
  /** The axes have their places, after every change of size: names are put beside the marks now. */
  laidOut(plot: ArenaPlot): void;
  /** Lines to names that stand away from their marks. */
  leaders(): readonly { from: { x: number; y: number }; to: { x: number; y: number } }[];
}

/** The plane: axes by Chart.js; intervals, seeds and marks in the shapes of the report. Names are the page's own elements. */
export function drawPlane(canvas: HTMLCanvasElement, plane: Plane, titles: { x: string; y: string }, look: PlaneLook, colours: Colours): ArenaPlot {
  const font = { family: colours.font, size: 11 };
  const axis = (range: { low: number; high: number }, title: string): Record<string, unknown> => ({
    type: "linear",
    min: range.low,
    max: range.high,
    grid: { color: colours.line, drawTicks: false },
    border: { display: false },
    title: { display: true, text: title, align: "end", color: colours.dim, font },
    ticks: { color: colours.dim, font, autoSkip: false, padding: 6, callback: (value: string | number) => formatPercent(Number(value), 0) },
    afterBuildTicks: (scale: { ticks: { value: number }[] }) => {
      scale.ticks = ticks(range).map((value) => ({ value }));
    },
  });
  const config: ChartConfiguration<"line", { x: number; y: number }[]> = {
    type: "line",
    data: { datasets: [] },
    options: { animation: false, maintainAspectRatio: false, events: [], font, layout: { padding: { top: headroom, right: 16 } }, scales: { x: axis(plane.x, titles.x), y: axis(plane.y, titles.y) } },
    plugins: [planePlugin(plane, look, colours)],
  };
  return new Chart(canvas, config);
}

/** Where the marks of a plane stand in its canvas. */
export function marksOf(plot: ArenaPlot, { points }: Plane, radius: (point: PlanePoint) => number): Mark[] {
  return points.map((point) => ({ ...place(plot, point.x.value, point.y.value), radius: radius(point) }));
}

function place({ scales: { x, y } }: ArenaPlot, a: number, b: number): { x: number; y: number } {
  return { x: x?.getPixelForValue(a) ?? 0, y: y?.getPixelForValue(b) ?? 0 };
}

function planePlugin(plane: Plane, look: PlaneLook, colours: Colours): Plugin<"line"> {
  return {
    id: "seesaw-plane",
    afterLayout: (chart) => look.laidOut(chart as ArenaPlot),
    afterDraw: (chart) => {
      const plot = chart as ArenaPlot;
      const { ctx } = plot;
      ctx.save();
      const chosen = look.chosen();
      for (const point of plane.points) {
        const { x: a, y: b } = point;
        const [at, colour] = [place(plot, a.value, b.value), look.colours[point.family]];
        const [lowX, highX, lowY, highY] = [place(plot, a.interval.low, b.value), place(plot, a.interval.high, b.value), place(plot, a.value, b.interval.low), place(plot, a.value, b.interval.high)];
        const faint = chosen === null ? 0.6 : point.id === chosen ? 1 : 0.2;
        ctx.strokeStyle = ctx.fillStyle = colour;
        ctx.globalAlpha = faint;
        ctx.lineWidth = point.id === chosen ? 2 : 1.2;
        line(ctx, lowX, highX);
        line(ctx, lowY, highY);
        if (point.seeds.length < 2) continue;
        for (const seed of point.seeds) {
          const to = place(plot, seed.x, seed.y);
          ctx.globalAlpha = faint / 2;
          ctx.lineWidth = 0.7;
          line(ctx, at, to);
          ctx.globalAlpha = faint;
          ctx.beginPath();
          ctx.arc(to.x, to.y, 1.9, 0, 2 * Math.PI);
          ctx.fill();
        }
      }
      ctx.globalAlpha = 1;
      ctx.lineWidth = 1;
      ctx.strokeStyle = colours.dim;
      // Dotted: a solid one would pass for an interval.
      ctx.setLineDash([1, 3]);
      for (const { from, to } of look.leaders()) line(ctx, from, to);
      ctx.setLineDash([]);
      for (const point of drawingOrder(plane.points)) {
        const { x, y } = place(plot, point.x.value, point.y.value);
        const shape = new Path2D(shapePath(point.family, x, y, look.radius(point)));
        const colour = look.colours[point.family];
        ctx.globalAlpha = chosen === null || point.id === chosen ? 1 : 0.45;
        ctx.lineWidth = point.id === chosen ? 2.5 : 1.6;
        ctx.strokeStyle = colour;
        if (point.family === "joint") ctx.setLineDash([3, 2]);
        else {
          ctx.fillStyle = colours.background;
          ctx.fill(shape);
          ctx.save();
          ctx.globalAlpha *= 0.3;
          ctx.fillStyle = colour;
          ctx.fill(shape);
          ctx.restore();
        }
        ctx.stroke(shape);
        ctx.setLineDash([]);
      }
      ctx.restore();
    },
  };
}

function line(ctx: CanvasRenderingContext2D, from: { x: number; y: number }, to: { x: number; y: number }): void {
  ctx.beginPath();
  ctx.moveTo(from.x, from.y);
  ctx.lineTo(to.x, to.y);
  ctx.stroke();
}

/** Pass rate of every skill over the coefficient of a merge. */
export function drawSweep(canvas: HTMLCanvasElement, { skills, points }: SweepCurve, title: string, palette: readonly string[], colours: Colours): ArenaPlot {
  const font = { family: colours.font, size: 11 };
  const weights = points.map(({ weight }) => weight);
  const [low, high] = [Math.min(...weights), Math.max(...weights)];
  const margin = Math.max(0.05, (high - low) * 0.06);
  const config: ChartConfiguration<"line", { x: number; y: number }[]> = {
    type: "line",
    data: {
      datasets: skills.map((skill, look) => {
        const colour = palette[look % palette.length] ?? colours.text;
        return {
          label: skill,
          data: points.map(({ weight, skills: of }) => ({ x: weight, y: of[skill]?.value ?? Number.NaN })),
          borderColor: colour, borderWidth: 1.75, borderDash: [...(dashes[look % dashes.length] ?? [])],
          pointStyle: marks[look % marks.length] ?? "circle", pointRadius: 4, pointBackgroundColor: colour, pointBorderColor: colour,
          tension: 0, clip: 8,
        };
      }),
    },
    options: {
      animation: false, maintainAspectRatio: false, events: [], font,
      layout: { padding: { top: 8, right: 16 } },
      scales: {
        x: {
          type: "linear", min: low - margin, max: high + margin, grid: { display: false }, border: { color: colours.line },
          title: { display: true, text: title, color: colours.dim, font },
          ticks: { color: colours.dim, font, autoSkip: false, padding: 4, callback: (value) => String(value) },
          afterBuildTicks: (axis) => {
            axis.ticks = weights.map((value) => ({ value }));
          },
        },
        y: { type: "linear", min: 0, max: 1, grid: { color: colours.line, drawTicks: false }, border: { display: false }, ticks: { color: colours.dim, font, stepSize: 0.25, padding: 6, callback: (value) => formatPercent(Number(value), 0) } },
      },
    },
    plugins: [sweepPlugin({ skills, points }, palette, colours)],
  };
  return new Chart(canvas, config);
}

/** The intervals and the seeds of every point; those of unlike skills stand beside each other. */
function sweepPlugin({ skills, points }: Pick<SweepCurve, "skills" | "points">, palette: readonly string[], colours: Colours): Plugin<"line"> {
  return {
    id: "seesaw-sweep",
    beforeDatasetsDraw: (chart) => {
      const { ctx } = chart;
      ctx.save();
      ctx.globalAlpha = 0.6;
      skills.forEach((skill, look) => {
        const beside = (look - (skills.length - 1) / 2) * 4;
        ctx.strokeStyle = ctx.fillStyle = palette[look % palette.length] ?? colours.text;
        for (const { weight, skills: of } of points) {
          const share = of[skill];
          if (share == null) continue;
          const at = (value: number): { x: number; y: number } => ({ x: (chart.scales["x"]?.getPixelForValue(weight) ?? 0) + beside, y: chart.scales["y"]?.getPixelForValue(value) ?? 0 });
          line(ctx, at(share.interval.low), at(share.interval.high));
          if (share.seeds.length < 2) continue;
          for (const seed of share.seeds) {
            const { x, y } = at(seed.value);
            ctx.beginPath();
            ctx.arc(x, y, 1.8, 0, 2 * Math.PI);
            ctx.fill();
          }
        }
      });
      ctx.restore();
    },
  };
}
