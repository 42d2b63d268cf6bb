import { css, html, nothing, type TemplateResult } from "lit";
import { literal } from "lit/static-html.js";
import type { DriftCheckpoint, FilmCell, FilmRow } from "../../src/protocol/webview.ts";
import { t } from "../../src/util/l10n.ts";
import { checkMarks, checkpointName, markStyle } from "../marks.ts";
import { probability } from "../format.ts";
import { shared, tokenClasses } from "../styles.ts";
import { instead, rowSummary } from "../wording.ts";
import { FilmElement, display } from "./film-element.ts";

/**
 * The wide film: a row per checkpoint, the reference's tokens in columns, and under a changed token what the checkpoint
 * would write instead. The names of the checkpoints stay at the left while the tokens scroll.
 */
export class TokenGrid extends FilmElement {
  static override styles = [
    shared,
    tokenClasses,
    css`
      :host {
        display: block;
      }
      .scroll {
        overflow-x: auto;
        border: 1px solid var(--line);
        border-radius: 2px;
      }
      table {
        border-collapse: separate;
        border-spacing: 1px 0;
        font-family: var(--mono);
        font-size: var(--vscode-editor-font-size, 13px);
      }
      th {
        font-weight: normal;
      }
      thead th {
        padding: 2px 5px;
        line-height: 18px;
        text-align: center;
        white-space: pre;
        unicode-bidi: isolate;
      }
      .segments th {
        padding: 3px 5px 0;
        font-family: var(--vscode-font-family);
        font-size: 11px;
        line-height: 15px;
        color: var(--dim);
        text-align: left;
      }
      .segments th + th + th {
        border-left: 1px solid var(--line);
      }
      .tokens th {
        border-bottom: 1px solid var(--line);
      }
      .name,
      thead th.corner {
        position: sticky;
        left: 0;
        z-index: 1;
        padding: 4px 12px 4px 10px;
        font-family: var(--vscode-font-family);
        font-size: var(--vscode-font-size);
        line-height: 18px;
        text-align: left;
        vertical-align: top;
        white-space: nowrap;
        background: var(--page);
        border-left: 0;
        border-right: 1px solid var(--line);
      }
      thead th.corner {
        padding-block: 2px;
        font-size: 11px;
        color: var(--dim);
      }
      .name .mark {
        display: inline-block;
        width: 14px;
        margin-left: 6px;
        text-align: center;
      }
      .name.reference {
        font-weight: 600;
      }
      .token {
        min-width: 2ch;
        padding: 4px 5px 2px;
        line-height: 18px;
        text-align: center;
        vertical-align: top;
        white-space: pre;
        unicode-bidi: isolate;
        cursor: default;
      }
      .token:hover {
        outline: 1px dotted var(--vscode-focusBorder);
        outline-offset: -1px;
      }
      .token.current {
        outline: 2px solid var(--vscode-focusBorder);
        outline-offset: -2px;
      }
      .instead {
        display: block;
        max-width: 12ch;
        overflow: hidden;
        font-size: 11px;
        line-height: 14px;
        text-overflow: ellipsis;
        color: var(--vscode-foreground);
      }
      .nothing {
        padding: 4px 8px;
        line-height: 18px;
        text-align: left;
        color: var(--dim);
        font-family: var(--vscode-font-family);
      }
    `,
  ];

  override render(): TemplateResult {
    const { film, checkpoints } = this;
    const segments = this.segments();
    const above = segments.length > 1 ? 2 : 1;
    return html`<div class="scroll">
      <table role="grid" aria-label=${t("Tokens of the reference answer under each checkpoint")} aria-rowcount=${film.rows.length + above} aria-colcount=${film.total + 1} @keydown=${this.key}>
        <thead>
          ${above === 1
            ? nothing
            : html`<tr class="segments" role="row" aria-rowindex="1">
                <th class="corner" role="columnheader" aria-colindex="1">${t("segment")}</th>
                ${segments.map(({ name, from, size }) => html`<th role="columnheader" colspan=${size} aria-colindex=${film.from + from + 2} aria-colspan=${size}>${name ?? "–"}</th>`)}
              </tr>`}
          <tr class="tokens" role="row" aria-rowindex=${above}>
            <th class="corner" role="columnheader" aria-colindex="1">${t("reference")}</th>
            ${film.tokens.map((token, at) => html`<th role="columnheader" aria-colindex=${film.from + at + 2}>${display(token)}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${film.rows.map((row, index) => this.row(row, index, index + above + 1, checkpoints[row.checkpoint]))}
        </tbody>
      </table>
    </div>`;
  }

  /** Runs of tokens of one segment. */
  private segments(): { name: string | null; from: number; size: number }[] {
    const runs: { name: string | null; from: number; size: number }[] = [];
    for (const [from, { segment: name }] of this.film.tokens.entries()) {
      const last = runs.at(-1);
      if (last?.name === name) last.size += 1;
      else runs.push({ name, from, size: 1 });
    }
    return runs;
  }

  private row(row: FilmRow, index: number, rowIndex: number, checkpoint: DriftCheckpoint | undefined): TemplateResult {
    if (checkpoint === undefined) return html``;
    const summary = rowSummary(checkpoint, row);
    return html`<tr role="row" aria-rowindex=${rowIndex}>
      <th class="name ${checkpoint.isReference ? "reference" : ""}" role="rowheader" aria-colindex="1" aria-label=${summary} title=${summary}>
        ${checkpointName(checkpoint)}<span class="mark ${markStyle(row.check, row.checkpoint, this.checkpoints)}" aria-hidden="true">${checkMarks[row.check].sign}</span>
      </th>
      ${row.cells === null
        ? html`<td class="nothing" role="gridcell" aria-colindex="2" aria-colspan=${this.film.tokens.length} colspan=${this.film.tokens.length}>${row.note ?? t("Not scored.")}</td>`
        : row.cells.map((_, at) => this.cell(literal`td`, row, index, at, checkpoint, this.instead))}
    </tr>`;
  }

  private instead(cell: FilmCell): TemplateResult | typeof nothing {
    const other = cell.coloured ? instead(cell) : null;
    return other === null ? nothing : html`<span class="instead">${other.text} ${probability(other.probability)}</span>`;
  }
}

customElements.define("seesaw-token-grid", TokenGrid);
