import { css, html, nothing, type PropertyValues, type TemplateResult } from "lit";
import type { DriftChart, DriftCheckpoint } from "../../src/protocol/webview.ts";
import { t } from "../../src/util/l10n.ts";
import { readColours } from "../chart/colours.ts";
import { PlotElement } from "../chart/plotElement.ts";
import { drawPlot, type Plot } from "../chart/plot.ts";
import { accuracyText, checkpointOf, logprobText, splitName, stopName, stopsOf, stopText, summaryOf, type Stop } from "../chart/stops.ts";
import { controls, shared } from "../styles.ts";

/**
 * The chosen skill over the whole chain. A slider for the keyboard (arrows go from stop to stop, Enter chooses), a table for
 * those who do not see it. Fires `toggle`, `card` (the report card is wanted), and `choose` with the checkpoint of a stop.
 */
export class DriftChartView extends PlotElement<Plot> {
  static override properties = { chart: { attribute: false }, checkpoints: { attribute: false }, current: { attribute: false }, open: { attribute: false }, at: { state: true } };
  declare chart: DriftChart;
  declare checkpoints: DriftCheckpoint[];
  /** Index of the checkpoint that is looked at. */
  declare current: number;
  declare open: boolean;
  /** The stop under the pointer or the keyboard; null: that of the checkpoint that is looked at. */
  declare private at: number | null;
  private stops: Stop[] = [];

  static override styles = [
    shared,
    controls,
    css`
      :host {
        display: block;
        padding: 0 12px;
        border-top: 1px solid var(--line);
        --chart-text: var(--vscode-foreground);
        --chart-line: var(--vscode-contrastBorder, var(--vscode-editorIndentGuide-background1, var(--vscode-widget-border)));
        --chart-accent: var(--vscode-focusBorder);
        --chart-id: var(--vscode-charts-blue);
        --chart-ood: var(--vscode-charts-purple);
        --chart-drifting: var(--vscode-seesaw-tokenWeakenedLine);
        --chart-font: var(--vscode-font-family);
      }
      :host-context(.vscode-high-contrast) {
        --chart-line: color-mix(in srgb, var(--vscode-contrastBorder) 40%, transparent);
      }
      .head {
        display: flex;
        flex-wrap: wrap;
        gap: 0 12px;
        align-items: center;
        min-height: 24px;
      }
      button.fold {
        display: flex;
        gap: 4px;
        align-items: center;
        padding: 0;
        font: inherit;
        font-size: 11px;
        font-weight: 600;
        line-height: 22px;
        color: inherit;
        background: none;
        border: 0;
        cursor: pointer;
      }
      .arrow {
        width: 12px;
        height: 12px;
        fill: none;
        stroke: currentcolor;
        stroke-width: 1.4;
      }
      .sum,
      .legend {
        font-size: 11px;
        color: var(--dim);
      }
      .legend {
        display: flex;
        flex-wrap: wrap;
        gap: 0 12px;
        margin-left: auto;
      }
      .legend svg {
        width: 22px;
        height: 9px;
        margin-right: 4px;
        fill: none;
        stroke-width: 1.5;
        vertical-align: -1px;
      }
      .id {
        stroke: var(--chart-id);
      }
      .id circle {
        fill: var(--chart-id);
      }
      .ood {
        stroke: var(--chart-ood);
      }
      .flag-drifting {
        stroke: var(--chart-drifting);
      }
      .flag-confirmed {
        fill: var(--failed);
        stroke: var(--failed);
      }
      .flag-recovered {
        stroke: var(--passed);
      }
      .legend svg.flag {
        width: 9px;
      }
      .plot {
        position: relative;
        height: var(--chart-height, 210px);
        cursor: pointer;
      }
      .plot:focus-visible {
        outline-offset: 2px;
      }
      .readout {
        min-height: 32px;
        margin: 2px 0 8px;
        font-size: 11px;
        line-height: 16px;
        font-variant-numeric: tabular-nums;
        color: var(--dim);
      }
      .finding {
        font-size: 11px;
        line-height: 16px;
      }
      .finding summary {
        display: flex;
        gap: 4px;
        align-items: center;
        min-height: 22px;
        list-style: none;
        cursor: pointer;
      }
      .finding summary::-webkit-details-marker {
        display: none;
      }
      .finding .flag {
        flex: none;
        width: 9px;
        height: 9px;
        margin-right: 2px;
        fill: none;
        stroke-width: 1.5;
      }
      .finding .flag.flag-confirmed {
        fill: var(--failed);
      }
      .finding[open] .arrow {
        transform: rotate(90deg);
      }
      .finding .what {
        max-width: 90ch;
        padding: 2px 0 12px 16px;
        overflow-wrap: anywhere;
      }
      .finding p {
        margin: 0 0 8px;
      }
      .finding dl {
        display: grid;
        grid-template-columns: fit-content(22ch) 1fr;
        gap: 4px 12px;
        margin: 0 0 8px;
      }
      .finding dt {
        color: var(--dim);
      }
      .finding dd {
        margin: 0;
        font-variant-numeric: tabular-nums;
      }
      .readout b {
        font-weight: 600;
        color: var(--vscode-foreground);
      }
    `,
  ];

