import { LitElement, css, html, nothing, type PropertyValues, type TemplateResult } from "lit";
import { blockRows, type DatasetLine, type DatasetProbe, type DatasetState } from "../../src/protocol/datasets.ts";
import type { WireNumber } from "../../src/protocol/numbers.ts";
import type { CheckMark } from "../../src/protocol/webview.ts";
import { t } from "../../src/util/l10n.ts";
import { signed } from "../format.ts";
import { checkMarks } from "../marks.ts";
import { shared } from "../styles.ts";
import type { PageStore } from "./pageStore.ts";
import { afterScroll, blocksOf, clampTop, inSight, lastTop, reveal, rowAfterKey, scrollHeight, toScrollTop, type Geometry } from "./virtualScroll.ts";

/** Height of a row in CSS pixels; the header has the same. */
const rowHeight = 22;

/**
 * The rows of the file: only those in sight are elements, whatever the file's length. The layer that shows them stands
 * still; the scroll bar's height is a part of the list's where that is longer than a browser can make it.
 */
export class RowGrid extends LitElement {
  static override properties = { store: { attribute: false }, tick: { attribute: false }, height: { state: true } };
  declare store: PageStore;
  declare tick: number;
  declare private height: number;
  private top = 0;
  private barTop = 0;
  private jumps = 0;
  private restored = false;
  /** Set once a probe was in sight: rows of other files need no columns of drift. */
  private probes = false;
  private observer: ResizeObserver | undefined;

  static override styles = [
    shared,
    css`
      :host {
        display: block;
        min-height: 0;
        position: relative;
      }
      .box {
        position: absolute;
        inset: 0;
        overflow-x: hidden;
        overflow-y: scroll;
      }
      .box:focus-visible {
        outline: none;
      }
      .layer {
        position: sticky;
        top: 0;
        overflow: hidden;
      }
      .row {
        display: grid;
        grid-template-columns: var(--columns);
        column-gap: 12px;
        align-items: center;
        height: 22px;
        padding: 0 12px;
      }
      .head {
        position: relative;
        z-index: 1;
        font-size: 11px;
        color: var(--dim);
        background: var(--vscode-editor-background);
        border-bottom: 1px solid var(--line);
      }
      .body .row {
        cursor: pointer;
      }
      .body .row:hover {
        background: var(--vscode-list-hoverBackground);
        outline: 1px dashed var(--vscode-contrastActiveBorder, transparent);
        outline-offset: -1px;
      }
      .body .row[aria-selected="true"] {
        color: var(--vscode-list-inactiveSelectionForeground, inherit);
        background: var(--vscode-list-inactiveSelectionBackground);
        outline: 1px solid var(--vscode-contrastActiveBorder, transparent);
        outline-offset: -1px;
      }
      .box:focus .row[aria-selected="true"] {
        color: var(--vscode-list-activeSelectionForeground);
        background: var(--vscode-list-activeSelectionBackground);
        outline: 1px solid var(--vscode-contrastActiveBorder, var(--vscode-list-focusOutline, transparent));
      }
      .box:focus .row[aria-selected="true"] span {
        color: inherit;
      }
      .text {
        overflow: hidden;
        text-overflow: ellipsis;
        white-space: pre;
        unicode-bidi: plaintext;
      }
      .line {
        color: var(--dim);
      }
      .problem {
        color: var(--vscode-errorForeground);
      }
      .beyond {
        font-weight: 600;
      }
    `,
  ];

  constructor() {
    super();
    this.height = 0;
    this.tick = 0;
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.observer?.disconnect();
  }

