import { LitElement, html, nothing, type PropertyValues, type TemplateResult } from "lit";
import { formatCount } from "../../src/domain/format.ts";
import type { DriftAction, DriftSelection, DriftSnapshot } from "../../src/protocol/webview.ts";
import type { Actions } from "../actions.ts";
import "../components/answer-list.ts";
import "../components/choice-bar.ts";
import "../components/drift-chart.ts";
import "../components/empty-state.ts";
import "../components/list-tools.ts";
import "../components/prompt-list.ts";
import "../components/token-detail.ts";
import "../components/token-film.ts";
import "../components/token-grid.ts";
import type { FilmElement } from "../components/film-element.ts";
import type { ListTools } from "../components/list-tools.ts";
import type { PromptList } from "../components/prompt-list.ts";
import { arrange, promptOrders, type PromptOrder } from "../promptOrder.ts";
import { initialState, type PageState, type Store, type TokenFocus } from "../state.ts";
import { shared, tokenClasses } from "../styles.ts";
import { appStyles } from "./app-styles.ts";

/** The Token Drift page: choices, chart, prompts, the film of one prompt, the numbers of one token, the greedy answers. */
export class DriftApp extends LitElement {
  static override properties = { page: { state: true }, layout: {} };
  declare private page: PageState;
  /** `editor`: wide, in a tab of its own; otherwise the side bar. */
  declare layout: string | undefined;
  private listed: { from: unknown[]; prompts: ReturnType<typeof arrange> } = { from: [], prompts: [] };
  private actions: Actions | undefined;
  private unsubscribe: (() => void) | undefined;

  static override styles = [
    shared,
    tokenClasses,
    appStyles,
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

  override connectedCallback(): void {
    super.connectedCallback();
    window.addEventListener("keydown", this.shortcut);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    window.removeEventListener("keydown", this.shortcut);
    this.unsubscribe?.();
  }

  override render(): TemplateResult {
    const data = this.page.data;
    if (data === null) return html`<div class="busy" role="progressbar" aria-label="Loading"></div>`;
    if (data.empty !== null && data.choices.skills.length === 0) return html`<main>${this.empty(data)}</main>`;
    return html`
      <div class=${data.busy ? "busy" : "idle"} role=${data.busy ? "progressbar" : nothing} aria-label=${data.busy ? "Reading traces" : nothing}></div>
      <main>
        <h1 class="visually-hidden">Token Drift</h1>
        <div class="side">
          <seesaw-choice-bar .choices=${data.choices} .selection=${data.selection} @choose=${(event: CustomEvent<Partial<DriftSelection>>) => this.actions?.select(event.detail)}></seesaw-choice-bar>
          ${data.empty !== null || this.wide ? nothing : this.chart(data)} ${data.empty !== null ? this.empty(data) : this.list(data)}
        </div>
        ${data.empty !== null ? nothing : html`<div class="film">${this.wide ? this.chart(data) : nothing}${data.film === null ? nothing : this.film(data, data.film)}</div>`}
      </main>
    `;
  }

  private get wide(): boolean {
    return this.layout === "editor";
  }

  private empty(data: DriftSnapshot): TemplateResult {
    return html`<seesaw-empty-state .empty=${data.empty} @action=${(event: CustomEvent<DriftAction>) => this.actions?.run(event.detail)}></seesaw-empty-state>`;
  }

  private chart(data: DriftSnapshot): TemplateResult | typeof nothing {
    if (data.chart === null) return nothing;
    const open = this.page.view.chartOpen ?? this.wide;
    return html`<seesaw-drift-chart
      .chart=${data.chart}
      .checkpoints=${data.checkpoints}
      .current=${data.film?.rows[this.page.focus.row]?.checkpoint ?? -1}
      .open=${open}
      @toggle=${() => this.actions?.view({ chartOpen: !open })}
      @choose=${(event: CustomEvent<number>) => this.actions?.lookAt(event.detail)}
    ></seesaw-drift-chart>`;
  }

  private list(data: DriftSnapshot): TemplateResult {
    const { order } = this.page.view;
    return html`
      <seesaw-list-tools
        .filter=${this.page.filter}
        .order=${order}
        @filter=${(event: CustomEvent<string>) => this.actions?.filter(event.detail)}
        @order=${(event: CustomEvent<PromptOrder>) => this.actions?.view({ order: event.detail })}
        @leave=${this.toList}
      ></seesaw-list-tools>
      <seesaw-prompt-list
        .prompts=${this.arranged(data)}
        .total=${data.prompts.length}
        .order=${promptOrders.find(({ value }) => value === order)?.label ?? ""}
        .checkpoints=${data.checkpoints}
        .selected=${data.selection.row}
        @choose=${(event: CustomEvent<number>) => this.actions?.select({ row: event.detail })}
        @enter=${() => this.renderRoot.querySelector<FilmElement>("seesaw-token-film, seesaw-token-grid")?.focusToken()}
      ></seesaw-prompt-list>
      ${data.notes.length === 0 ? nothing : html`<p class="notes">${data.notes.join(" ")}</p>`}
    `;
  }

  /** The same array while nothing changed: the list then keeps its place. */
  private arranged({ prompts, checkpoints }: DriftSnapshot): ReturnType<typeof arrange> {
    const { filter, view } = this.page;
    const from = [prompts, checkpoints, filter, view.order];
    if (from.some((part, index) => part !== this.listed.from[index])) this.listed = { from, prompts: arrange(prompts, checkpoints, view.order, filter) };
    return this.listed.prompts;
  }

  private readonly toList = (): void => this.renderRoot.querySelector<PromptList>("seesaw-prompt-list")?.focusList();

  /** `/` leads to the filter from everywhere but where one writes. */
  private readonly shortcut = (event: KeyboardEvent): void => {
    const [target] = event.composedPath();
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || target instanceof HTMLInputElement || target instanceof HTMLSelectElement) return;
    event.preventDefault();
    this.renderRoot.querySelector<ListTools>("seesaw-list-tools")?.focusFilter();
  };

