import type { DriftChart, DriftSnapshot, PictureAbout } from "../../src/protocol/webview.ts";
import { t } from "../../src/util/l10n.ts";
import { readColours, type Colours } from "../chart/colours.ts";
import { drawPlot } from "../chart/plot.ts";
import { splitName } from "../chart/stops.ts";
import { drawToken, filmBlock } from "./filmPicture.ts";
import { paragraph, readInk, type Block, type Ink } from "./pen.ts";

const scale = 2;
const width = 1200;
const edge = 28;
const inner = width - 2 * edge;
const chartHeight = 280;
/** A browser makes no canvas that is higher. */
const mostHeight = 16_000 / scale;

/**
 * What the page shows as a PNG, twice as fine as the screen: title, chart, the chosen prompt's film, legends, and where all of
 * it comes from. Painted, not photographed: no markup on a canvas, nothing from outside, so no policy stands against it.
 */
export async function drawPicture(app: Element, data: DriftSnapshot, about: PictureAbout): Promise<Uint8Array> {
  const ink = readInk(app);
  const measuring = canvasOf(1, 1);
  const blocks = blocksOf(measuring.pen, app, data, about, ink);
  const height = Math.min(mostHeight, blocks.reduce((sum, block) => sum + block.height, 2 * edge));
  const { canvas, pen } = canvasOf(width * scale, Math.ceil(height) * scale);
  pen.scale(scale, scale);
  pen.fillStyle = ink.page;
  pen.fillRect(0, 0, width, height);
  let top = edge;
  for (const block of blocks) {
    block.draw(pen, top);
    top += block.height;
  }
  const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/png"));
  if (blob === null) throw new Error(t("The picture could not be made: it has {0} × {1} points.", canvas.width, canvas.height));
  return new Uint8Array(await blob.arrayBuffer());
}

function blocksOf(pen: CanvasRenderingContext2D, app: Element, { chart, film, checkpoints }: DriftSnapshot, { title, about, notes }: PictureAbout, ink: Ink): Block[] {
  const text = (content: string, size: number, weight: number, colour: string, most: number): Block => paragraph(pen, content, { font: `${weight} ${size}px ${ink.font}`, colour, width: inner, left: edge, height: Math.round(size * 1.5), most });
  const blocks = [text(title, 20, 600, ink.text, 2), ...about.map((line) => text(line, 13, 400, ink.dim, 2)), space(12)];
  const colours = app.shadowRoot?.querySelector("seesaw-drift-chart");
  if (chart !== null && colours != null) {
    const paint = { ...readColours(colours), background: ink.page };
    blocks.push(text(t("{0} over the chain", chart.skill), 13, 600, ink.text, 1), chartLegend(chart, paint, ink), chartBlock(chart, paint), space(16));
  }
  if (film !== null) {
    blocks.push(text(film.prompt, 13, 600, ink.text, 4), text(t("line {0}", film.line), 11, 400, ink.dim, 1), space(8));
    blocks.push(filmBlock(pen, film, checkpoints, ink, edge, inner), filmLegend(ink), space(12));
  }
  return [...blocks, ...notes.map((line) => text(line, 11, 400, ink.dim, 3))];
}

function space(height: number): Block {
  return { height, draw() {} };
}

function chartBlock(chart: DriftChart, colours: Colours): Block {
  return {
    height: chartHeight,
    draw(pen, top) {
      const { canvas } = canvasOf(inner, chartHeight);
      const plot = drawPlot(canvas, chart, colours, () => null, scale);
      pen.drawImage(canvas, edge, top, inner, chartHeight);
      plot.destroy();
    },
  };
}

/** Signs with their words, side by side. */
function legend(entries: readonly { word: string; size: number; sign(pen: CanvasRenderingContext2D, x: number, y: number): void }[], ink: Ink): Block {
  return {
    height: 26,
    draw(pen, top) {
      let x = edge;
      for (const { word, size, sign } of entries) {
        pen.save();
        sign(pen, x, top + 10);
        pen.restore();
        pen.font = `11px ${ink.font}`;
        pen.fillStyle = ink.dim;
        pen.textAlign = "left";
        pen.textBaseline = "middle";
        pen.fillText(word, x + size + 6, top + 10);
        x += size + 6 + pen.measureText(word).width + 20;
      }
    },
  };
}

function chartLegend({ splits, flags }: DriftChart, colours: Colours, ink: Ink): Block {
  const lines = splits.map(({ split }) => ({
    word: splitName(split),
    size: 24,
    sign(pen: CanvasRenderingContext2D, x: number, y: number) {
      pen.strokeStyle = colours[split];
      pen.lineWidth = 1.5;
      pen.setLineDash(split === "ood" ? [4, 3] : []);
      pen.beginPath();
      pen.moveTo(x, y);
      pen.lineTo(x + 24, y);
      pen.stroke();
    },
  }));
  const words = { drifting: t("drifting"), confirmed: t("loss confirmed"), recovered: t("recovered") };
  const marks = (["drifting", "confirmed", "recovered"] as const)
    .filter((state) => flags.some((flag) => flag.state === state))
    .map((state) => ({
      word: words[state],
      size: 9,
      sign(pen: CanvasRenderingContext2D, x: number, y: number) {
        pen.strokeStyle = pen.fillStyle = colours[state];
        pen.beginPath();
        pen.moveTo(x, y - 4);
        pen.lineTo(x + 8, y);
        pen.lineTo(x, y + 4);
        pen.closePath();
        if (state === "confirmed") pen.fill();
        pen.stroke();
      },
    }));
  return legend([...lines, ...marks], ink);
}

function filmLegend(ink: Ink): Block {
  const entry = (tokenClass: "kept" | "weakened" | "lost", word: string): Parameters<typeof legend>[0][number] => ({
    word,
    size: 18,
    sign(pen, x, y) {
      drawToken(pen, tokenClass, ink, x, y - 9, 18, 18);
      pen.font = `13px ${ink.mono}`;
      pen.fillStyle = ink.text;
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      pen.fillText("a", x + 9, y);
    },
  });
  return legend([entry("kept", t("kept")), entry("weakened", t("weakened")), entry("lost", t("lost (rank 4 or worse)"))], ink);
}

function canvasOf(wide: number, high: number): { canvas: HTMLCanvasElement; pen: CanvasRenderingContext2D } {
  const canvas = document.createElement("canvas");
  canvas.width = wide;
  canvas.height = high;
  const pen = canvas.getContext("2d");
  if (pen === null) throw new Error(t("This window can draw no pictures."));
  return { canvas, pen };
}
