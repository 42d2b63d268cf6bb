import { LitElement, css, html, type TemplateResult } from "lit";
import { promptOrders, type PromptOrder } from "../promptOrder.ts";
import { shared } from "../styles.ts";

/** The filter of the prompts and their order. Fires `filter`, `order`, and `leave` when the keyboard goes on to the list. */
export class ListTools extends LitElement {
  static override properties = { filter: { attribute: false }, order: { attribute: false } };
  declare filter: string;
  declare order: PromptOrder;

  static override styles = [
    shared,
    css`
      :host {
        display: flex;
        gap: 8px;
        padding: 6px 12px;
        border-top: 1px solid var(--line);
      }
      input,
      select {
        height: 24px;
        font: inherit;
        border-radius: 2px;
      }
      input {
        flex: 1 1 80px;
        min-width: 0;
        padding: 0 6px;
        color: var(--vscode-input-foreground);
        background: var(--vscode-input-background);
        border: 1px solid var(--vscode-input-border, var(--vscode-contrastBorder, transparent));
      }
      input::placeholder {
        color: var(--vscode-input-placeholderForeground);
        opacity: 1;
      }
      select {
        flex: 0 1 auto;
        min-width: 0;
        padding: 0 2px;
        color: var(--vscode-dropdown-foreground);
        background: var(--vscode-dropdown-background);
        border: 1px solid var(--vscode-dropdown-border, transparent);
      }
      input:focus,
      select:focus {
        outline: 1px solid var(--vscode-focusBorder);
        outline-offset: -1px;
      }
    `,
  ];

  override render(): TemplateResult {
    return html`<input
        type="text"
        role="searchbox"
        spellcheck="false"
        placeholder="Filter prompts ( / )"
        aria-label="Filter prompts"
        aria-keyshortcuts="/"
        .value=${this.filter}
        @input=${(event: Event) => this.tell("filter", (event.target as HTMLInputElement).value)}
        @keydown=${this.key}
      /><select aria-label="Order of the prompts" @change=${(event: Event) => this.tell("order", (event.target as HTMLSelectElement).value)}>
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
