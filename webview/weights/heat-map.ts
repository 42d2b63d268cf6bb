import { LitElement, css, html, nothing, type TemplateResult } from "lit";
import { formatCount } from "../../src/domain/format.ts";
import { formatMeasure, measured, weightGrid, type GridCell, type WeightGrid, type WeightMeasure } from "../../src/domain/weights/weightGrid.ts";
import type { WeightDrift } from "../../src/protocol/weights.ts";
import { t } from "../../src/util/l10n.ts";
import { shared } from "../styles.ts";
import { measureName } from "./wording.ts";

/**
 * Layers × modules as a table whose cells are shaded by their number, so that the picture and its table are one. Arrow
 * keys go from cell to cell; the line below says everything that is known of the cell.
 */
export class HeatMap extends LitElement {
  static override properties = { drift: { attribute: false }, measure: { attribute: false }, chosen: { state: true } };
  declare drift: WeightDrift;
  declare measure: WeightMeasure;
  /** Row and column of the cell that the keyboard is on. */
  declare private chosen: [number, number];

  static override styles = [
    shared,
    css`
      :host {
        display: block;
        --heat: var(--vscode-charts-yellow);
        --cold: var(--vscode-charts-blue);
      }
      .scroll {
        overflow-x: auto;
      }
      table {
        border-collapse: separate;
        border-spacing: 1px;
        font-size: 11px;
        line-height: 18px;
        font-variant-numeric: tabular-nums;
      }
      th {
        padding: 0 8px 0 0;
        font-weight: normal;
        text-align: left;
        white-space: nowrap;
        color: var(--dim);
      }
      thead th {
        width: 68px;
        padding: 0 6px 0 2px;
        line-height: 14px;
        text-align: right;
        vertical-align: bottom;
        white-space: normal;
      }
      td {
        min-width: 56px;
        padding: 0 6px;
        text-align: right;
        white-space: nowrap;
        background: color-mix(in srgb, var(--heat) calc(var(--share, 0) * 40%), transparent);
        border: 1px solid transparent;
      }
      td.negative {
        background: color-mix(in srgb, var(--cold) calc(var(--share, 0) * 40%), transparent);
      }
      td.all {
        border-left-color: var(--line);
      }
      /* Without backgrounds a bar under the number says the same. */
      :host-context(.vscode-high-contrast) td {
        background: linear-gradient(var(--vscode-foreground) 0 0) left bottom / calc(var(--share, 0) * (100% - 4px)) 3px no-repeat;
      }
      :host-context(.vscode-high-contrast) td.negative {
        background: repeating-linear-gradient(90deg, var(--vscode-foreground) 0 2px, transparent 2px 4px) left bottom / calc(var(--share, 0) * (100% - 4px)) 3px no-repeat;
      }
      .readout {
        min-height: 18px;
        margin: 6px 0 0;
        font-size: 12px;
        line-height: 18px;
        color: var(--dim);
      }
      .readout b {
        color: var(--vscode-foreground);
      }
    `,
  ];

  constructor() {
    super();
    this.chosen = [0, 0];
  }

  override render(): TemplateResult {
    const grid = weightGrid(this.drift);
    const rows = this.rows(grid);
    const [row, column] = this.clamped(rows);
    const cell = rows[row]?.cells[column] ?? null;
    return html`<div class="scroll">
        <table role="grid" aria-label=${t("{0} by layer and module", measureName(this.measure))} @keydown=${(event: KeyboardEvent) => this.key(event, rows)}>
          <thead>
            <tr>
              <td></td>
              ${grid.names.map((name, index) => html`<th scope="col" title=${grid.modules[index] ?? name}>${name.split(/(?<=[_.])/).map((part) => html`${part}<wbr>`)}</th>`)}
              <th scope="col">${t("all")}</th>
            </tr>
          </thead>
          <tbody>
            ${rows.map(({ name, cells }, y) => html`<tr>
              <th scope="row">${name}</th>
              ${cells.map((one, x) => this.cell(one, y, x, y === row && x === column, x === cells.length - 1))}
            </tr>`)}
          </tbody>
        </table>
      </div>
      <p class="readout" aria-live="polite">${cell === null ? nothing : this.readout(rows[row]?.name ?? "", cell, grid.names[column] === undefined ? "" : grid.modules[column] ?? "")}</p>`;
  }

