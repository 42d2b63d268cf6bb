import { LitElement, html, nothing, type TemplateResult } from "lit";
import { routedSetsOf, shownEntries } from "../../src/domain/arena/arenaCharts.ts";
import type { ArenaEntry, ArenaResult } from "../../src/domain/arena/arenaResult.ts";
import { splitName } from "../../src/domain/arena/arenaText.ts";
import type { EvaluationRow } from "../../src/domain/evaluation/evaluationRow.ts";
import { estimateText, intervalText } from "../../src/domain/evaluation/evaluationText.ts";
import { t } from "../../src/util/l10n.ts";
import { shared } from "../styles.ts";
import { arenaStyles } from "./arena-styles.ts";
import { systemName } from "./wording.ts";

/** What every system answers of the four questions by itself: retention, gain, OOD, routing; and backward transfer. */
export class ArenaQuestions extends LitElement {
  static override properties = { result: { attribute: false } };
  declare result: ArenaResult;

  static override styles = [shared, arenaStyles];

  override render(): TemplateResult {
    const heads = [t("retention"), t("gain of the new skill"), t("OOD less ID change"), t("prompts to their own expert"), t("backward transfer")];
    return html`<div class="scroll" tabindex="0" role="region" aria-label=${t("The four questions of every system")}><table>
      <thead>
        <tr><th scope="col">${t("system")}</th>${heads.map((head) => html`<th scope="col" class="group">${head}</th>`)}</tr>
      </thead>
      <tbody>
        ${shownEntries(this.result).map((entry) => html`<tr class=${entry.kind === "chain" ? "strong" : ""}>
          <th scope="row">${systemName(entry)}</th>
          ${["retention", "gain", "ood-shift"].map((measure) => html`<td class="group">${value(entry.questions.find((row) => row.measure === measure))}</td>`)}
          <td class="group">${routing(entry)}</td>
          <td class="group">${value(entry.questions.find((row) => row.measure === "bwt"))}</td>
        </tr>`)}
      </tbody>
    </table></div>`;
  }
}

function routing(entry: ArenaEntry): TemplateResult | TemplateResult[] {
  const sets = routedSetsOf(entry);
  return sets.length === 0 ? html`<span class="dim">${t("no router")}</span>` : sets.map(({ split, accuracy }) => html`<div>${value(accuracy, splitName(split))}</div>`);
}

/** The estimate with its interval; a dash that says why where there is none. */
function value(row: EvaluationRow | null | undefined, set = ""): TemplateResult {
  if (row == null || row.estimate === null) return html`<span class="dim" title=${row?.why ?? nothing}>–</span>`;
  return html`<b>${estimateText(row)}</b> <span class="dim">${intervalText(row)} ${set}</span>`;
}

customElements.define("seesaw-arena-questions", ArenaQuestions);
