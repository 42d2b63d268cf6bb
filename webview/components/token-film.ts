import { css, html, type TemplateResult } from "lit";
import { literal } from "lit/static-html.js";
import type { DriftCheckpoint, FilmRow } from "../../src/protocol/webview.ts";
import { t } from "../../src/util/l10n.ts";
import { checkMarks, checkpointName, markStyle } from "../marks.ts";
import { FilmElement } from "./film-element.ts";
import { shared, tokenClasses } from "../styles.ts";
import { rowSummary } from "../wording.ts";

/**
 * The narrow film: a row per checkpoint, in which the reference's tokens flow like text. An ARIA grid with one tab stop.
 */
export class TokenFilm extends FilmElement {
  static override styles = [
    shared,
    tokenClasses,
    css`
      :host {
        display: block;
        container-type: inline-size;
      }
      .grid {
        display: grid;
        grid-template-columns: minmax(0, auto) minmax(0, 1fr);
        column-gap: 10px;
        row-gap: 3px;
      }
      .line {
        display: contents;
      }
      .name {
        display: flex;
        gap: 5px;
        min-width: 26px;
        line-height: 21px;
        white-space: nowrap;
      }
      .name .stage {
        display: none;
      }
      .name.reference {
        font-weight: 600;
      }
      .tokens {
        display: flex;
        flex-wrap: wrap;
        row-gap: 3px;
        font-family: var(--mono);
        font-size: var(--vscode-editor-font-size, 13px);
      }
      .token {
        min-width: 1ch;
        margin-right: 1px;
        line-height: 19px;
        text-align: center;
        white-space: pre;
        unicode-bidi: isolate;
        cursor: default;
      }
      .token.continues {
        margin-left: -1px;
      }
      .token:hover {
        outline: 1px dotted var(--vscode-focusBorder);
      }
      .token.current {
        outline: 1px solid var(--vscode-focusBorder);
        outline-offset: 0;
      }
      .token.current:focus-visible {
        outline-width: 2px;
      }
      .nothing {
        line-height: 19px;
        color: var(--dim);
      }
      @container (min-width: 560px) {
        .name .stage {
          display: inline;
        }
      }
    `,
  ];

  override render(): TemplateResult {
    const { film, checkpoints } = this;
    return html`<div class="grid" role="grid" aria-label=${t("Tokens of the reference answer under each checkpoint")} aria-rowcount=${film.rows.length} aria-colcount=${film.total + 1} @keydown=${this.key}>
      ${film.rows.map((row, index) => this.row(row, index, checkpoints[row.checkpoint]))}
    </div>`;
  }

  private row(row: FilmRow, index: number, checkpoint: DriftCheckpoint | undefined): TemplateResult {
    if (checkpoint === undefined) return html``;
    const name = html`<span class="name ${checkpoint.isReference ? "reference" : ""}" role="rowheader" title=${rowSummary(checkpoint, row)} aria-label=${rowSummary(checkpoint, row)}>
      ${checkpoint.label}<span class="stage dim">${checkpoint.stage ?? t("base")}</span><span class=${markStyle(row.check, row.checkpoint, this.checkpoints)} aria-hidden="true">${checkMarks[row.check].sign}</span>
    </span>`;
    return html`<div class="line" role="row" aria-label=${checkpointName(checkpoint)}>
      ${name}
      ${row.cells === null
        ? html`<span class="nothing" role="gridcell">${row.note ?? t("Not scored.")}</span>`
        : html`<span class="tokens" role="presentation">${row.cells.map((_, at) => this.cell(literal`span`, row, index, at, checkpoint))}</span>`}
    </div>`;
  }
}

customElements.define("seesaw-token-film", TokenFilm);
