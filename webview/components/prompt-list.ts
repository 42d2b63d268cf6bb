import { LitElement, css, html, nothing, type PropertyValues, type TemplateResult } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { formatCount, formatPlural } from "../../src/domain/format.ts";
import type { DriftCheckpoint, DriftPrompt } from "../../src/protocol/webview.ts";
import { t } from "../../src/util/l10n.ts";
import { signed } from "../format.ts";
import { scaleOf, sparkline } from "../sparkline.ts";
import { checkMarks, checkpointName, markStyle } from "../marks.ts";
import { shared } from "../styles.ts";

/** Height of a row in CSS pixels, and how many rows are kept ready above and below what is seen. */
const rowHeight = 22;
const spare = 12;

/**
 * The prompts with the curve of their drift and the check's result per checkpoint. Only the rows in sight are elements, so that
 * thousands are as quick as ten. Fires `choose` with the row's number, and `enter`.
 */
export class PromptList extends LitElement {
  static override properties = { prompts: { attribute: false }, total: { attribute: false }, order: { attribute: false }, checkpoints: { attribute: false }, selected: { attribute: false }, top: { state: true }, height: { state: true } };
  declare prompts: readonly DriftPrompt[];
  /** How many there are without the filter. */
  declare total: number;
  /** In words, for the list's name. */
  declare order: string;
  declare checkpoints: DriftCheckpoint[];
  declare selected: number | null;
  declare private top: number;
  declare private height: number;
  private observer: ResizeObserver | undefined;
  /** Whether the selected row was in sight before the prompts changed. */
  private followed = true;
  private scale = { low: 0, high: 0 };

  static override styles = [
    shared,
    css`
      :host {
        display: flex;
        flex-direction: column;
        min-height: 0;
        container-type: inline-size;
        --row: 22px;
      }
      .row,
      .head {
        display: grid;
        grid-template-columns: minmax(60px, 1fr) auto auto 52px;
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
      .all {
        position: relative;
      }
      .seen {
        position: absolute;
        inset: 0 0 auto;
      }
      .row {
        cursor: pointer;
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
        unicode-bidi: plaintext;
      }
      .reference {
        font-weight: 600;
        color: var(--vscode-foreground);
      }
      .curve {
        display: flex;
        width: 44px;
      }
      .spark {
        fill: none;
        stroke: currentcolor;
        stroke-width: 1.25;
        stroke-linejoin: round;
      }
      .spark circle {
        fill: currentcolor;
        stroke: none;
      }
      .spark .zero {
        stroke-width: 1;
        stroke-dasharray: 1 2;
        opacity: 0.5;
      }
      .spark.quiet {
        opacity: 0.6;
      }
      .none {
        margin: 0;
        padding: 6px 12px;
        color: var(--dim);
      }
      @container (max-width: 359px) {
        .row,
        .head {
          grid-template-columns: minmax(60px, 1fr) auto 42px;
          column-gap: 6px;
        }
        .curve {
          display: none;
        }
        .marks {
          grid-auto-columns: 20px;
        }
      }
    `,
  ];

  constructor() {
    super();
    this.top = 0;
    this.height = 0;
    this.total = 0;
    this.order = "";
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.observer?.disconnect();
  }

  override render(): TemplateResult {
    const index = this.index();
    const { first, last } = this.inSight();
    const count = this.prompts.length === this.total ? formatPlural(this.total, "prompt") : t("{0} of {1}", formatCount(this.prompts.length), formatPlural(this.total, "prompt"));
    return html`
      <div class="head" aria-hidden="true">
        <span class="text">${count}</span>
        <span class="curve" title=${t("Change of log p from the reference checkpoint on; all prompts on one scale")}>${t("drift")}</span>
        <span class="marks">${this.checkpoints.map((checkpoint) => html`<span class=${checkpoint.isReference ? "reference" : ""} title=${checkpointName(checkpoint)}>${checkpoint.label}</span>`)}</span>
        <span class="number" title=${t("Largest fall of the reference answer's log-probability, in nats")}>Δ log p</span>
      </div>
      <div class="list" role="listbox" tabindex="0" aria-label=${t("Prompts, {0}", this.order)} aria-activedescendant=${index >= first && index < last ? `prompt-${index}` : nothing} @keydown=${this.key} @scroll=${this.scrolled}>
        <div class="all" role="presentation">
          ${this.prompts.length === 0 ? html`<p class="none">${t("No prompt holds these words.")}</p>` : nothing}
          <div class="seen" role="presentation">${repeat(this.prompts.slice(first, last), ({ row }) => row, (prompt, place) => this.prompt(prompt, first + place))}</div>
        </div>
      </div>
    `;
  }