  private film(data: DriftSnapshot, film: NonNullable<DriftSnapshot["film"]>): TemplateResult {
    const { row, token } = this.page.focus;
    const focus = (event: CustomEvent<TokenFocus>): void => this.actions?.focusToken(event.detail);
    const open = (): void => this.actions?.openRow(film.row);
    return html`
      <section>
        <div class="prompt">
          <h2>${film.prompt}</h2>
          <button class="link" title="Open this row of the probe file (o in the tokens)" @click=${open}>line ${film.line}</button>
        </div>
        ${this.wide
          ? html`<seesaw-token-grid .film=${film} .checkpoints=${data.checkpoints} .position=${this.page.focus} @leave=${this.toList} @focus-token=${focus} @open-row=${open}></seesaw-token-grid>`
          : html`<seesaw-token-film .film=${film} .checkpoints=${data.checkpoints} .position=${this.page.focus} @leave=${this.toList} @focus-token=${focus} @open-row=${open}></seesaw-token-film>`}
        <div class="legend">
          <span><span class="token">a</span>kept</span>
          <span><span class="token weakened">a</span>weakened</span>
          <span><span class="token lost">a</span>lost (rank 4 or worse)</span>
          ${this.wide ? html`<span class="keys"><kbd>n</kbd> <kbd>p</kbd> next, previous changed token · <kbd>o</kbd> open row · <kbd>/</kbd> filter</span>` : nothing}
        </div>
        ${film.total > film.tokens.length ? this.parts(film) : nothing}
      </section>
      <section><seesaw-token-detail .film=${film} .checkpoints=${data.checkpoints} .token=${token} .row=${row}></seesaw-token-detail></section>
      <section><seesaw-answer-list .film=${film} .checkpoints=${data.checkpoints}></seesaw-answer-list></section>
    `;
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
