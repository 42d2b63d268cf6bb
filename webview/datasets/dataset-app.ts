import { LitElement, css, html, nothing, type TemplateResult } from "lit";
import { formatBytes, formatCount, formatPercent, formatPlural } from "../../src/domain/format.ts";
import type { DatasetState } from "../../src/protocol/datasets.ts";
import { t } from "../../src/util/l10n.ts";
import { controls, shared } from "../styles.ts";
import type { PageStore } from "./pageStore.ts";
import "./row-detail.ts";
import type { RowDetail } from "./row-detail.ts";
import "./row-grid.ts";
import type { RowGrid } from "./row-grid.ts";
import "./search-bar.ts";
import type { SearchBar } from "./search-bar.ts";

const kinds = { lines: "JSON Lines", gzip: "JSON Lines, gzip", zstd: "JSON Lines, zstd", parquet: "Parquet" } as const;

/** The dataset page: what the file is, a search, its rows, and one row in full. */
export class DatasetApp extends LitElement {
  static override properties = { tick: { state: true }, detailOpen: { state: true } };
  declare private tick: number;
  declare private detailOpen: boolean;
  private store: PageStore | undefined;
  private chosen = "";

  static override styles = [
    shared,
    controls,
    css`
      :host {
        display: flex;
        flex-direction: column;
        height: 100vh;
        overflow: hidden;
        background: var(--vscode-editor-background);
      }
      .bar {
        height: 2px;
      }
      .bar.busy {
        background: var(--vscode-progressBar-background);
        transform-origin: left;
      }
      .about {
        display: flex;
        flex-wrap: wrap;
        gap: 2px 16px;
        align-items: center;
        padding: 4px 12px;
        border-bottom: 1px solid var(--line);
      }
      .fill {
        flex: 1;
      }
      .banner,
      .notes {
        margin: 0;
        padding: 4px 12px;
        font-size: 12px;
        line-height: 18px;
        border-bottom: 1px solid var(--line);
      }
      .banner {
        display: flex;
        gap: 12px;
        align-items: center;
        color: var(--vscode-inputValidation-infoForeground, var(--vscode-foreground));
        background: var(--vscode-inputValidation-infoBackground, transparent);
      }
      .notes {
        color: var(--dim);
      }
      seesaw-row-grid {
        flex: 1 1 0;
        min-height: 88px;
      }
      seesaw-row-detail {
        flex: 0 0 42%;
        border-top: 1px solid var(--line);
      }
      .empty {
        padding: 14px 16px;
        line-height: 1.5;
      }
      .empty h3 {
        font-size: 13px;
        line-height: 20px;
      }
      .empty.error h3 {
        color: var(--vscode-errorForeground);
      }
      .empty p {
        margin: 4px 0 12px;
        color: var(--dim);
        overflow-wrap: anywhere;
      }
    `,
  ];

  constructor() {
    super();
    this.tick = 0;
    this.detailOpen = false;
    this.addEventListener("keydown", (event) => this.key(event));
  }

  /** Gives the page its store. */
  connect(store: PageStore): void {
    this.store = store;
    store.subscribe(() => this.tick++);
    this.tick++;
  }

  override render(): TemplateResult {
    const store = this.store;
    const data = store?.state;
    if (store === undefined || data == null) return html`<div class="bar busy" role="progressbar" aria-label=${t("Opening the file")}></div>`;
    return html`
      ${this.progress(data)} ${data.changed ? this.banner() : nothing}
      ${data.empty !== null ? this.empty(data.empty) : this.content(store, data)}
    `;
  }

  override updated(): void {
    const { store } = this;
    if (store?.state == null) return;
    this.renderRoot.querySelector<HTMLElement>(".bar.share")?.style.setProperty("transform", `scaleX(${shareOf(store.state)})`);
    // An open detail follows the selection; held arrow keys ask once, for the row they end on.
    const key = `${store.state.version} ${store.selected} ${this.detailOpen} ${store.state.columns.length}`;
    if (this.detailOpen && key !== this.chosen && store.state.rows > store.selected) {
      this.chosen = key;
      setTimeout(() => {
        if (this.chosen === key) store.choose();
      }, 60);
    }
    this.toggleAttribute("data-ready", store.state.empty !== null || store.line(store.selected) !== undefined);
  }