  constructor() {
    super();
    this.at = null;
  }

  override willUpdate(changed: PropertyValues): void {
    if (!changed.has("chart")) return;
    this.stops = stopsOf(this.chart);
    this.at = null;
  }

  override render(): TemplateResult {
    const { chart, open } = this;
    return html`<div class="head">
        <button class="fold" aria-expanded=${open ? "true" : "false"} @click=${() => this.dispatchEvent(new CustomEvent("toggle"))}>${arrow(open ? "M2 4 L6 8 L10 4" : "M4 2 L8 6 L4 10")}${t("{0} over the chain", chart.skill)}</button>
        ${open ? this.legend() : html`<span class="sum">${summaryOf(chart)}</span>`}
      </div>
      ${open ? this.body() : nothing}`;
  }

  override updated(changed: PropertyValues): void {
    if (changed.has("chart") || changed.has("open")) this.draw();
    else if (changed.has("at") || changed.has("current") || changed.has("checkpoints")) this.plot?.draw();
  }

  private body(): TemplateResult {
    const index = this.index();
    const stop = this.stops[index];
    const text = stop === undefined ? "" : stopText(stop);
    return html`<div
        class="plot"
        role="slider"
        tabindex="0"
        aria-label=${t("Steps of the chain for {0}; Enter looks at the checkpoint", this.chart.skill)}
        aria-valuemin="1"
        aria-valuemax=${Math.max(1, this.stops.length)}
        aria-valuenow=${index + 1}
        aria-valuetext=${text}
        @keydown=${this.key}
        @pointermove=${this.point}
        @pointerleave=${() => (this.at = null)}
        @click=${(event: MouseEvent) => this.choose(this.nearest(event.offsetX))}
        @blur=${() => (this.at = null)}
      >
        <canvas aria-hidden="true"></canvas>
      </div>
      <p class="readout" aria-hidden="true">${stop === undefined ? nothing : this.readout(stop)}</p>
      ${this.findings()}
      ${this.table()}`;
  }

  /** What stands behind each flag that was raised, the newest first, to be opened: the finding, and its facts. */
  private findings(): TemplateResult[] {
    const raised = this.chart.flags.filter(({ state }) => state === "drifting" || state === "confirmed").reverse();
    return raised.map(({ state, title, text, facts }) => html`<details class="finding">
      <summary>${arrow("M4 2 L8 6 L4 10")}<svg class=${`flag flag-${state}`} viewBox="0 0 9 9" aria-hidden="true"><path d="M1 1 L8 4.5 L1 8 Z" /></svg>${title}</summary>
      <div class="what">
        <p>${text}</p>
        <dl>${facts.map(({ label, text: fact }) => html`<dt>${label}</dt><dd>${fact}</dd>`)}</dl>
        ${this.chart.card ? html`<button class="link" @click=${() => this.dispatchEvent(new CustomEvent("card"))}>${t("Open the report card of this detector")}</button>` : nothing}
      </div>
    </details>`);
  }

  private readout(stop: Stop): TemplateResult {
    const [name, ...rest] = stopText(stop).split("; ");
    return html`<b>${name}</b>${rest.map((part) => html` · ${part}`)}`;
  }

