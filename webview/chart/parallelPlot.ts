import { Chart, LinearScale, LineController, LineElement, PointElement, type ChartConfiguration } from "chart.js";
import { formatPercent } from "../../src/domain/format.ts";
import type { Colours } from "./colours.ts";
import { dashes, marks } from "./lineLooks.ts";

Chart.register(LineController, LineElement, PointElement, LinearScale);

export type ParallelPlot = Chart<"line", { x: number; y: number }[]>;

/** One line through all axes. `look`: index of its colour, dash and mark. */
export interface ParallelLine {
  label: string;
  /** null: unknown on that axis; the line has a gap there. */
  values: (number | null)[];
  look: number;
  strong: boolean;
}

/** Parallel coordinates: an axis for every skill in-domain and OOD, from 0 to 100 %. `axes`: their names, in lines. */
export function drawParallel(canvas: HTMLCanvasElement, axes: string[][], lines: ParallelLine[], palette: readonly string[], colours: Colours): ParallelPlot {
  const font = { family: colours.font, size: 11 };
  const config: ChartConfiguration<"line", { x: number; y: number }[]> = {
    type: "line",
    data: {
      datasets: lines.map(({ label, values, look, strong }) => {
        const colour = palette[look % palette.length] ?? colours.text;
        return {
          label,
          data: values.map((value, x) => ({ x, y: value ?? Number.NaN })),
          borderColor: colour,
          borderWidth: strong ? 2.5 : 1,
          borderDash: [...(dashes[look % dashes.length] ?? [])],
          pointStyle: marks[look % marks.length] ?? "circle",
          pointRadius: strong ? 4 : 2.5,
          pointBackgroundColor: colour,
          pointBorderColor: colour,
          tension: 0,
          clip: 8,
        };
      }),
    },
    options: {
      animation: false,
      maintainAspectRatio: false,
      events: [],
      font,
      layout: { padding: { top: 8, right: 24 } },
      scales: {
        x: {
          type: "linear",
          min: 0,
          max: Math.max(1, axes.length - 1),
          grid: { color: colours.line },
          border: { display: false },
          ticks: { color: colours.dim, font, autoSkip: false, maxRotation: 0, padding: 4, callback: (value) => axes[Number(value)] ?? "" },
          afterBuildTicks: (axis) => {
            axis.ticks = axes.map((_, value) => ({ value }));
          },
        },
        y: { type: "linear", min: 0, max: 1, grid: { color: colours.line, drawTicks: false }, border: { display: false }, ticks: { color: colours.dim, font, stepSize: 0.25, padding: 6, callback: (value) => formatPercent(Number(value), 0) } },
      },
    },
  };
  return new Chart(canvas, config);
}
