import { css, html, svg, type TemplateResult } from "lit";

/** Colours of lines side by side. Not orange: in the dark themes it is too faint for a thin line. */
const palette = ["--vscode-charts-blue", "--vscode-charts-yellow", "--vscode-charts-green", "--vscode-charts-purple", "--vscode-charts-red", "--vscode-foreground"];

/** How lines differ without their colour. */
export const dashes = [[], [6, 3], [2, 3], [8, 3, 2, 3], [12, 4]] as const;
export const marks = ["circle", "rectRot", "triangle", "rect", "crossRot"] as const;

/** The colours as the theme has them, for a canvas. */
export function lineColours(element: Element): string[] {
  const style = getComputedStyle(element);
  return palette.map((name) => style.getPropertyValue(name).trim() || style.color);
}

/** A piece of a line, for the table that is its legend too. */
export function lineSample(look: number): TemplateResult {
  const dash = (dashes[look % dashes.length] ?? []).join(" ");
  return html`<svg class=${`look-${look % palette.length}`} viewBox="0 0 28 9" aria-hidden="true">${svg`<path d="M1 4.5 H27" stroke-dasharray=${dash === "" ? "none" : dash} />`}</svg>`;
}

export const sampleStyles = css`
  svg[class^="look-"] {
    width: 28px;
    height: 9px;
    margin-right: 6px;
    stroke-width: 2;
    vertical-align: -1px;
  }
  .look-0 {
    stroke: var(--vscode-charts-blue);
  }
  .look-1 {
    stroke: var(--vscode-charts-yellow);
  }
  .look-2 {
    stroke: var(--vscode-charts-green);
  }
  .look-3 {
    stroke: var(--vscode-charts-purple);
  }
  .look-4 {
    stroke: var(--vscode-charts-red);
  }
  .look-5 {
    stroke: var(--vscode-foreground);
  }
`;
