import { LitElement, css, html, nothing, type TemplateResult } from "lit";
import type { ConfusionTable } from "../../src/domain/arena/arenaCharts.ts";
import { splitName } from "../../src/domain/arena/arenaText.ts";
import { estimateText, intervalText } from "../../src/domain/evaluation/evaluationText.ts";
import { formatCount, formatPercent } from "../../src/domain/format.ts";
import { t } from "../../src/util/l10n.ts";
import { shared } from "../styles.ts";
import { arenaStyles } from "./arena-styles.ts";

/** Which expert the router gave the prompts of each skill: a table whose cells are shaded by their number. */
export class ArenaConfusion extends LitElement {
  static override properties = { table: { attribute: false }, name: { attribute: false } };
  declare table: ConfusionTable;
  /** What the system is called. */
  declare name: string;

  static override styles = [
    shared,
    arenaStyles,
    css`
      table {
        border-collapse: separate;
        border-spacing: 2px;
      }
      th,
      td {
        padding: 2px 8px;
        border: 0;
        vertical-align: baseline;
      }
      th:first-child {
        padding-left: 0;
      }
      thead th + th {
        text-align: right;
      }
      td {
        min-width: 64px;
        text-align: right;
        background: color-mix(in srgb, var(--vscode-charts-orange) calc(var(--share, 0) * 45%), transparent);
      }
      td.own {
        outline: 1px solid var(--vscode-foreground);
        outline-offset: -1px;
      }
      .sets {
        margin-top: 8px;
      }
      .sets td {
        background: none;
      }
      /* Without backgrounds a bar under the number says the same. */
      :host-context(.vscode-high-contrast) td[data-share] {
        background: linear-gradient(var(--vscode-foreground) 0 0) left bottom / calc(var(--share, 0) * 100%) 3px no-repeat;
      }
    `,
  ];

  override render(): TemplateResult {
    const { skills, rows, sets } = this.table;
    return html`<div class="scroll" tabindex="0" role="region" aria-label=${t("Share of each skill's prompts that went to each expert: {0}", this.name)}><table>
      <thead>
        <tr><th scope="col">${t("expert")}</th>${skills.map((skill) => html`<th scope="col">${skill}</th>`)}</tr>
      </thead>
      <tbody>
        ${rows.map(({ expert, shares }) => html`<tr>
          <th scope="row">${expert}</th>
          ${shares.map((share, index) => html`<td class=${skills[index] === expert ? "own" : ""} data-share=${share}>${formatPercent(share, 0)}</td>`)}
        </tr>`)}
      </tbody>
    </table></div>
    <div class="scroll" tabindex="0" role="region" aria-label=${t("How well each set of prompts was routed: {0}", this.name)}><table class="sets">
      <thead>
        <tr>${[t("set"), t("prompts"), t("own expert"), t("mean of skills"), t("regret")].map((head) => html`<th scope="col">${head}</th>`)}</tr>
      </thead>
      <tbody>
        ${sets.map(({ split, accuracy, balanced, regret }) => html`<tr>
          <th scope="row">${splitName(split)}</th>
          <td>${accuracy.n === 0 ? "–" : formatCount(accuracy.n)}</td>
          ${[accuracy, balanced, regret].map((row) => html`<td>${row === null || row.estimate === null ? html`<span title=${row?.why ?? nothing}>–</span>` : html`<b>${estimateText(row)}</b> <span class="dim">${intervalText(row)}</span>`}</td>`)}
        </tr>`)}
      </tbody>
    </table></div>`;
  }

  override updated(): void {
    // The policy forbids style attributes; properties set by script it allows.
    for (const cell of this.renderRoot.querySelectorAll<HTMLElement>("td[data-share]")) cell.style.setProperty("--share", cell.dataset["share"] ?? "0");
  }
}

customElements.define("seesaw-arena-confusion", ArenaConfusion);
