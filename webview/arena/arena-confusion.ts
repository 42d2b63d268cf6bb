import { LitElement, css, html, type TemplateResult } from "lit";
import type { ConfusionTable } from "../../src/domain/arena/arenaCharts.ts";
import { formatPercent } from "../../src/domain/format.ts";
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
        border: 0;
      }
      thead th + th {
        padding: 0 8px;
        text-align: right;
      }
      td {
        min-width: 64px;
        padding: 2px 8px;
        text-align: right;
        background: color-mix(in srgb, var(--vscode-charts-orange) calc(var(--share, 0) * 45%), transparent);
      }
      td.own {
        outline: 1px solid var(--vscode-foreground);
        outline-offset: -1px;
      }
      /* Without backgrounds a bar under the number says the same. */
      :host-context(.vscode-high-contrast) td {
        background: linear-gradient(var(--vscode-foreground) 0 0) left bottom / calc(var(--share, 0) * 100%) 3px no-repeat;
      }
    `,
  ];

  override render(): TemplateResult {
    const { skills, rows } = this.table;
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
    </table></div>`;
  }

  override updated(): void {
    // The policy forbids style attributes; properties set by script it allows.
    for (const cell of this.renderRoot.querySelectorAll<HTMLElement>("td[data-share]")) cell.style.setProperty("--share", cell.dataset["share"] ?? "0");
  }
}

customElements.define("seesaw-arena-confusion", ArenaConfusion);
