import { css, html, nothing, svg, type PropertyValues, type TemplateResult } from "lit";
import { families, mostTokens, radiusOf, type Family, type Plane, type PlanePoint } from "../../src/domain/arena/arenaCharts.ts";
import { shapePath } from "../../src/domain/arena/arenaMarks.ts";
import { nearestPoint, placeLabels, type PlacedLabel } from "../../src/domain/arena/placeLabels.ts";
import { t } from "../../src/util/l10n.ts";
import { drawPlane, marksOf, type ArenaPlot, type Mark } from "../chart/arenaPlot.ts";
import { readColours } from "../chart/colours.ts";
import { PlotElement } from "../chart/plotElement.ts";
import { shared } from "../styles.ts";
import { arenaStyles } from "./arena-styles.ts";
import { familyName, pointSentence, systemName } from "./wording.ts";

const labelHeight = 16;

/**
 * The plane of old skills restored against the new one kept. Every system's name is a button beside its mark: pointing at
 * one, or at the mark, or going to it with the arrow keys, brings it to the front and says its numbers below.
 */
export class ArenaPlane extends PlotElement<ArenaPlot> {
  static override properties = { plane: { attribute: false }, kinds: { attribute: false }, old: { attribute: false }, fresh: { attribute: false }, chosen: { state: true }, stop: { state: true } };
  declare plane: Plane;
  /** Kind of every system, for its name. */
  declare kinds: ReadonlyMap<string, string>;
  declare old: string[];
  declare fresh: string;
  /** The system that is pointed at. */
  declare private chosen: string | null;
  /** Index of the name that Tab comes to. */
  declare private stop: number;
  private marks: Mark[] = [];
  private labels: PlacedLabel[] = [];

  static override styles = [
    shared,
    arenaStyles,
    css`
      .plot {
        position: relative;
        height: 460px;
        max-width: 1100px;
      }
      .name {
        position: absolute;
        height: 16px;
        padding: 0 2px;
        font: inherit;
        font-size: 11px;
        line-height: 16px;
        white-space: nowrap;
        color: var(--vscode-foreground);
        background: color-mix(in srgb, var(--page) 82%, transparent);
        border: 0;
        border-radius: 2px;
        cursor: default;
      }
      .name.chosen {
        background: var(--page);
        outline: 1px solid var(--vscode-focusBorder);
      }
      .name.chain {
        font-weight: 600;
      }
      .legend {
        display: flex;
        flex-wrap: wrap;
        gap: 2px 16px;
        margin: 4px 0;
        font-size: 11px;
        line-height: 18px;
        color: var(--dim);
      }
      .legend svg {
        width: 14px;
        height: 14px;
        margin-right: 4px;
        vertical-align: -3px;
        fill: none;
        stroke-width: 1.6;
      }
      .readout {
        min-height: 36px;
        max-width: 120ch;
        margin: 6px 0 0;
        font-size: 12px;
        line-height: 18px;
        color: var(--dim);
      }
      .readout b {
        color: var(--vscode-foreground);
      }
      .chain path {
        stroke: var(--family-chain);
      }
      .replay path {
        stroke: var(--family-replay);
      }
      .tuning path {
        stroke: var(--family-tuning);
      }
      .distill path {
        stroke: var(--family-distill);
      }
      .merge path {
        stroke: var(--family-merge);
      }
      .experts path {
        stroke: var(--family-experts);
      }
      .joint path {
        stroke: var(--family-joint);
        stroke-dasharray: 3 2;
      }
    `,
  ];

  constructor() {
    super();
    this.chosen = null;
    this.stop = 0;
  }

  override render(): TemplateResult {
    const { points } = this.plane;
    const point = points.find(({ id }) => id === this.chosen) ?? null;
    return html`<div class="plot" @pointermove=${this.point} @pointerleave=${() => (this.chosen = null)}>
        <canvas aria-hidden="true"></canvas>
        <div role="toolbar" aria-label=${t("Systems on the plane; arrow keys go from one to the next")} aria-orientation="horizontal" @keydown=${this.key}>
          ${points.map((one, index) => html`<button
            class="name ${one.family} ${one.id === this.chosen ? "chosen" : ""}"
            tabindex=${index === this.stop ? "0" : "-1"}
            aria-label=${`${this.nameOf(one)}: ${pointSentence(one)}`}
            @focus=${() => ((this.chosen = one.id), (this.stop = index))}
            @blur=${() => (this.chosen = null)}
          >${this.nameOf(one)}</button>`)}
        </div>
      </div>
      ${this.legend()}
      <p class="readout" aria-hidden="true">${point === null ? t("Up and to the right is better. Point at a system for its numbers.") : html`<b>${this.nameOf(point)}</b> · ${pointSentence(point)}`}</p>`;
  }

