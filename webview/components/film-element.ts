import { LitElement, type PropertyValues } from "lit";
import type { DriftCheckpoint, DriftFilm, FilmCell, FilmToken } from "../../src/protocol/webview.ts";
import { moveFocus } from "../navigation.ts";
import type { TokenFocus } from "../state.ts";

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
