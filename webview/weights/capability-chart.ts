import { css, html, type PropertyValues, type TemplateResult } from "lit";
import { formatInterval, formatPercent } from "../../src/domain/format.ts";
import type { PageVector } from "../../src/protocol/weightsPage.ts";
import { t } from "../../src/util/l10n.ts";
import { readColours } from "../chart/colours.ts";
import { lineColours, lineSample, sampleStyles } from "../chart/lineLooks.ts";
import { PlotElement } from "../chart/plotElement.ts";
import { drawParallel, type ParallelPlot } from "../chart/parallelPlot.ts";
import { shared } from "../styles.ts";

/** What every checkpoint can do, as lines through one axis a skill and split; the same numbers stand in a table below. */
export class CapabilityChart extends PlotElement<ParallelPlot> {
  static override properties = { vectors: { attribute: false }, strong: { attribute: false } };
  declare vectors: PageVector[];
  /** Labels of the two checkpoints that are compared. */
  declare strong: string[];

  static override styles = [
    shared,
    sampleStyles,
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
            <th scope="row">${lineSample(index)}${label}${stage === null ? "" : ` ${stage}`}</th>
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
    const axes = (this.vectors[0]?.values ?? []).map(({ skill, split }) => [skill, splitText(split)]);
    const lines = this.vectors.map(({ label, values }, look) => ({ label, look, strong: this.strong.includes(label), values: values.map(({ accuracy }) => accuracy) }));
    this.plot = drawParallel(canvas, axes, lines, lineColours(this), readColours(this));
  }
}

function splitText(split: "id" | "ood"): string {
  return split === "id" ? t("in-domain") : "OOD";
}

customElements.define("seesaw-capability-chart", CapabilityChart);
