import type { AmocCurve } from "./amoc.ts";

/**
 * The AMOC curves as a picture (SVG) for REPORT_CARD.md: the share of losses flagged before their crossing over the rate of
 * healthy runs with an alarm. Colours are told apart without colour vision (Okabe & Ito), lines also by their dashes; text and
 * axes follow the reader's theme.
 */
export function curvesPicture(curves: readonly { curve: AmocCurve; label: string }[]): string {
  const lines = curves.map(({ curve, label }, index) => {
    const [colour, dash] = [colours[index % colours.length] as string, dashes[index % dashes.length] as string];
    const y = area.top + 14 + index * 20;
    const legend = `<line x1="${area.right + 16}" y1="${y}" x2="${area.right + 44}" y2="${y}" stroke="${colour}" stroke-dasharray="${dash}" stroke-width="2.5"/><text x="${area.right + 50}" y="${y + 4}">${escaped(label)}</text>`;
    return `<path d="${steps(curve)}" fill="none" stroke="${colour}" stroke-dasharray="${dash}" stroke-width="2.5"><title>${escaped(label)}</title></path>${legend}`;
  });
  const grid = [0, 0.1, 0.2, 0.3, 0.4, 0.5].map((rate) => `<line class="g" x1="${x(rate)}" y1="${area.top}" x2="${x(rate)}" y2="${area.bottom}"/><text x="${x(rate)}" y="${area.bottom + 18}" text-anchor="middle">${Math.round(rate * 100)} %</text>`);
  const marks = [0, 0.25, 0.5, 0.75, 1].map((share) => `<line class="g" x1="${area.left}" y1="${height(share)}" x2="${area.right}" y2="${height(share)}"/><text x="${area.left - 8}" y="${height(share) + 4}" text-anchor="end">${Math.round(share * 100)} %</text>`);
  const middle = (area.left + area.right) / 2;
  const axes = `<text x="${middle}" y="${area.bottom + 38}" text-anchor="middle">healthy runs with an alarm</text><text x="${area.left - 44}" y="${area.top - 12}">losses flagged before they crossed 5 points</text>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${size.height}" width="${size.width}" height="${size.height}" role="img" aria-label="Losses flagged before their crossing, over the rate of false alarms">
<style>text { font: 12px system-ui, sans-serif; fill: #444 } .g { stroke: #8884; stroke-width: 1 } @media (prefers-color-scheme: dark) { text { fill: #ccc } }</style>
${[...grid, ...marks, axes, ...lines].join("\n")}
</svg>
`;
}

const size = { width: 960, height: 340 };
const area = { left: 60, right: 440, top: 34, bottom: 284 };
const widest = 0.5;
const colours = ["#d55e00", "#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#888888", "#7a5195"];
const dashes = ["none", "7 3", "2 3", "9 3 2 3", "4 2", "12 4", "1 3", "5 5"];

const x = (rate: number): number => round(area.left + (Math.min(rate, widest) / widest) * (area.right - area.left));
const height = (share: number): number => round(area.bottom - share * (area.bottom - area.top));
const round = (value: number): number => Math.round(value * 10) / 10;

/** A curve holds until the next rate that buys more. */
function steps({ points }: AmocCurve): string {
  const inside = points.filter(({ rate }) => rate <= widest);
  const [first, ...later] = inside;
  if (first === undefined) return "";
  const parts = later.map(({ rate, ahead }) => `H${x(rate)}V${height(ahead)}`);
  return `M${x(first.rate)},${height(first.ahead)}${parts.join("")}H${x(widest)}`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
