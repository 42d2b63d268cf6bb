import { LitElement, css, html, nothing, svg, type TemplateResult } from "lit";
import { shownEntries, skillsIn } from "../../src/domain/arena/arenaCharts.ts";
import type { ArenaResult, Share } from "../../src/domain/arena/arenaResult.ts";
import { formatInterval, formatPercent } from "../../src/domain/format.ts";
import { t } from "../../src/util/l10n.ts";
import { shared } from "../styles.ts";
import { arenaStyles } from "./arena-styles.ts";
import { systemName } from "./wording.ts";

const wide = 120;

/** Skill by skill: the number, and beside it a bar from 0 to 100 % with the interval, the mean and every seed. Picture and table are one. */
export class ArenaSkills extends LitElement {
  static override properties = { result: { attribute: false } };
  declare result: ArenaResult;

  static override styles = [
    shared,
    arenaStyles,
    css`
      .bar {
        display: block;
        width: 120px;
        height: 14px;
        color: var(--vscode-charts-blue);
      }
      .bar.ood {
        color: var(--vscode-charts-orange);
      }
      .track {
        stroke: var(--chart-line);
      }
      .fill {
        fill: currentColor;
        opacity: 0.35;
      }
      .range {
        stroke: currentColor;
        stroke-width: 1.5;
      }
      .seed {
        fill: var(--vscode-foreground);
      }
      .ood .fill {
        fill: none;
        stroke: currentColor;
        stroke-dasharray: 2 2;
        opacity: 1;
      }
    `,
  ];

  override render(): TemplateResult {
    const { result } = this;
    const skills = skillsIn(result);
    return html`<div class="scroll" tabindex="0" role="region" aria-label=${t("Pass rates skill by skill")}><table>
      <thead>
        <tr>
          <th scope="col">${t("system")}</th>
          ${skills.map((skill) => html`<th scope="col" class="group">${skill}${skill === result.newSkill ? html` <span>(${t("new")})</span>` : nothing}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${shownEntries(result).map((entry) => html`<tr class=${entry.kind === "chain" ? "strong" : ""}>
          <th scope="row">${systemName(entry)}</th>
          ${skills.map((skill) => html`<td class="group">${this.cell(entry.scores?.skills[skill]?.id ?? null, "id")}${this.cell(entry.scores?.skills[skill]?.ood ?? null, "ood")}</td>`)}
        </tr>`)}
      </tbody>
    </table></div>`;
  }

  private cell(share: Share | null, split: "id" | "ood"): TemplateResult | typeof nothing {
    if (share === null) return nothing;
    const seeds = share.seeds.map(({ seed, value }) => `${seed}: ${formatPercent(value, 0)}`).join(", ");
    return html`<div title=${t("Seeds: {0}.", seeds)}><b>${formatPercent(share.value, 0)}</b> <span class="dim">${formatInterval(share.interval, 0)}${split === "ood" ? " OOD" : ""}</span>${bar(share, split)}</div>`;
  }
}

function bar({ value, interval, seeds }: Share, split: "id" | "ood"): TemplateResult {
  const x = (share: number): number => 2 + (wide - 4) * share;
  return html`<svg class="bar ${split}" viewBox="0 0 120 14" aria-hidden="true">
    ${svg`<line class="track" x1=${x(0)} x2=${x(1)} y1="13" y2="13" /><rect class="fill" x=${x(0)} y="2" width=${Math.max(0.5, x(value) - x(0))} height="10" />
      <line class="range" x1=${x(interval.low)} x2=${x(interval.high)} y1="7" y2="7" /><line class="range" x1=${x(interval.low)} x2=${x(interval.low)} y1="4" y2="10" /><line class="range" x1=${x(interval.high)} x2=${x(interval.high)} y1="4" y2="10" />
      ${seeds.length < 2 ? nothing : seeds.map((one, index) => svg`<circle class="seed" cx=${x(one.value)} cy=${4 + 3 * (index % 3)} r="1.6" />`)}`}
  </svg>`;
}

customElements.define("seesaw-arena-skills", ArenaSkills);
