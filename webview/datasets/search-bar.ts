import { LitElement, css, html, nothing, type TemplateResult } from "lit";
import { formatPercent } from "../../src/domain/format.ts";
import { t } from "../../src/util/l10n.ts";
import { controls, shared } from "../styles.ts";
import type { PageStore } from "./pageStore.ts";

/** Search and jump to a line. Fires `leave` when the keyboard should go back to the rows. */
export class SearchBar extends LitElement {
  static override properties = { store: { attribute: false }, tick: { attribute: false } };
  declare store: PageStore;
  declare tick: number;

  static override styles = [
    shared,
    controls,
    css`
      :host {
        display: flex;
        flex-wrap: wrap;
        gap: 4px 8px;
        align-items: center;
        font-size: 12px;
      }
      input {
        height: 22px;
      }
      .text {
        width: 22ch;
      }
      .line {
        width: 14ch;
      }
      button {
        min-width: 22px;
        height: 22px;
        padding: 0 4px;
        font: inherit;
        color: var(--vscode-foreground);
        background: none;
        border: 1px solid transparent;
        border-radius: 2px;
        cursor: pointer;
      }
      button:hover {
        background: var(--vscode-toolbar-hoverBackground);
        outline: 1px dashed var(--vscode-contrastActiveBorder, transparent);
      }
      button[aria-pressed="true"] {
        color: var(--vscode-inputOption-activeForeground);
        background: var(--vscode-inputOption-activeBackground);
        border-color: var(--vscode-inputOption-activeBorder, transparent);
      }
    `,
  ];

  override render(): TemplateResult {
    const { search, went } = this.store;
    const message = search.share !== null ? t("searching {0}", formatPercent(search.share, 0)) : search.result || went;
    return html`
      <span class="dim" role="status">${message}</span>
      ${search.share === null ? nothing : html`<button @click=${() => this.store.cancelFind()}>${t("Cancel")}</button>`}
      <input class="text" type="text" placeholder=${t("Search text ( / )")} aria-label=${t("Search the rows' text")} .value=${search.text} @keydown=${this.searchKey} />
      <button aria-pressed=${search.matchCase ? "true" : "false"} title=${t("Match case")} aria-label=${t("Match case")} @click=${() => this.store.find(this.text(), !search.matchCase, 1, true)}>Aa</button>
      <button title=${t("Previous match (Shift+Enter)")} aria-label=${t("Previous match")} @click=${() => this.step(-1)}>↑</button>
      <button title=${t("Next match (Enter)")} aria-label=${t("Next match")} @click=${() => this.step(1)}>↓</button>
      <input class="line" type="text" inputmode="numeric" placeholder=${t("Go to line ( g )")} aria-label=${t("Go to line")} @keydown=${this.lineKey} />
    `;
  }

  focusSearch(): void {
    this.input("text").select();
    this.input("text").focus();
  }

  focusLine(): void {
    this.input("line").select();
    this.input("line").focus();
  }

  /** The next match of what is in the field, or the one before. */
  step(direction: 1 | -1): void {
    const text = this.text();
    this.store.find(text, this.store.search.matchCase, direction, direction === 1 && text !== this.store.search.text);
  }

  private input(name: "text" | "line"): HTMLInputElement {
    return this.renderRoot.querySelector(`input.${name}`) as HTMLInputElement;
  }

  private text(): string {
    return this.input("text").value;
  }

  private searchKey(event: KeyboardEvent): void {
    if (event.key === "Enter") this.step(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") {
      this.store.cancelFind();
      this.leave();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  private lineKey(event: KeyboardEvent): void {
    if (event.key !== "Enter" && event.key !== "Escape") return;
    const line = Number(this.input("line").value.replace(/[\s,_.]/g, ""));
    if (event.key === "Enter" && Number.isSafeInteger(line) && line > 0) this.store.goTo(line);
    this.leave();
    event.preventDefault();
    event.stopPropagation();
  }

  private leave(): void {
    this.dispatchEvent(new CustomEvent("leave"));
  }
}

customElements.define("seesaw-search-bar", SearchBar);
