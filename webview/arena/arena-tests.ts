import { LitElement, html, type TemplateResult } from "lit";
import { shownEntries, testOf, testedMeasures, type TestedMeasure } from "../../src/domain/arena/arenaCharts.ts";
import type { ArenaEntry, ArenaResult } from "../../src/domain/arena/arenaResult.ts";
import { measuredShare, pText, verdictClass } from "../../src/domain/arena/arenaText.ts";
import { dropText, estimateText } from "../../src/domain/evaluation/evaluationText.ts";
import type { EvaluationRow } from "../../src/domain/evaluation/evaluationRow.ts";
import { formatInterval, formatPercent, formatSigned } from "../../src/domain/format.ts";
import { t } from "../../src/util/l10n.ts";
import { shared } from "../styles.ts";
import { arenaStyles } from "./arena-styles.ts";
import { measureTitle, systemName, verdictText } from "./wording.ts";

/** Every system's pass rates, and what the paired tests against the chain say: the table of the plane. */
export class ArenaTests extends LitElement {
  static override properties = { result: { attribute: false } };
  declare result: ArenaResult;

  static override styles = [shared, arenaStyles];

  override render(): TemplateResult {
    const { result } = this;
    return html`<div class="scroll" tabindex="0" role="region" aria-label=${t("Pass rates and paired tests against the chain")}><table>
      <thead>
        <tr>
          <th scope="col">${t("system")}</th>
          <th scope="col" class="number">${t("seeds")}</th>
          ${testedMeasures.map((measure) => html`<th scope="col" class="group">${measureTitle(measure)}<br>${t("pass rate, and change")}</th><th scope="col">p*<br>${t("sees")}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${shownEntries(result).map((entry) => html`<tr class=${entry.kind === "chain" ? "strong" : ""}>
          <th scope="row">${systemName(entry)}</th>
          <td class="number">${entry.seeds.length}</td>
          ${testedMeasures.map((measure) => this.cells(entry, measure))}
        </tr>`)}
      </tbody>
    </table></div>`;
  }

  private cells(entry: ArenaEntry, measure: TestedMeasure): TemplateResult {
    const share = measuredShare(entry, measure);
    const value = share === null ? html`–` : html`<b>${formatPercent(share.value, 0)}</b> <span class="dim">${formatInterval(share.interval, 0)}</span>`;
    if (entry.kind === "chain") return html`<td class="group">${value}<br><span class="dim">${t("the baseline")}</span></td><td></td>`;
    const row = testOf(this.result, entry.id, measure);
    if (row === undefined || row.estimate === null) return html`<td class="group">${value}<br><span class="dim" title=${row?.why ?? ""}>${t("not compared")}</span></td><td></td>`;
    return html`<td class="group">${value}<br><span class=${verdictClass(row)}>${estimateText(row)}</span> <span class="dim">${changeRange(row)}</span></td>
      <td>${pText(row)} <span class="dim">${verdictText(row)}</span><br><span class="dim">${row.resolution === null ? "" : row.smallestDrop === null ? t("none") : dropText(row)}</span></td>`;
  }
}

function changeRange({ interval }: EvaluationRow): string {
  return interval === null ? "" : t("({0} to {1})", formatSigned(100 * interval.low, 1), formatSigned(100 * interval.high, 1));
}

customElements.define("seesaw-arena-tests", ArenaTests);
