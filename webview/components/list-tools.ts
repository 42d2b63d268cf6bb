import { LitElement, css, html, type TemplateResult } from "lit";
import { t } from "../../src/util/l10n.ts";
import { promptOrders, type PromptOrder } from "../promptOrder.ts";
import { controls, shared } from "../styles.ts";

/** The filter of the prompts and their order. Fires `filter`, `order`, and `leave` when the keyboard goes on to the list. */
export class ListTools extends LitElement {
  static override properties = { filter: { attribute: false }, order: { attribute: false } };
  declare filter: string;
  declare order: PromptOrder;

  static override styles = [
    shared,
    controls,
    css`
      :host {
        display: flex;
        gap: 8px;
        padding: 6px 12px;
        border-top: 1px solid var(--line);
      }
      input {
        flex: 1 1 80px;
      }
      select {
        flex: 0 1 auto;
      }
    `,
  ];

  override render(): TemplateResult {
    return html`<input
        type="text"
        role="searchbox"
        spellcheck="false"
        placeholder=${t("Filter prompts ( / )")}
        aria-label=${t("Filter prompts")}
        aria-keyshortcuts="/"
        .value=${this.filter}
        @input=${(event: Event) => this.tell("filter", (event.target as HTMLInputElement).value)}
        @keydown=${this.key}
      /><select aria-label=${t("Order of the prompts")} @change=${(event: Event) => this.tell("order", (event.target as HTMLSelectElement).value)}>
        ${promptOrders.map(({ value, label }) => html`<option value=${value} .selected=${value === this.order}>${label}</option>`)}
      </select>`;
  }

  /** Moves the keyboard to the filter. */
  focusFilter(): void {
    this.renderRoot.querySelector("input")?.select();
  }

  private key(event: KeyboardEvent): void {
    if (event.key === "Escape" && this.filter !== "") this.tell("filter", "");
    else if (event.key === "Escape" || event.key === "ArrowDown" || event.key === "Enter") this.tell("leave", null);
    else return;
    event.preventDefault();
  }

  private tell(name: "filter" | "order" | "leave", detail: string | null): void {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

customElements.define("seesaw-list-tools", ListTools);