  override render(): TemplateResult {
    const { state, selected } = this.store;
    const columns = this.columns();
    const { first, last } = inSight(this.geometry(), this.top);
    const shown = Array.from({ length: last - first }, (_, index) => first + index);
    return html`<div
      class="box"
      role="grid"
      tabindex="0"
      aria-label=${t("Rows of the dataset")}
      aria-rowcount=${state?.complete === true ? state.rows + 1 : -1}
      aria-colcount=${2 + (state?.replay === true ? 1 : 0) + columns.length}
      aria-activedescendant=${selected >= first && selected < last ? `row-${selected}` : nothing}
      @keydown=${this.key}
      @scroll=${this.scrolled}
      @wheel=${this.wheel}
    >
      <div class="layer" role="presentation">
        <div class="row head" role="row" aria-rowindex="1">
          <span class="number" role="columnheader">${t("line")}</span>
          <span role="columnheader">${t("row")}</span>
          ${state?.replay === true ? html`<span role="columnheader">${t("replay")}</span>` : nothing}
          ${columns.map(({ label, title }) => html`<span class="number" role="columnheader" title=${t("{0}: change of the reference answer's log-probability in nats, and the check", title)}>${label}</span>`)}
        </div>
        <div class="body" role="presentation">${shown.map((row) => this.row(row, this.store.line(row), columns.length))}</div>
      </div>
      <div class="space" role="presentation"></div>
    </div>`;
  }

  override willUpdate(): void {
    const { first, last } = inSight(this.geometry(), this.top);
    for (let row = first; row < last && !this.probes; row++) this.probes = (this.store.line(row)?.probe ?? null) !== null;
    // Set only once: from where the page stood before it was hidden, as soon as the rows are there again.
    if (!this.restored && this.height > 0 && (this.store.state?.rows ?? 0) > 0) {
      const geometry = this.geometry();
      if (this.store.top <= lastTop(geometry) || this.store.state?.complete === true) {
        this.restored = true;
        this.top = clampTop(geometry, this.store.top);
      }
    }
    if (this.store.jumps !== this.jumps) {
      this.jumps = this.store.jumps;
      this.restored = true;
      this.top = reveal(this.geometry(), this.top, this.store.selected);
    }
    this.top = clampTop(this.geometry(), this.top);
  }

  override updated(_changed: PropertyValues): void {
    const geometry = this.geometry();
    const box = this.box();
    const columns = this.columns().length;
    const digits = Math.max(4, String(this.store.state?.rows ?? 0).length);
    box.style.setProperty("--columns", `${digits * 9 + 4}px minmax(120px, 1fr) ${this.store.state?.replay === true ? "minmax(60px, 220px)" : ""} ${columns === 0 ? "" : `repeat(${columns}, 68px)`}`);
    const layer = box.querySelector<HTMLElement>(".layer");
    layer?.style.setProperty("height", `${box.clientHeight}px`);
    // The layer stands in the flow, above the space that makes the scroll bar.
    box.querySelector<HTMLElement>(".space")?.style.setProperty("height", `${Math.max(0, scrollHeight(geometry) - geometry.viewport)}px`);
    const { first, last } = inSight(geometry, this.top);
    box.querySelector<HTMLElement>(".body")?.style.setProperty("transform", `translateY(${first * rowHeight - this.top}px)`);
    this.place();
    if (geometry.rows > 0 && this.height > 0) this.store.want(blocksOf(first, last, blockRows, geometry.rows));
  }

  override firstUpdated(): void {
    this.observer = new ResizeObserver(() => (this.height = this.box().clientHeight));
    this.observer.observe(this.box());
  }

  /** Moves the keyboard to the list. */
  focusList(): void {
    this.box().focus();
  }

  private box(): HTMLElement {
    return this.renderRoot.querySelector(".box") as HTMLElement;
  }

  private columns(): DatasetState["columns"] {
    return this.probes ? (this.store.state?.columns ?? []) : [];
  }

  private geometry(): Geometry {
    return { rows: this.store.state?.rows ?? 0, rowHeight, viewport: Math.max(0, this.height - rowHeight) };
  }

