import { LitElement, html, nothing, type PropertyValues, type TemplateResult } from "lit";
import { formatCount } from "../../src/domain/format.ts";
import type { DriftAction, DriftSelection, DriftSnapshot } from "../../src/protocol/webview.ts";
import { t } from "../../src/util/l10n.ts";
import type { Actions } from "../actions.ts";
import "../components/answer-list.ts";
import "../components/choice-bar.ts";
import "../components/drift-chart.ts";
import "../components/empty-state.ts";
import "../components/list-tools.ts";
import "../components/live-bar.ts";
import "../components/prompt-list.ts";
import "../components/token-detail.ts";
import "../components/token-film.ts";
import "../components/token-grid.ts";
import type { FilmElement } from "../components/film-element.ts";
import type { ListTools } from "../components/list-tools.ts";
import type { PromptList } from "../components/prompt-list.ts";
import { arrange, promptOrders, type PromptOrder } from "../promptOrder.ts";
import { initialState, type PageState, type Store, type TokenFocus } from "../state.ts";
import { controls, shared, tokenClasses } from "../styles.ts";
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
    controls,
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
    window.addEventListener("focus", this.toLive);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    window.removeEventListener("keydown", this.shortcut);
    window.removeEventListener("focus", this.toLive);
    this.unsubscribe?.();
  }

  override render(): TemplateResult {
    const data = this.page.data;
    if (data === null) return html`<div class="busy" role="progressbar" aria-label=${t("Loading")}></div>`;
    if (data.live !== null) return this.live(data, data.live);
    if (data.empty !== null && data.choices.skills.length === 0) return html`<main>${this.empty(data)}</main>`;
    return html`
      <div class=${data.busy ? "busy" : "idle"} role=${data.busy ? "progressbar" : nothing} aria-label=${data.busy ? t("Reading traces") : nothing}></div>
      <main>
        <h1 class="visually-hidden">${t("Token Drift")}</h1>
        <div class="side">
          <seesaw-choice-bar .choices=${data.choices} .selection=${data.selection} @choose=${(event: CustomEvent<Partial<DriftSelection>>) => this.actions?.select(event.detail)}></seesaw-choice-bar>
          ${data.empty !== null || this.wide ? nothing : this.chart(data)} ${data.empty !== null ? this.empty(data) : this.list(data)}
        </div>
        ${data.empty !== null ? nothing : html`<div class="film">${this.wide ? this.chart(data) : nothing}${data.film === null ? nothing : this.film(data, data.film)}</div>`}
      </main>
    `;
  }

  /** Rows scored live: a bar that says so in place of the choices and the chart, and the film; a list where there are several. */
  private live(data: DriftSnapshot, live: NonNullable<DriftSnapshot["live"]>): TemplateResult {
    const { progress } = live;
    const bar = progress === null ? html`<div class="idle"></div>` : html`<div class="busy" role="progressbar" aria-label=${t("Scoring under every checkpoint")} aria-valuemin="0" aria-valuemax=${progress.of} aria-valuenow=${progress.done}></div>`;
    return html`
      ${bar}
      <seesaw-live-bar role="region" aria-label=${t("Live, not from a run")} .live=${live} @leave=${() => this.actions?.leaveLive()}></seesaw-live-bar>
      <main>
        <h1 class="visually-hidden">${t("Token Drift")}</h1>
        ${data.prompts.length > 1 ? html`<div class="side">${this.list(data)}</div>` : nothing}
        <div class="film">${data.empty === null ? nothing : this.empty(data)}${data.film === null ? nothing : this.film(data, data.film)}${data.prompts.length > 1 ? nothing : this.notes(data)}</div>
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
      @card=${() => this.actions?.run("openReportCard")}
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
        .selected=${data.live?.row ?? data.selection.row}
        @choose=${(event: CustomEvent<number>) => this.actions?.select({ row: event.detail })}
        @enter=${this.toFilm}
      ></seesaw-prompt-list>
      ${this.notes(data)}
    `;
  }

  private notes({ notes }: DriftSnapshot): TemplateResult | typeof nothing {
    return notes.length === 0 ? nothing : html`<p class="notes">${notes.join(" ")}</p>`;
  }

  /** The same array while nothing changed: the list then keeps its place. */
  private arranged({ prompts, checkpoints }: DriftSnapshot): ReturnType<typeof arrange> {
    const { filter, view } = this.page;
    const from = [prompts, checkpoints, filter, view.order];
    if (from.some((part, index) => part !== this.listed.from[index])) this.listed = { from, prompts: arrange(prompts, checkpoints, view.order, filter) };
    return this.listed.prompts;
  }

  private readonly toFilm = (): void => this.renderRoot.querySelector<FilmElement>("seesaw-token-film, seesaw-token-grid")?.focusToken();

  /** Whoever comes to the page after scoring a row stands in its tokens. */
  private readonly toLive = (): void => {
    const root = this.renderRoot;
    if (this.page.data?.live != null && document.hasFocus() && root instanceof ShadowRoot && root.activeElement === null) this.toFilm();
  };

  private readonly toList = (): void => this.renderRoot.querySelector<PromptList>("seesaw-prompt-list")?.focusList();

  /** `/` leads to the filter from everywhere but where one writes; Escape from rows scored live back to the recorded prompts. */
  private readonly shortcut = (event: KeyboardEvent): void => {
    const [target] = event.composedPath();
    if (event.key === "Escape" && !event.defaultPrevented) return this.actions?.leaveLive();
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
          <button class="link" title=${t("Open this row of the probe file (o in the tokens)")} @click=${open}>${t("line {0}", film.line)}</button>
        </div>
        ${this.wide
          ? html`<seesaw-token-grid .film=${film} .checkpoints=${data.checkpoints} .position=${this.page.focus} @leave=${this.toList} @focus-token=${focus} @open-row=${open}></seesaw-token-grid>`
          : html`<seesaw-token-film .film=${film} .checkpoints=${data.checkpoints} .position=${this.page.focus} @leave=${this.toList} @focus-token=${focus} @open-row=${open}></seesaw-token-film>`}
        <div class="legend">
          <span><span class="token">a</span>${t("kept")}</span>
          <span><span class="token weakened">a</span>${t("weakened")}</span>
          <span><span class="token lost">a</span>${t("lost (rank 4 or worse)")}</span>
          ${this.wide ? html`<span class="keys"><kbd>n</kbd> <kbd>p</kbd> ${t("next, previous changed token")} · <kbd>o</kbd> ${t("open row")} · ${data.live === null ? html`<kbd>/</kbd> ${t("filter")}` : html`<kbd>${"Esc"}</kbd> ${t("Back to the recorded prompts")}`}</span>` : nothing}
        </div>
        ${film.total > film.tokens.length ? this.parts(film) : nothing}
      </section>
      <section><seesaw-token-detail .film=${film} .checkpoints=${data.checkpoints} .token=${token} .row=${row}></seesaw-token-detail></section>
      <section>${data.live === null ? html`<seesaw-answer-list .film=${film} .checkpoints=${data.checkpoints}></seesaw-answer-list>` : html`<p class="unmeasured">${t("Not measured live: the greedy answer, the skill's check, and the parts of the answer.")}</p>`}</section>
    `;
  }

  /** Leads through a reference that is too long to be shown at once. */
  private parts({ from, total, tokens }: NonNullable<DriftSnapshot["film"]>): TemplateResult {
    const [size, next] = [tokens.length, from + tokens.length];
    const go = (token: number | null) => () => this.actions?.select({ token });
    return html`<div class="parts" role="group" aria-label=${t("Parts of the reference answer")}>
      <span>${t("tokens {0}–{1} of {2}", formatCount(from + 1), formatCount(next), formatCount(total))}</span>
      <button class="link" ?disabled=${from === 0} @click=${go(Math.max(0, from - size / 2))}>${t("earlier")}</button>
      <button class="link" ?disabled=${next === total} @click=${go(Math.min(total - 1, next + size / 2))}>${t("later")}</button>
      <button class="link" @click=${go(null)}>${t("most changed")}</button>
    </div>`;
  }

  override updated(changed: PropertyValues): void {
    const before = changed.get("page") as PageState | undefined;
    // Another prompt is read from its beginning.
    if (before?.data?.film?.row !== this.page.data?.film?.row) this.renderRoot.querySelector(".film")?.scrollTo(0, 0);
    // The keyboard goes where the page went: into the film of a row just scored, and back to the list.
    if (this.page.data?.live != null && before?.data?.film !== this.page.data.film) requestAnimationFrame(this.toLive);
    if (before?.data?.live != null && this.page.data?.live === null && document.hasFocus()) requestAnimationFrame(this.toList);
    this.toggleAttribute("data-ready", this.page.data !== null && !this.page.data.busy);
  }
}
