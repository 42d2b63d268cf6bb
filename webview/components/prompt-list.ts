import { LitElement, css, html, type PropertyValues, type TemplateResult } from "lit";
import type { DriftCheckpoint, DriftPrompt } from "../../src/protocol/webview.ts";
import { signed } from "../format.ts";
import { checkMarks, checkpointName } from "../marks.ts";
import { shared } from "../styles.ts";

/** The prompts, most drifted first, with the check's result per checkpoint. Fires `choose` with the row's number. */
export class PromptList extends LitElement {
  static override properties = { prompts: { attribute: false }, checkpoints: { attribute: false }, selected: { attribute: false } };
  declare prompts: DriftPrompt[];
  declare checkpoints: DriftCheckpoint[];
  declare selected: number | null;

  static override styles = [
    shared,
    css`
      :host {
        display: flex;
        flex-direction: column;
        min-height: 0;
        --row: 22px;
      }
      .row,
      .head {
        display: grid;
        grid-template-columns: minmax(60px, 1fr) auto 52px;
        column-gap: 8px;
        align-items: center;
        height: var(--row);
        padding: 0 12px;
      }
      .head {
        font-size: 11px;
        color: var(--dim);
        border-bottom: 1px solid var(--line);
      }
      .marks {
        display: grid;
        grid-auto-flow: column;
        grid-auto-columns: 24px;
        text-align: center;
      }
      .list {
        overflow-y: auto;
        min-height: 0;
        flex: 1;
      }
      .row {
        cursor: pointer;
        content-visibility: auto;
        contain-intrinsic-block-size: var(--row);
      }
      .row:hover {
        background: var(--vscode-list-hoverBackground);
        outline: 1px dashed var(--vscode-contrastActiveBorder, transparent);
        outline-offset: -1px;
      }
      .row[aria-selected="true"] {
        color: var(--vscode-list-inactiveSelectionForeground, inherit);
        background: var(--vscode-list-inactiveSelectionBackground);
        outline: 1px solid var(--vscode-contrastActiveBorder, transparent);
        outline-offset: -1px;
      }
      .list:focus .row[aria-selected="true"] {
        color: var(--vscode-list-activeSelectionForeground);
        background: var(--vscode-list-activeSelectionBackground);
        outline: 1px solid var(--vscode-contrastActiveBorder, var(--vscode-list-focusOutline, transparent));
      }
      .list:focus .row[aria-selected="true"] .dim {
        color: inherit;
      }
      .list:focus-visible {
        outline: none;
      }
      .text {
        overflow: hidden;
        text-overflow: ellipsis;
        white-space: nowrap;
        unicode-bidi: isolate;
      }
      .reference {
        font-weight: 600;
        color: var(--vscode-foreground);
      }
    `,
  ];

  override render(): TemplateResult {
    const index = this.index();
    return html`
      <div class="head" aria-hidden="true">
        <span class="text">${this.prompts.length} ${this.prompts.length === 1 ? "prompt" : "prompts"}, most drifted first</span>
        <span class="marks">${this.checkpoints.map((checkpoint) => html`<span class=${checkpoint.isReference ? "reference" : ""} title=${checkpointName(checkpoint)}>${checkpoint.label}</span>`)}</span>
        <span class="number" title="Largest fall of the reference answer's log-probability, in nats">Δ log p</span>
      </div>
      <div class="list" role="listbox" tabindex="0" aria-label="Prompts, most drifted first" aria-activedescendant=${index < 0 ? "" : `prompt-${index}`} @keydown=${this.key}>
        ${this.prompts.map((prompt, at) => this.prompt(prompt, at))}
      </div>
    `;
  }

  override updated(changed: PropertyValues): void {
    if (changed.has("selected") || changed.has("prompts")) this.renderRoot.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }

  /** Moves the keyboard to the list. */
  focusList(): void {
    this.renderRoot.querySelector<HTMLElement>(".list")?.focus();
  }

  private prompt(prompt: DriftPrompt, at: number): TemplateResult {
    const drift = prompt.worst === null ? "not compared" : prompt.withinNoise ? "noise" : signed(prompt.worst, 1);
    const checks = prompt.checks.map((mark, index) => `${this.checkpoints[index]?.label} ${checkMarks[mark].word}`).join(", ");
    return html`<div
      class="row"
      role="option"
      id=${`prompt-${at}`}
      aria-selected=${prompt.row === this.selected ? "true" : "false"}
      aria-label=${`${prompt.prompt}. Drift ${drift}. ${checks}`}
      title=${`${prompt.prompt}\nline ${prompt.line}`}
      @click=${() => this.choose(at)}
    >
      <span class="text">${prompt.prompt}</span>
      <span class="marks">${prompt.checks.map((mark) => html`<span class=${mark}>${checkMarks[mark].sign}</span>`)}</span>
      <span class="number ${prompt.worst === null || prompt.withinNoise ? "dim" : ""}">${prompt.worst === null ? "–" : drift}</span>
    </div>`;
  }

  private index(): number {
    return this.prompts.findIndex((prompt) => prompt.row === this.selected);
  }

  private choose(at: number): void {
    const prompt = this.prompts[Math.max(0, Math.min(at, this.prompts.length - 1))];
    if (prompt !== undefined && prompt.row !== this.selected) this.dispatchEvent(new CustomEvent("choose", { detail: prompt.row }));
  }

  private key(event: KeyboardEvent): void {
    const at = this.index();
    const page = 10;
    const moves: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: this.prompts.length - 1, PageDown: at + page, PageUp: at - page };
    const to = moves[event.key];
    if (event.key === "Enter") this.dispatchEvent(new CustomEvent("enter"));
    else if (to === undefined) return;
    else this.choose(to);
    event.preventDefault();
  }
}

customElements.define("seesaw-prompt-list", PromptList);