  override updated(): void {
    // The policy forbids style attributes; properties set by script it allows.
    const values = [...this.renderRoot.querySelectorAll<HTMLElement>("td[data-value]")];
    const largest = this.measure === "cosine" || this.measure === "changed" ? 1 : Math.max(...values.map(({ dataset }) => Math.abs(Number(dataset["value"]))), 1e-12);
    for (const cell of values) cell.style.setProperty("--share", String(Math.min(1, Math.abs(Number(cell.dataset["value"])) / largest)));
  }

  /** Rows of the table: every layer, what is outside the layers, and the whole. The last column is of the whole row. */
  private rows(grid: WeightGrid): { name: string; cells: (Shown | null)[] }[] {
    const blank = grid.names.map(() => null);
    return [
      ...grid.layers.map(({ layer, cells, all }) => ({ name: t("layer {0}", layer), cells: [...cells, all] })),
      ...grid.outer.map((cell) => ({ name: cell.module, cells: [...blank, cell] })),
      { name: t("whole model"), cells: [...blank, this.drift.total] },
    ];
  }

  private cell(one: Shown | null, row: number, column: number, current: boolean, all: boolean): TemplateResult {
    const value = one === null ? null : measured(one, this.measure);
    const kind = `${all ? "all" : ""} ${value !== null && value < 0 ? "negative" : ""}`;
    return html`<td
      class=${kind}
      role="gridcell"
      data-value=${value ?? nothing}
      tabindex=${current ? "0" : "-1"}
      @focus=${() => (this.chosen = [row, column])}
      @pointerenter=${() => (this.chosen = [row, column])}
    >${one === null ? "" : formatMeasure(value, this.measure)}</td>`;
  }

  private readout(row: string, cell: Shown, module: string): TemplateResult {
    const name = module === "" ? row : `${row}, ${module}`;
    const parts = [
      t("changed by {0} of its size", formatMeasure(cell.relative, "relative")),
      t("{0} of {1} numbers differ", formatMeasure(cell.changed, "changed"), formatCount(cell.count)),
      ...(cell.cosine === null ? [] : [t("cosine with the update before {0}", formatMeasure(cell.cosine, "cosine"))]),
      ...(cell.effective_rank == null ? [] : [t("effective rank {0}", formatMeasure(cell.effective_rank, "effective_rank"))]),
    ];
    return html`<b>${name}</b> · ${parts.join(" · ")}`;
  }

  private clamped(rows: { cells: unknown[] }[]): [number, number] {
    const row = Math.max(0, Math.min(this.chosen[0], rows.length - 1));
    return [row, Math.max(0, Math.min(this.chosen[1], (rows[row]?.cells.length ?? 1) - 1))];
  }

  private key(event: KeyboardEvent, rows: { cells: unknown[] }[]): void {
    const [row, column] = this.clamped(rows);
    const last = (rows[row]?.cells.length ?? 1) - 1;
    const moves: Record<string, [number, number]> = { ArrowRight: [row, column + 1], ArrowLeft: [row, column - 1], ArrowDown: [row + 1, column], ArrowUp: [row - 1, column], Home: [row, 0], End: [row, last] };
    const to = moves[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.chosen = to;
    this.chosen = this.clamped(rows);
    void this.updateComplete.then(() => this.renderRoot.querySelector<HTMLElement>("td[tabindex='0']")?.focus());
  }
}

type Shown = Pick<GridCell, "relative" | "changed" | "cosine" | "count"> & { effective_rank?: number | null };

customElements.define("seesaw-heat-map", HeatMap);