  private row(row: number, line: DatasetLine | undefined, columns: number): TemplateResult {
    const selected = row === this.store.selected;
    if (line === undefined) {
      return html`<div class="row" role="row" id=${`row-${row}`} aria-rowindex=${row + 2} aria-selected=${selected ? "true" : "false"} aria-busy="true"><span role="gridcell"></span><span class="dim" role="gridcell">…</span></div>`;
    }
    return html`<div class="row" role="row" id=${`row-${row}`} aria-rowindex=${row + 2} aria-selected=${selected ? "true" : "false"} @click=${() => this.store.select(row)} @dblclick=${() => this.dispatchEvent(new CustomEvent("enter"))}>
      <span class="number line" role="gridcell">${line.line}</span>
      <span class="text" role="gridcell" title=${line.problem ?? nothing}>${line.problem === null ? line.preview : html`<span class="problem">⚠ ${line.problem}</span> <span class="dim">${line.preview}</span>`}</span>
      ${this.store.state?.replay === true ? html`<span class="text dim" role="gridcell" title=${line.replay ?? nothing}>${line.replay?.replace(/^(replay: |回放：)/, "") ?? ""}</span>` : nothing}
      ${Array.from({ length: columns }, (_, at) => this.mark(line.probe, at))}
    </div>`;
  }

  private mark(probe: DatasetProbe | null, at: number): TemplateResult {
    const check = probe?.checks[at] ?? "not-run";
    const change = probe?.changes[at] ?? null;
    if (probe === null || (change === null && check === "not-run")) return html`<span class="number" role="gridcell"></span>`;
    const label = t("{0}, check {1}", change === null ? t("not compared") : t("change {0} nats", signed(change)), checkMarks[check].word);
    return html`<span class="number ${probe.beyondNoise[at] === true ? "beyond" : "dim"}" role="gridcell" aria-label=${label} title=${label}>${change === null ? "" : signed(change)} <span class=${markClass(check, change)}>${checkMarks[check].sign}</span></span>`;
  }

  private moveTo(top: number): void {
    this.top = clampTop(this.geometry(), top);
    this.store.scrolledTo(this.top);
    this.requestUpdate();
  }

  /** Puts the scroll bar where the list stands; the event that follows is our own. */
  private place(): void {
    const box = this.box();
    // Moved by somebody else, and its event is still to come: a row that arrives in between must not take that back.
    if (Math.abs(box.scrollTop - this.barTop) >= 1) return;
    const wanted = toScrollTop(this.geometry(), this.top);
    if (Math.abs(box.scrollTop - wanted) >= 1) box.scrollTop = wanted;
    this.barTop = box.scrollTop;
  }

  private scrolled(): void {
    const { scrollTop } = this.box();
    if (Math.abs(scrollTop - this.barTop) < 1) return;
    const top = afterScroll(this.geometry(), { top: this.top, scrollTop: this.barTop }, scrollTop);
    this.barTop = scrollTop;
    this.moveTo(top);
  }

  /** A wheel moves by pixels of the list, however much the scroll bar stands for. */
  private wheel(event: WheelEvent): void {
    if (event.ctrlKey || event.deltaY === 0) return;
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? rowHeight : event.deltaMode === WheelEvent.DOM_DELTA_PAGE ? this.geometry().viewport : 1;
    event.preventDefault();
    this.moveTo(this.top + event.deltaY * unit);
  }

  private key(event: KeyboardEvent): void {
    if (event.altKey || event.metaKey || (event.ctrlKey && event.key !== "Home" && event.key !== "End")) return;
    if (event.key === "Enter") {
      event.preventDefault();
      return void this.dispatchEvent(new CustomEvent("enter"));
    }
    const to = rowAfterKey(event.key, this.store.selected, this.geometry());
    if (to === null) return;
    event.preventDefault();
    this.store.select(to, true);
  }
}

/** What a checkpoint before the reference did not know yet is no loss, so it is not red. */
export function markClass(check: CheckMark, change: WireNumber | null): string {
  return change === null && check === "failed" ? "before" : check;
}

customElements.define("seesaw-row-grid", RowGrid);
