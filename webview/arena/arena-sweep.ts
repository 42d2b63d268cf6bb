import { css, html, svg, type PropertyValues, type TemplateResult } from "lit";
import type { SweepCurve } from "../../src/domain/arena/arenaCharts.ts";
import { formatInterval, formatPercent } from "../../src/domain/format.ts";
import { t } from "../../src/util/l10n.ts";
import { drawSweep, type ArenaPlot } from "../chart/arenaPlot.ts";
import { readColours } from "../chart/colours.ts";
import { PlotElement } from "../chart/plotElement.ts";
import { dashes } from "../chart/parallelPlot.ts";
import { shared } from "../styles.ts";
import { arenaStyles } from "./arena-styles.ts";

const palette = ["--vscode-charts-blue", "--vscode-charts-orange", "--vscode-charts-green", "--vscode-charts-purple", "--vscode-charts-red", "--vscode-charts-yellow"];

/** How the coefficient of a merge decides, a line for each skill; the table below is its legend too. */
export class ArenaSweep extends PlotElement<ArenaPlot> {
  static override properties = { curve: { attribute: false } };
  declare curve: SweepCurve;

  static override styles = [
    shared,
    arenaStyles,
    css`
      .plot {
        position: relative;
        height: 240px;
        max-width: 640px;
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
        stroke: var(--vscode-charts-orange);
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
        stroke: var(--vscode-charts-yellow);
      }
    `,
  ];

  override render(): TemplateResult {
    const { skills, points } = this.curve;
    return html`<div class="plot"><canvas aria-hidden="true"></canvas></div>
      <div class="scroll" tabindex="0" role="region" aria-label=${t("Pass rate of every skill over the weight")}><table>
        <thead>
          <tr><th scope="col">${t("skill")}</th>${points.map(({ weight }) => html`<th scope="col">${t("weight {0}", weight)}</th>`)}</tr>
        </thead>
        <tbody>
          ${skills.map((skill, look) => html`<tr>
            <th scope="row">${sample(look)}${skill}</th>
            ${points.map(({ skills: of }) => html`<td>${of[skill] == null ? "–" : html`<b>${formatPercent(of[skill].value, 0)}</b> <span class="dim">${formatInterval(of[skill].interval, 0)}</span>`}</td>`)}
          </tr>`)}
        </tbody>
      </table></div>`;
  }

  override updated(changed: PropertyValues): void {
    if (changed.has("curve")) this.draw();
  }

  protected override draw(): void {
    this.clear();
    const canvas = this.renderRoot.querySelector("canvas");
    if (canvas === null) return;
    const style = getComputedStyle(this);
    this.plot = drawSweep(canvas, this.curve, t("weight of the merged update"), palette.map((name) => style.getPropertyValue(name).trim() || style.color), readColours(this));
  }
}

function sample(look: number): TemplateResult {
  const dash = (dashes[look % dashes.length] ?? []).join(" ");
  return html`<svg class=${`look-${look % palette.length}`} viewBox="0 0 28 9" aria-hidden="true">${svg`<path d="M1 4.5 H27" stroke-dasharray=${dash === "" ? "none" : dash} />`}</svg>`;
}

customElements.define("seesaw-arena-sweep", ArenaSweep);
