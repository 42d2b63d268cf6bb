import { css, html, svg, type PropertyValues, type TemplateResult } from "lit";
import { formatInterval, formatPercent } from "../../src/domain/format.ts";
import type { PageVector } from "../../src/protocol/weightsPage.ts";
import { t } from "../../src/util/l10n.ts";
import { readColours } from "../chart/colours.ts";
import { PlotElement } from "../chart/plotElement.ts";
import { dashes, drawParallel, type ParallelPlot } from "../chart/parallelPlot.ts";
import { shared } from "../styles.ts";

/** Not orange: in the dark themes it is too faint for a thin line. */
const palette = ["--vscode-charts-blue", "--vscode-charts-yellow", "--vscode-charts-green", "--vscode-charts-purple", "--vscode-charts-red", "--vscode-foreground"];

/** What every checkpoint can do, as lines through one axis a skill and split; the same numbers stand in a table below. */
export class CapabilityChart extends PlotElement<ParallelPlot> {
  static override properties = { vectors: { attribute: false }, strong: { attribute: false } };
  declare vectors: PageVector[];
  /** Labels of the two checkpoints that are compared. */
  declare strong: string[];

  static override styles = [
    shared,
    css`
      :host {
        display: block;
        --chart-text: var(--vscode-foreground);
        --chart-line: var(--vscode-contrastBorder, var(--vscode-editorIndentGuide-background1, var(--vscode-widget-border)));
        --chart-font: var(--vscode-font-family);
      }
      :host-context(.vscode-high-contrast) {
        --chart-line: color-mix(in srgb, var(--vscode-contrastBorder) 40%, transparent);
      }
      .plot {
        position: relative;
        height: 240px;
        max-width: 960px;
      }
      table {
        margin-top: 8px;
        border-collapse: collapse;
        font-size: 11px;
        line-height: 18px;
        font-variant-numeric: tabular-nums;
      }
      th,
      td {
        padding: 0 12px 0 0;
        font-weight: normal;
        text-align: left;
        white-space: nowrap;
      }
      thead th {
        color: var(--dim);
      }
      tr.strong th {
        font-weight: 600;
      }
      svg {
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
    `,
  ];

  override render(): TemplateResult {
    const axes = this.vectors[0]?.values ?? [];
    return html`<div class="plot"><canvas aria-hidden="true"></canvas></div>
      <table>
        <caption class="visually-hidden">${t("Share of checks passed, with its 95 % interval, for every checkpoint")}</caption>
        <thead>
          <tr>
            <th scope="col">${t("checkpoint")}</th>
            ${axes.map(({ skill, split }) => html`<th scope="col">${skill} ${splitText(split)}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${this.vectors.map(({ label, stage, values }, index) => html`<tr class=${this.strong.includes(label) ? "strong" : ""}>
            <th scope="row">${sample(index)}${label}${stage === null ? "" : ` ${stage}`}</th>
            ${values.map(({ accuracy, interval }) => html`<td>${accuracy === null || interval === null ? html`<span class="dim">${t("not checked")}</span>` : html`${formatPercent(accuracy, 0)} <span class="dim">(${formatInterval(interval, 0)})</span>`}</td>`)}
          </tr>`)}
        </tbody>
      </table>`;
  }

  override updated(changed: PropertyValues): void {
    if (changed.has("vectors") || changed.has("strong")) this.draw();
  }

  /** From anew: with other numbers, or in another theme. */
  protected override draw(): void {
    this.clear();
    const canvas = this.renderRoot.querySelector("canvas");
    if (canvas === null || this.vectors.length === 0) return;
    const style = getComputedStyle(this);
    const axes = (this.vectors[0]?.values ?? []).map(({ skill, split }) => [skill, splitText(split)]);
    const lines = this.vectors.map(({ label, values }, look) => ({ label, look, strong: this.strong.includes(label), values: values.map(({ accuracy }) => accuracy) }));
    this.plot = drawParallel(canvas, axes, lines, palette.map((name) => style.getPropertyValue(name).trim() || style.color), readColours(this));
  }
}

/** A piece of a checkpoint's line, for the table that is also the legend. */
function sample(index: number): TemplateResult {
  const dash = (dashes[index % dashes.length] ?? []).join(" ");
  return html`<svg class=${`look-${index % palette.length}`} viewBox="0 0 28 9" aria-hidden="true">${svg`<path d="M1 4.5 H27" stroke-dasharray=${dash === "" ? "none" : dash} />`}</svg>`;
}

function splitText(split: "id" | "ood"): string {
  return split === "id" ? t("in-domain") : "OOD";
}

customElements.define("seesaw-capability-chart", CapabilityChart);
