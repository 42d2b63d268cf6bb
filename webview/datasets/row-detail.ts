import { LitElement, css, html, nothing, type TemplateResult } from "lit";
import { formatBytes, formatCount } from "../../src/domain/format.ts";
import type { DatasetDetail, DatasetState } from "../../src/protocol/datasets.ts";
import { t } from "../../src/util/l10n.ts";
import { signed } from "../format.ts";
import { checkMarks } from "../marks.ts";
import { controls, shared } from "../styles.ts";
import { markClass } from "./row-grid.ts";

/** One row in full: its turns as text, then its JSON. Fires `whole`, `drift`, `text` and `close`. */
export class RowDetail extends LitElement {
  static override properties = { detail: { attribute: false }, data: { attribute: false } };
  declare detail: DatasetDetail;
  declare data: DatasetState;

  static override styles = [
    shared,
    controls,
    css`
      :host {
        display: flex;
        flex-direction: column;
        min-height: 0;
        background: var(--vscode-editor-background);
      }
      header {
        display: flex;
        flex-wrap: wrap;
        gap: 2px 16px;
        align-items: baseline;
        padding: 6px 12px;
      }
      .fill {
        flex: 1;
      }
      .scroll {
        flex: 1;
        min-height: 0;
        overflow: auto;
        padding: 0 12px 12px;
      }
      p,
      .facts {
        margin: 0 0 6px;
        font-size: 12px;
        line-height: 18px;
      }
      .problem {
        color: var(--vscode-errorForeground);
      }
      h3 {
        margin: 8px 0 2px;
        color: var(--dim);
      }
      pre {
        margin: 0;
        font-family: var(--mono);
        font-size: var(--vscode-editor-font-size, 12px);
        line-height: 1.45;
        white-space: pre-wrap;
        overflow-wrap: anywhere;
        unicode-bidi: plaintext;
      }
    `,
  ];

  override render(): TemplateResult {
    const { line, length, cut, more, problems, turns, text, replay, probe } = this.detail;
    const fire = (name: string) => () => this.dispatchEvent(new CustomEvent(name));
    const marks = probe?.checks.map((check, at) => ({ check, change: probe.changes[at] ?? null, label: this.data.columns[at]?.label ?? "" })).filter(({ check, change }) => check !== "not-run" || change !== null);
    return html`
      <header>
        <h3>${this.data.kind === "parquet" ? t("Row {0}", formatCount(line)) : t("Line {0}", formatCount(line))}</h3>
        <span class="dim">${formatBytes(length)}</span>
        ${cut ? html`<span class="dim">${more ? t("only its beginning") : t("too long to be shown in full")}</span>` : nothing}
        ${more ? html`<button class="link" @click=${fire("whole")}>${t("Show the whole row")}</button>` : nothing}
        <span class="fill"></span>
        ${probe === null ? nothing : html`<button class="link" @click=${fire("drift")}>${t("Show in Token Drift")}</button>`}
        ${this.data.text ? html`<button class="link" @click=${fire("text")}>${t("Open in Text Editor")}</button>` : nothing}
        <button class="link" aria-label=${t("Close the row")} title=${t("Close (Escape)")} @click=${fire("close")}>${t("Close")}</button>
      </header>
      <div class="scroll" tabindex="0" role="region" aria-label=${t("The selected row")}>
        ${problems.map((problem) => html`<p class="problem">${problem}</p>`)}
        ${replay === null ? nothing : html`<p>${replay}</p>`}
        ${probe === null ? nothing : html`<p>${t("probe of {0}", probe.skill)} ${probe.split === "ood" ? t("(OOD)") : ""} · ${marks?.map(({ label, check, change }) => html`<span class="mark">${label} ${change === null ? "" : signed(change)} <span class=${markClass(check, change)} title=${t("check {0}", checkMarks[check].word)}>${checkMarks[check].sign}</span></span>  `)}</p>`}
        ${turns.map((turn) => html`<h3>${turn.role}</h3><pre>${turn.text}</pre>`)}
        <h3>${turns.length > 0 ? "JSON" : problems.length > 0 || cut ? t("as it is in the file") : "JSON"}</h3>
        <pre class="json">${text}</pre>
      </div>
    `;
  }

  /** Moves the keyboard to the text. */
  focusText(): void {
    this.renderRoot.querySelector<HTMLElement>(".scroll")?.focus();
  }

  /** Another row is read from its beginning. */
  override updated(changed: Map<string, unknown>): void {
    const before = changed.get("detail") as DatasetDetail | undefined;
    if (before !== undefined && before.row !== this.detail.row) this.renderRoot.querySelector(".scroll")?.scrollTo(0, 0);
  }
}

customElements.define("seesaw-row-detail", RowDetail);