  private legend(): TemplateResult {
    const states = new Set(this.chart.flags.map(({ state }) => state));
    const flag = (state: string, word: string): TemplateResult | typeof nothing =>
      states.has(state as never) ? html`<span><svg class=${`flag flag-${state}`} viewBox="0 0 9 9" aria-hidden="true"><path d="M1 1 L8 4.5 L1 8 Z" /></svg>${word}</span>` : nothing;
    return html`<div class="legend">
      ${this.chart.splits.map(({ split }) =>
        split === "id"
          ? html`<span><svg class="id" viewBox="0 0 22 9" aria-hidden="true"><path d="M1 4.5 H21" /><circle cx="11" cy="4.5" r="2.5" /></svg>${splitName(split)}</span>`
          : html`<span><svg class="ood" viewBox="0 0 22 9" aria-hidden="true"><path d="M1 4.5 H7 M15 4.5 H21 M11 1 L14.5 4.5 L11 8 L7.5 4.5 Z" /></svg>${splitName(split)}</span>`,
      )}
      ${flag("drifting", t("drifting"))}${flag("confirmed", t("loss confirmed"))}${flag("recovered", t("recovered"))}
    </div>`;
  }

  /** The same numbers as text. */
  private table(): TemplateResult {
    const { splits, skill } = this.chart;
    return html`<table class="visually-hidden">
      <caption>${t("{0} at every scored step: share of checks passed with its 95 % interval, and mean change of the reference answers' log-probability since M0 in nats", skill)}</caption>
      <thead>
        <tr>
          <th scope="col">${t("checkpoint")}</th><th scope="col">${t("step")}</th>
          ${splits.map(({ split }) => html`<th scope="col">${t("{0} passed", splitName(split))}</th><th scope="col">${splitName(split)} log p</th>`)}
          <th scope="col">${t("flags")}</th>
        </tr>
      </thead>
      <tbody>
        ${this.stops.map((stop) => html`<tr>
          <th scope="row">${stopName(stop)}</th><td>${stop.x}</td>
          ${stop.values.map(({ accuracy, logprob }) => html`<td>${accuracy === null ? t("not checked") : accuracyText(accuracy)}</td><td>${logprob === null ? t("not scored") : logprobText(logprob)}</td>`)}
          <td>${stop.flags.map(({ title }) => title).join("; ") || t("none")}</td>
        </tr>`)}
      </tbody>
    </table>`;
  }

  /** The stop that is pointed at, else the one of the checkpoint that is looked at. */
  private index(): number {
    if (this.at !== null && this.at < this.stops.length) return this.at;
    const label = this.checkpoints[this.current]?.label;
    const own = this.stops.findLastIndex((stop) => stop.label === label);
    return own >= 0 ? own : this.stops.length - 1;
  }

  private key(event: KeyboardEvent): void {
    const index = this.index();
    const moves: Record<string, number> = { ArrowRight: index + 1, ArrowUp: index + 1, ArrowLeft: index - 1, ArrowDown: index - 1, Home: 0, End: this.stops.length - 1 };
    const to = moves[event.key];
    if (event.key === "Enter" || event.key === " ") this.choose(index);
    else if (to === undefined) return;
    else this.at = Math.max(0, Math.min(to, this.stops.length - 1));
    event.preventDefault();
  }

  private point(event: PointerEvent): void {
    this.at = this.nearest(event.offsetX);
  }

  private nearest(offset: number): number {
    const value = this.plot?.scales["x"]?.getValueForPixel(offset) ?? 0;
    return this.stops.reduce((best, { x }, index) => (Math.abs(x - value) < Math.abs((this.stops[best]?.x ?? Infinity) - value) ? index : best), 0);
  }

  private choose(index: number): void {
    const stop = this.stops[index];
    const checkpoint = stop === undefined ? -1 : checkpointOf(stop, this.checkpoints);
    if (checkpoint >= 0) this.dispatchEvent(new CustomEvent("choose", { detail: checkpoint }));
  }

  /** From anew: with other numbers, or in another theme. */
  protected override draw(): void {
    this.clear();
    const canvas = this.renderRoot.querySelector("canvas");
    if (canvas === null) return;
    this.plot = drawPlot(canvas, this.chart, readColours(this), () => this.stops[this.index()]?.x ?? null);
  }
}

function arrow(path: string): TemplateResult {
  return html`<svg class="arrow" viewBox="0 0 12 12" aria-hidden="true"><path d=${path} /></svg>`;
}

customElements.define("seesaw-drift-chart", DriftChartView);
