import { LitElement, css, html, nothing, type TemplateResult } from "lit";
import type { Split } from "../../src/protocol/runSpec.ts";
import type { DriftChoices, DriftSelection } from "../../src/protocol/webview.ts";
import { t } from "../../src/util/l10n.ts";
import { controls, shared } from "../styles.ts";

interface Choice {
  value: string;
  label: string;
  title?: string;
}

/** The choices above the list: pipeline (when there are several), skill, probe set, and what to compare with. Fires `choose`. */
export class ChoiceBar extends LitElement {
  static override properties = { choices: { attribute: false }, selection: { attribute: false } };
  declare choices: DriftChoices;
  declare selection: DriftSelection;

  static override styles = [
    shared,
    controls,
    css`
      :host {
        display: flex;
        flex-wrap: wrap;
        gap: 6px 8px;
        padding: 8px 12px 10px;
      }
      label {
        flex: 1 1 100px;
        min-width: 0;
      }
      label.wide {
        flex-basis: 100%;
      }
      span {
        display: block;
        font-size: 11px;
        line-height: 16px;
        color: var(--dim);
      }
      select {
        width: 100%;
      }
    `,
  ];

  override render(): TemplateResult {
    const { choices, selection } = this;
    const skills = choices.skills.map(({ value, label, flag }) => ({ value, label: flag === null ? label : `⚑ ${label}`, title: flag ?? "" }));
    return html`
      ${choices.pipelines.length > 1 ? this.box(t("Pipeline"), "wide", choices.pipelines, selection.pipeline, (pipeline) => ({ pipeline, skill: null, split: null, reference: null, row: null })) : nothing}
      ${this.box(t("Skill"), "", skills, selection.skill, (skill) => ({ skill, reference: null, row: null }))}
      ${this.box(t("Probe set"), "", choices.splits, selection.split, (split) => ({ split: split as Split, row: null }))}
      ${this.box(t("Compared with"), "", choices.references, selection.reference, (reference) => ({ reference }))}
    `;
  }

  private box(name: string, style: string, options: Choice[], value: string | null, change: (value: string) => Partial<DriftSelection>): TemplateResult {
    const chosen = (event: Event): void => {
      const detail = change((event.target as HTMLSelectElement).value);
      this.dispatchEvent(new CustomEvent("choose", { detail }));
    };
    return html`<label class=${style}>
      <span>${name}</span>
      <select @change=${chosen} ?disabled=${options.length === 0}>
        ${options.map((option) => html`<option value=${option.value} title=${option.title ?? ""} ?selected=${option.value === value} .selected=${option.value === value}>${option.label}</option>`)}
      </select>
    </label>`;
  }
}

customElements.define("seesaw-choice-bar", ChoiceBar);