  override updated(changed: PropertyValues): void {
    if (changed.has("plane")) this.draw();
    else if (changed.has("chosen")) this.plot?.draw();
  }

  private legend(): TemplateResult | typeof nothing {
    const used = families.filter((family) => this.plane.points.some((point) => point.family === family));
    return html`<div class="legend">
      ${used.map((family) => html`<span class=${family}><svg viewBox="0 0 14 14" aria-hidden="true">${svg`<path d=${shapePath(family, 7, 7, 5)} />`}</svg>${familyName(family)}</span>`)}
      <span>${t("lines: 95 % intervals over prompts and seeds")}</span><span>${t("small points: single seeds")}</span><span>${t("area: tokens that its own stages trained on")}</span>
    </div>`;
  }

  private nameOf({ id, title }: PlanePoint): string {
    return systemName({ kind: (this.kinds.get(id) ?? "merge") as Parameters<typeof systemName>[0]["kind"], title });
  }

  private radius(point: PlanePoint): number {
    return radiusOf(point.tokens, mostTokens(this.plane.points), { least: 3.5, largest: 11 });
  }

  /** From anew: with other numbers, or in another theme. */
  protected override draw(): void {
    this.clear();
    const canvas = this.renderRoot.querySelector("canvas");
    if (canvas === null) return;
    const style = getComputedStyle(this);
    const colours = Object.fromEntries(families.map((family) => [family, style.getPropertyValue(`--family-${family}`).trim() || style.color])) as Record<Family, string>;
    const titles = { x: t("old skills restored: mean pass rate of {0} →", this.old.join(", ")), y: t("new skill kept: pass rate of {0} →", this.fresh) };
    this.plot = drawPlane(canvas, this.plane, titles, { colours, radius: (point) => this.radius(point), chosen: () => this.chosen, laidOut: (plot) => this.place(plot), leaders: () => this.leaders() }, readColours(this));
  }

  /** Puts the names where they cover nothing: needed whenever the plane has another size. */
  private place(plot: ArenaPlot): void {
    this.marks = marksOf(plot, this.plane, (point) => this.radius(point));
    const names = [...this.renderRoot.querySelectorAll<HTMLElement>(".name")];
    const labelled = this.marks.map((mark, index) => ({ ...mark, width: names[index]?.offsetWidth ?? 0, height: labelHeight }));
    const { left, right, top, bottom } = plot.chartArea;
    this.labels = placeLabels(labelled, { left: left + 1, top: Math.max(0, top - 44), width: right - left + 12, height: bottom - Math.max(0, top - 44) });
    names.forEach((name, index) => {
      name.style.left = `${this.labels[index]?.left ?? 0}px`;
      name.style.top = `${this.labels[index]?.top ?? 0}px`;
    });
  }

  private leaders(): { from: { x: number; y: number }; to: { x: number; y: number } }[] {
    return this.labels.flatMap((label, index) => {
      const mark = this.marks[index];
      return mark === undefined || !label.far ? [] : [{ from: mark, to: nearestPoint(label, mark.x, mark.y) }];
    });
  }

  private point(event: PointerEvent): void {
    const names = [...this.renderRoot.querySelectorAll(".name")];
    const over = names.indexOf(event.composedPath()[0] as Element);
    this.chosen = this.plane.points[over >= 0 ? over : this.nearest(event)]?.id ?? null;
  }

  /** Index of the mark under the pointer, the smallest of several; -1: none. */
  private nearest(event: PointerEvent): number {
    const box = this.renderRoot.querySelector("canvas")?.getBoundingClientRect();
    if (box === undefined) return -1;
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const near = this.marks.map((mark, index) => ({ index, radius: mark.radius, away: Math.hypot(mark.x - x, mark.y - y) })).filter(({ radius, away }) => away <= radius + 4);
    return near.sort((a, b) => a.radius - b.radius || a.away - b.away)[0]?.index ?? -1;
  }

  private key(event: KeyboardEvent): void {
    const last = this.plane.points.length - 1;
    const moves: Record<string, number> = { ArrowRight: this.stop + 1, ArrowDown: this.stop + 1, ArrowLeft: this.stop - 1, ArrowUp: this.stop - 1, Home: 0, End: last };
    const to = moves[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.stop = Math.max(0, Math.min(to, last));
    void this.updateComplete.then(() => this.renderRoot.querySelector<HTMLElement>(".name[tabindex='0']")?.focus());
  }
}

customElements.define("seesaw-arena-plane", ArenaPlane);