  override willUpdate(changed: PropertyValues): void {
    if (changed.has("prompts")) this.scale = scaleOf(this.prompts);
    const before = changed.get("prompts") as readonly DriftPrompt[] | undefined;
    if (before === undefined || !this.hasUpdated) return;
    // A list that is read again must not take a person back from where they have scrolled to.
    const { scrollTop, clientHeight } = this.list();
    const at = before.findIndex((prompt) => prompt.row === this.selected) * rowHeight;
    this.followed = at >= 0 && at + rowHeight > scrollTop && at < scrollTop + clientHeight;
  }

  override updated(changed: PropertyValues): void {
    const list = this.list();
    const { first } = this.inSight();
    list.querySelector<HTMLElement>(".all")?.style.setProperty("height", `${this.prompts.length * rowHeight}px`);
    list.querySelector<HTMLElement>(".seen")?.style.setProperty("top", `${first * rowHeight}px`);
    if (changed.has("selected") || (changed.has("prompts") && this.followed)) this.reveal(this.index());
  }

  override firstUpdated(): void {
    this.observer = new ResizeObserver(() => (this.height = this.list().clientHeight));
    this.observer.observe(this.list());
  }

  /** Moves the keyboard to the list. */
  focusList(): void {
    this.list().focus();
  }

  private list(): HTMLElement {
    return this.renderRoot.querySelector(".list") as HTMLElement;
  }

  /** The rows that are elements: those in sight and some more. */
  private inSight(): { first: number; last: number } {
    // A list that became shorter may still stand where it no longer has rows.
    const most = Math.max(0, this.prompts.length * rowHeight - this.height);
    const first = Math.max(0, Math.floor(Math.min(this.top, most) / rowHeight) - spare);
    return { first, last: Math.min(this.prompts.length, first + Math.ceil(this.height / rowHeight) + 2 * spare) };
  }

  private scrolled(): void {
    const { scrollTop } = this.list();
    if (Math.abs(scrollTop - this.top) >= (spare / 2) * rowHeight || scrollTop === 0) this.top = scrollTop;
  }

  private reveal(index: number): void {
    if (index < 0) return;
    const list = this.list();
    const at = index * rowHeight;
    if (at < list.scrollTop) list.scrollTop = at;
    else if (at + rowHeight > list.scrollTop + list.clientHeight) list.scrollTop = at + rowHeight - list.clientHeight;
    this.top = list.scrollTop;
  }

  private prompt(prompt: DriftPrompt, at: number): TemplateResult {
    const drift = prompt.worst === null ? t("not compared") : prompt.withinNoise ? t("noise") : signed(prompt.worst, 1);
    const checks = prompt.checks.map((mark, index) => {
      const change = prompt.changes[index] ?? null;
      return `${this.checkpoints[index]?.label} ${checkMarks[mark].word}${change === null ? "" : ` ${signed(change, 1)}`}`;
    });
    return html`<div
      class="row"
      role="option"
      id=${`prompt-${at}`}
      aria-setsize=${this.prompts.length}
      aria-posinset=${at + 1}
      aria-selected=${prompt.row === this.selected ? "true" : "false"}
      aria-label=${t("{0}. Drift {1}. {2}", prompt.prompt, drift, checks.join(", "))}
      title=${`${prompt.prompt}\n${t("line {0}", prompt.line)}`}
      @click=${() => this.choose(at)}
    >
      <span class="text">${prompt.prompt}</span>
      <span class="curve">${sparkline(prompt, this.scale)}</span>
      <span class="marks">${prompt.checks.map((mark, index) => html`<span class=${markStyle(mark, index, this.checkpoints)}>${checkMarks[mark].sign}</span>`)}</span>
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