  private progress(data: DatasetState): TemplateResult {
    if (data.complete || data.empty !== null) return html`<div class="bar"></div>`;
    const known = data.total > 0;
    return html`<div class="bar busy ${known ? "share" : ""}" role="progressbar" aria-label=${t("Looking through the file")} aria-valuenow=${known ? Math.round(shareOf(data) * 100) : nothing}></div>`;
  }

  private banner(): TemplateResult {
    return html`<div class="banner" role="status"><span>${t("The file changed on disk. These rows are from before.")}</span><button class="solid" @click=${() => this.store?.send({ type: "reread" })}>${t("Reread")}</button></div>`;
  }

  private empty({ kind, title, detail }: NonNullable<DatasetState["empty"]>): TemplateResult {
    return html`<div class="empty ${kind}" role=${kind === "error" ? "alert" : "status"}>
      <h3>${title}</h3>
      <p>${detail}</p>
      <button class="solid" @click=${() => this.store?.send({ type: "reread" })}>${t("Reread")}</button>
      ${kind === "error" ? html`<button class="solid" @click=${() => this.store?.send({ type: "showLog" })}>${t("Show Log")}</button>` : nothing}
    </div>`;
  }

  private content(store: PageStore, data: DatasetState): TemplateResult {
    const { detail } = store;
    return html`
      <div class="about">
        <span>${data.complete ? formatPlural(data.rows, "row") : t("{0} rows so far ({1})", formatCount(data.rows), formatPercent(shareOf(data), 0))}</span>
        <span class="dim">${formatBytes(data.total)} · ${kinds[data.kind]}</span>
        <span class="fill"></span>
        <seesaw-search-bar .store=${store} .tick=${this.tick} @leave=${() => this.grid()?.focusList()}></seesaw-search-bar>
      </div>
      ${data.notes.length === 0 ? nothing : html`<p class="notes" role="note">${data.notes.join(" · ")}</p>`}
      <seesaw-row-grid .store=${store} .tick=${this.tick} @enter=${() => this.openDetail()} @click=${() => (this.detailOpen = true)}></seesaw-row-grid>
      ${this.detailOpen && detail !== null
        ? html`<seesaw-row-detail
            .detail=${detail}
            .data=${data}
            @whole=${() => store.choose(true)}
            @drift=${() => store.send({ type: "openDrift", row: detail.row })}
            @text=${() => store.send({ type: "openText", line: detail.line })}
            @close=${() => this.closeDetail()}
          ></seesaw-row-detail>`
        : nothing}
    `;
  }

  private grid(): RowGrid | null {
    return this.renderRoot.querySelector<RowGrid>("seesaw-row-grid");
  }

  private openDetail(): void {
    if (this.detailOpen) return this.renderRoot.querySelector<RowDetail>("seesaw-row-detail")?.focusText();
    this.detailOpen = true;
  }

  private closeDetail(): void {
    this.detailOpen = false;
    this.chosen = "";
    this.grid()?.focusList();
  }

  private key(event: KeyboardEvent): void {
    const typing = event.composedPath()[0] instanceof HTMLInputElement;
    const control = event.ctrlKey || event.metaKey;
    const bar = this.renderRoot.querySelector<SearchBar>("seesaw-search-bar");
    if (event.key === "Escape" && !typing && this.detailOpen) this.closeDetail();
    else if ((control && event.key === "f") || (!typing && !control && event.key === "/")) bar?.focusSearch();
    else if ((control && event.key === "g") || (!typing && !control && event.key === "g")) bar?.focusLine();
    else if (event.key === "F3") bar?.step(event.shiftKey ? -1 : 1);
    else return;
    event.preventDefault();
  }
}

function shareOf({ done, total, complete }: DatasetState): number {
  return complete ? 1 : total === 0 ? 0 : Math.min(1, done / total);
}
