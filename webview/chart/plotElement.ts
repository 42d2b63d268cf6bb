import { LitElement } from "lit";
import { onThemeChange } from "./colours.ts";

/** An element with one Chart.js plot on a canvas: drawn again when the theme changes, destroyed with the element. */
export abstract class PlotElement<Plot extends { destroy(): void }> extends LitElement {
  protected plot: Plot | undefined;
  private leaveTheme: (() => void) | undefined;

  /** Draws what the element shows now; calls `clear` first. */
  protected abstract draw(): void;

  /** Gives the canvas back: two plots on one are an error of Chart.js. */
  protected clear(): void {
    this.plot?.destroy();
    this.plot = undefined;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.leaveTheme = onThemeChange(() => this.draw());
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.leaveTheme?.();
    this.clear();
  }
}
