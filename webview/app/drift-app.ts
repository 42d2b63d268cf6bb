import { LitElement, css, html, nothing, type PropertyValues, type TemplateResult } from "lit";
import { formatCount } from "../../src/domain/format.ts";
import type { DriftAction, DriftSelection, DriftSnapshot } from "../../src/protocol/webview.ts";
import type { Actions } from "../actions.ts";
import "../components/answer-list.ts";
import "../components/choice-bar.ts";
import "../components/empty-state.ts";
import "../components/prompt-list.ts";
import "../components/token-detail.ts";
import "../components/token-film.ts";
import type { PromptList } from "../components/prompt-list.ts";
import type { TokenFilm } from "../components/token-film.ts";
import { initialState, type PageState, type Store, type TokenFocus } from "../state.ts";
import { shared, tokenClasses } from "../styles.ts";

/** The Token Drift page: choices, prompts, the film of one prompt, the numbers of one token, the greedy answers. */
export class DriftApp extends LitElement {
  static override properties = { page: { state: true } };
  declare private page: PageState;
  private actions: Actions | undefined;
  private unsubscribe: (() => void) | undefined;

  static override styles = [
    shared,
    tokenClasses,
    css`
      :host {
        display: flex;
        flex-direction: column;
        height: 100vh;
        overflow: hidden;
        background: var(--vscode-sideBar-background, var(--vscode-editor-background));
      }
      .busy {
        height: 2px;
        background: var(--vscode-progressBar-background);
      }
      .idle {
        height: 2px;
      }
      seesaw-prompt-list {
        flex: 0 1 auto;
        max-height: 28%;
        border-top: 1px solid var(--line);
      }
      .notes {
        margin: 0;
        padding: 3px 12px;
        font-size: 11px;
        line-height: 16px;
        color: var(--dim);
        border-top: 1px solid var(--line);
      }
      .film {
        flex: 1 1 0;
        min-height: 120px;
        overflow-y: auto;
        border-top: 1px solid var(--line);
      }
      section {
        padding: 10px 12px 4px;
      }
      .prompt {
        display: flex;
        gap: 8px;
        align-items: baseline;
        margin-bottom: 8px;
      }
      .prompt h3 {
        flex: 1;
        min-width: 0;
        max-height: 64px;
        overflow-y: auto;
        font-size: 12px;
        white-space: pre-wrap;
        overflow-wrap: anywhere;
        unicode-bidi: plaintext;
        letter-spacing: 0;
      }
      button.link {
        flex: none;
        padding: 0;
        font: inherit;
        font-size: 11px;
        color: var(--vscode-textLink-foreground);
        background: none;
        border: 0;
        cursor: pointer;
      }
      button.link:hover {
        text-decoration: underline;
      }
      .legend {
        display: flex;
        flex-wrap: wrap;
        gap: 2px 14px;
        margin-top: 8px;
        font-size: 11px;
        color: var(--dim);
      }
      .parts {
        display: flex;
        gap: 12px;
        margin-top: 6px;
        font-size: 11px;
        color: var(--dim);
      }
      button.link:disabled {
        color: var(--vscode-disabledForeground);
        cursor: default;
        text-decoration: none;
      }
      .legend .token {
        margin-right: 4px;
        padding: 0 5px;
        color: var(--vscode-foreground);
        font-family: var(--mono);
      }
    `,
  ];

  constructor() {
    super();
    this.page = initialState;
  }

  /** Gives the page its state and its way out. */
  connect(store: Store, actions: Actions): void {
    this.actions = actions;
    this.page = store.state;
    this.unsubscribe = store.subscribe(() => (this.page = store.state));
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.unsubscribe?.();
  }

