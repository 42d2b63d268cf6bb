import { css, html, type PropertyValues, type TemplateResult } from "lit";
import type { SweepCurve } from "../../src/domain/arena/arenaCharts.ts";
import { formatInterval, formatPercent } from "../../src/domain/format.ts";
import { t } from "../../src/util/l10n.ts";
import { drawSweep, type ArenaPlot } from "../chart/arenaPlot.ts";
import { readColours } from "../chart/colours.ts";
import { lineColours, lineSample, sampleStyles } from "../chart/lineLooks.ts";
import { PlotElement } from "../chart/plotElement.ts";
import { shared } from "../styles.ts";
import { arenaStyles } from "./arena-styles.ts";

/** How the coefficient of a merge decides, a line for each skill; the table below is its legend too. */
export class ArenaSweep extends PlotElement<ArenaPlot> {
  static override properties = { curve: { attribute: false } };
  declare curve: SweepCurve;

  static override styles = [
    shared,
    arenaStyles,
    sampleStyles,
    css`
      .plot {
        position: relative;
        height: 240px;
        max-width: 640px;
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
            <th scope="row">${lineSample(look)}${skill}</th>
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
    this.plot = drawSweep(canvas, this.curve, t("weight of the merged update"), lineColours(this), readColours(this));
  }
}

customElements.define("seesaw-arena-sweep", ArenaSweep);
