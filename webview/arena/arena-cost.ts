import { LitElement, css, html, type TemplateResult } from "lit";
import { shownEntries } from "../../src/domain/arena/arenaCharts.ts";
import type { ArenaCost, ArenaResult } from "../../src/domain/arena/arenaResult.ts";
import { flopsText } from "../../src/domain/arena/arenaText.ts";
import { formatBytes, formatDuration } from "../../src/domain/format.ts";
import { t } from "../../src/util/l10n.ts";
import { shared } from "../styles.ts";
import { arenaStyles } from "./arena-styles.ts";
import { countText, systemName } from "./wording.ts";

/** What every system took, its own stages and what it shares with others apart. */
export class ArenaCostTable extends LitElement {
  static override properties = { result: { attribute: false } };
  declare result: ArenaResult;

  static override styles = [
    shared,
    arenaStyles,
    css`
      td,
      th + th {
        text-align: right;
      }
    `,
  ];

  override render(): TemplateResult {
    const heads = [t("steps"), t("tokens"), "FLOPs", t("training"), t("peak memory")];
    const sharedHeads = [t("shared tokens"), t("shared FLOPs"), t("shared training")];
    return html`<div class="scroll" tabindex="0" role="region" aria-label=${t("Cost of every system")}><table>
      <thead>
        <tr>
          <th scope="col">${t("system")}</th>
          ${heads.map((head) => html`<th scope="col">${head}</th>`)}${sharedHeads.map((head, index) => html`<th scope="col" class=${index === 0 ? "group" : ""}>${head}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${shownEntries(this.result).map((entry) => {
          const { own, shared: common } = entry.cost;
          return html`<tr class=${entry.kind === "chain" ? "strong" : ""}>
            <th scope="row">${systemName(entry)}</th>
            <td>${countText(own?.optimizerSteps ?? null)}</td>
            ${spent(own)}
            <td>${own === null ? "–" : formatBytes(own.peakMemory)}</td>
            ${spent(common, "group")}
          </tr>`;
        })}
      </tbody>
    </table></div>`;
  }
}

function spent(cost: ArenaCost | null, first = ""): TemplateResult {
  return html`<td class=${first}>${countText(cost?.tokens ?? null)}</td><td>${cost === null ? "–" : flopsText(cost.flops)}</td><td>${cost === null ? "–" : cost.seconds === 0 ? "0" : formatDuration(cost.seconds)}</td>`;
}

customElements.define("seesaw-arena-cost", ArenaCostTable);