  override render(): TemplateResult {
    const data = this.page.data;
    if (data === null) return html`<div class="busy" role="progressbar" aria-label="Loading"></div>`;
    if (data.empty !== null && data.choices.skills.length === 0) return this.empty(data);
    return html`
      <div class=${data.busy ? "busy" : "idle"} role=${data.busy ? "progressbar" : nothing} aria-label=${data.busy ? "Reading traces" : nothing}></div>
      <seesaw-choice-bar .choices=${data.choices} .selection=${data.selection} @choose=${(event: CustomEvent<Partial<DriftSelection>>) => this.actions?.select(event.detail)}></seesaw-choice-bar>
      ${data.empty !== null ? this.empty(data) : this.content(data)}
    `;
  }

  private empty(data: DriftSnapshot): TemplateResult {
    return html`<seesaw-empty-state .empty=${data.empty} @action=${(event: CustomEvent<DriftAction>) => this.actions?.run(event.detail)}></seesaw-empty-state>`;
  }

  private content(data: DriftSnapshot): TemplateResult {
    return html`
      <seesaw-prompt-list
        .prompts=${data.prompts}
        .checkpoints=${data.checkpoints}
        .selected=${data.selection.row}
        @choose=${(event: CustomEvent<number>) => this.actions?.select({ row: event.detail })}
        @enter=${() => this.renderRoot.querySelector<TokenFilm>("seesaw-token-film")?.focusToken()}
      ></seesaw-prompt-list>
      ${data.notes.length === 0 ? nothing : html`<p class="notes">${data.notes.join(" ")}</p>`}
      ${data.film === null ? nothing : this.film(data, data.film)}
    `;
  }

  private film(data: DriftSnapshot, film: NonNullable<DriftSnapshot["film"]>): TemplateResult {
    const { row, token } = this.page.focus;
    return html`<div class="film">
      <section>
        <div class="prompt">
          <h3>${film.prompt}</h3>
          <button class="link" title="Open this row of the probe file" @click=${() => this.actions?.openRow(film.row)}>line ${film.line}</button>
        </div>
        <seesaw-token-film
          .film=${film}
          .checkpoints=${data.checkpoints}
          .position=${this.page.focus}
          @leave=${() => this.renderRoot.querySelector<PromptList>("seesaw-prompt-list")?.focusList()}
          @focus-token=${(event: CustomEvent<TokenFocus>) => this.actions?.focusToken(event.detail)}
        ></seesaw-token-film>
        <div class="legend">
          <span><span class="token">a</span>kept</span>
          <span><span class="token weakened">a</span>weakened</span>
          <span><span class="token lost">a</span>lost (rank 4 or worse)</span>
        </div>
        ${film.total > film.tokens.length ? this.parts(film) : nothing}
      </section>
      <section><seesaw-token-detail .film=${film} .checkpoints=${data.checkpoints} .token=${token} .row=${row}></seesaw-token-detail></section>
      <section><seesaw-answer-list .film=${film} .checkpoints=${data.checkpoints}></seesaw-answer-list></section>
    </div>`;
  }

  /** Leads through a reference that is too long to be shown at once. */
  private parts({ from, total, tokens }: NonNullable<DriftSnapshot["film"]>): TemplateResult {
    const [size, next] = [tokens.length, from + tokens.length];
    const go = (token: number | null) => () => this.actions?.select({ token });
    return html`<div class="parts" role="group" aria-label="Parts of the reference answer">
      <span>tokens ${formatCount(from + 1)}–${formatCount(next)} of ${formatCount(total)}</span>
      <button class="link" ?disabled=${from === 0} @click=${go(Math.max(0, from - size / 2))}>earlier</button>
      <button class="link" ?disabled=${next === total} @click=${go(Math.min(total - 1, next + size / 2))}>later</button>
      <button class="link" @click=${go(null)}>most changed</button>
    </div>`;
  }

  override updated(changed: PropertyValues): void {
    const before = changed.get("page") as PageState | undefined;
    // Another prompt is read from its beginning.
    if (before?.data?.film?.row !== this.page.data?.film?.row) this.renderRoot.querySelector(".film")?.scrollTo(0, 0);
    this.toggleAttribute("data-ready", this.page.data !== null && !this.page.data.busy);
  }
}
