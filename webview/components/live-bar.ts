import { LitElement, css, html, type TemplateResult } from "lit";
import type { DriftLive } from "../../src/protocol/webview.ts";
import { t } from "../../src/util/l10n.ts";
import { shared } from "../styles.ts";

/** Says that what is shown was scored live and comes from no run, of which row, and leads back. Fires `leave`. */
export class LiveBar extends LitElement {
  static override properties = { live: { attribute: false } };
  declare live: DriftLive;

  static override styles = [
    shared,
    css`
      :host {
        display: block;
        padding: 7px 12px 8px 9px;
        font-size: 12px;
        line-height: 18px;
        color: var(--vscode-inputValidation-infoForeground, var(--vscode-foreground));
        background: var(--vscode-inputValidation-infoBackground);
        border-left: 3px solid var(--vscode-inputValidation-infoBorder);
        border-bottom: 1px solid var(--line);
      }
      .head {
        display: flex;
        flex-wrap: wrap;
        gap: 0 12px;
        align-items: baseline;
      }
      strong {
        flex: 1 1 auto;
        font-weight: 600;
      }
      .prompt {
        margin: 0;
        overflow: hidden;
        text-overflow: ellipsis;
        white-space: nowrap;
        unicode-bidi: plaintext;
      }
      .place {
        margin: 0;
        font-size: 11px;
        line-height: 16px;
        overflow-wrap: anywhere;
      }
      button {
        flex: none;
        padding: 0;
        font: inherit;
        color: var(--vscode-textLink-foreground);
        background: none;
        border: 0;
        cursor: pointer;
      }
      button:hover {
        text-decoration: underline;
      }
    `,
  ];

  override render(): TemplateResult {
    const { file, line, edited, prompt, checkpoints, progress } = this.live;
    const place = edited ? t("line {0} of {1} as edited, not saved", line, file) : t("line {0} of {1}", line, file);
    const under = checkpoints.join(", ");
    const status = progress === null ? t("{0} · under {1}, each stage against its start", place, under) : t("{0} · scoring under {1}: {2} of {3}", place, under, progress.done, progress.of);
    return html`
      <div class="head">
        <strong>${t("Live, not from a run")}</strong>
        <button title=${t("Back to the recorded prompts (Escape)")} aria-keyshortcuts="Escape" @click=${() => this.dispatchEvent(new CustomEvent("leave"))}>${progress === null ? t("Back to the recorded prompts") : t("Cancel")}</button>
      </div>
      <p class="prompt" title=${prompt}>${prompt}</p>
      <p class="place" role="status">${status}</p>
    `;
  }
}

customElements.define("seesaw-live-bar", LiveBar);
