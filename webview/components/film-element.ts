import { LitElement, nothing, type PropertyValues, type TemplateResult } from "lit";
import { html, type StaticValue } from "lit/static-html.js";
import type { DriftCheckpoint, DriftFilm, FilmCell, FilmRow, FilmToken } from "../../src/protocol/webview.ts";
import { moveFocus } from "../navigation.ts";
import type { TokenFocus } from "../state.ts";
import { cellLabel, cellTitle } from "../wording.ts";

/**
 * What the two films share: one tab stop that the keys move. Fires `focus-token`, `open-row` on Enter or o, and `leave` on
 * Escape.
 */
export abstract class FilmElement extends LitElement {
  static override properties = { film: { attribute: false }, checkpoints: { attribute: false }, position: { attribute: false } };
  declare film: DriftFilm;
  declare checkpoints: DriftCheckpoint[];
  declare position: TokenFocus;

  override updated(changed: PropertyValues): void {
    const before = changed.get("position") as TokenFocus | undefined;
    const moved = before !== undefined && (before.row !== this.position.row || before.token !== this.position.token);
    const hadFocus = this.renderRoot instanceof ShadowRoot && this.renderRoot.activeElement !== null;
    if (moved && hadFocus) this.focusToken();
  }

  /** Moves the keyboard to the token that is looked at. */
  focusToken(): void {
    this.renderRoot.querySelector<HTMLElement>(".token.current")?.focus();
  }

  /** A token under a checkpoint: one cell of the grid, whatever its element. `more`: what stands under the token. */
  protected cell(tag: StaticValue, row: FilmRow, index: number, at: number, checkpoint: DriftCheckpoint, more: (cell: FilmCell) => TemplateResult | typeof nothing = () => nothing): TemplateResult {
    const token = this.film.tokens[at];
    const cell = row.cells?.[at];
    if (token === undefined || cell === undefined) return html``;
    const current = this.position.row === index && this.position.token === at;
    return html`<${tag}
      class=${this.classes(index, at, token, cell)}
      role="gridcell"
      aria-colindex=${this.film.from + at + 2}
      aria-selected=${current ? "true" : "false"}
      aria-label=${cellLabel(token, cell, checkpoint)}
      title=${cellTitle(token, cell, checkpoint)}
      tabindex=${current ? 0 : -1}
      @click=${() => this.go({ row: index, token: at })}
      @focus=${() => this.go({ row: index, token: at })}
      >${display(token)}${more(cell)}</${tag}
    >`;
  }

  /** The classes of a token under a checkpoint; nothing is coloured within the noise. */
  protected classes(row: number, at: number, token: FilmToken, cell: FilmCell): string {
    const current = this.position.row === row && this.position.token === at;
    return ["token", cell.coloured ? cell.tokenClass : "kept", current ? "current" : "", token.continues ? "continues" : ""].join(" ");
  }

  protected key(event: KeyboardEvent): void {
    if (event.key === "Escape") this.dispatchEvent(new CustomEvent("leave"));
    if (event.key === "Enter" || event.key === "o") {
      event.preventDefault();
      return void this.dispatchEvent(new CustomEvent("open-row"));
    }
    const to = moveFocus(this.film, this.position, event.key, event.ctrlKey || event.metaKey);
    if (to === null) return;
    event.preventDefault();
    this.go(to);
  }

  protected go(position: TokenFocus): void {
    if (position.row !== this.position.row || position.token !== this.position.token) this.dispatchEvent(new CustomEvent("focus-token", { detail: position }));
  }
}

/** A token with its leading blank or its end sign held back. */
export function display({ display: text }: FilmToken): TemplateResult | string {
  return /^[·⏎]/.test(text) ? html`<span class="dim">${text[0]}</span>${text.slice(1)}` : text;
}
