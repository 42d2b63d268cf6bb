import { LitElement, css, html, type TemplateResult } from "lit";
import type { DriftEmpty } from "../../src/protocol/webview.ts";
import { controls, shared } from "../styles.ts";

/** Why there is nothing to show, and what to do about it. Fires `action`. */
export class EmptyState extends LitElement {
  static override properties = { empty: { attribute: false } };
  declare empty: DriftEmpty;

  static override styles = [
    shared,
    controls,
    css`
      :host {
        display: block;
        padding: 14px 16px;
        line-height: 1.5;
      }
      h3 {
        font-size: 13px;
        line-height: 20px;
        letter-spacing: 0;
      }
      .error h3 {
        color: var(--vscode-errorForeground);
      }
      p {
        margin: 4px 0 12px;
        color: var(--dim);
        overflow-wrap: anywhere;
      }
      button.solid {
        display: block;
        width: 100%;
        max-width: 300px;
        margin: 0 0 6px;
        padding: 4px 12px;
        line-height: 18px;
      }
      button.second {
        color: var(--vscode-button-secondaryForeground);
        background: var(--vscode-button-secondaryBackground);
      }
      button:focus-visible {
        outline-offset: 2px;
      }
    `,
  ];

  override render(): TemplateResult {
    const { kind, title, detail, actions } = this.empty;
    return html`<div class=${kind} role=${kind === "error" ? "alert" : "status"}>
      <h3>${title}</h3>
      <p>${detail}</p>
      ${actions.map(
        ({ label, action }, index) =>
          html`<button class=${index === 0 ? "solid" : "solid second"} @click=${() => this.dispatchEvent(new CustomEvent("action", { detail: action }))}>${label}</button>`,
      )}
    </div>`;
  }
}

customElements.define("seesaw-empty-state", EmptyState);
