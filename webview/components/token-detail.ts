import { LitElement, css, html, nothing, type TemplateResult } from "lit";
import type { DriftCheckpoint, DriftFilm, FilmRow } from "../../src/protocol/webview.ts";
import { t } from "../../src/util/l10n.ts";
import { plain, probability, signed } from "../format.ts";
import { shared, tokenClasses } from "../styles.ts";

/** The numbers of one token under every checkpoint: a table. */
export class TokenDetail extends LitElement {
  static override properties = { film: { attribute: false }, checkpoints: { attribute: false }, token: { attribute: false }, row: { attribute: false } };
  declare film: DriftFilm;
  declare checkpoints: DriftCheckpoint[];
  declare token: number;
  declare row: number;

  static override styles = [
    shared,
    tokenClasses,
    css`
      :host {
        display: block;
        container-type: inline-size;
      }
      h3 {
        display: flex;
        gap: 6px;
        align-items: baseline;
        margin-bottom: 4px;
      }
      h3 code {
        padding: 0 3px;
        font-family: var(--mono);
        font-size: 12px;
        background: var(--vscode-textCodeBlock-background);
        white-space: pre;
        unicode-bidi: isolate;
      }
      table {
        width: 100%;
        border-collapse: collapse;
        font-size: 12px;
        font-variant-numeric: tabular-nums;
      }
      th,
      td {
        padding: 1px 0 1px 8px;
        line-height: 18px;
        font-weight: normal;
        text-align: right;
        white-space: nowrap;
      }
      thead th {
        font-size: 11px;
        color: var(--dim);
        border-bottom: 1px solid var(--line);
      }
      th:first-child {
        padding-left: 4px;
        text-align: left;
      }
      tr.current {
        background: var(--vscode-list-inactiveSelectionBackground);
        outline: 1px solid var(--vscode-contrastActiveBorder, transparent);
        outline-offset: -1px;
      }
      tr.current .dim {
        color: inherit;
      }
      .stage,
      .entropy {
        display: none;
      }
      td.instead {
        max-width: 0;
        width: 40%;
        padding-left: 12px;
        text-align: left;
      }
      /* As many as there is room for, and none cut through: what does not fit wraps out of sight. */
      .options {
        display: flex;
        flex-wrap: wrap;
        height: 18px;
        overflow: hidden;
      }
      th.instead {
        padding-left: 12px;
        text-align: left;
      }
      .change {
        padding: 0 2px;
      }
      .option {
        display: inline-flex;
        gap: 3px;
        margin-right: 8px;
        font-size: 11px;
      }
      .option code {
        padding: 0 2px;
        font-family: var(--mono);
        font-size: 12px;
        color: var(--vscode-foreground);
        background: var(--vscode-textCodeBlock-background);
        white-space: pre;
        unicode-bidi: isolate;
      }
      .option code.own {
        font-weight: 600;
      }
      @container (min-width: 380px) {
        .entropy {
          display: table-cell;
        }
        .stage {
          display: inline;
        }
      }
    `,
  ];

  override render(): TemplateResult {
    const { film, token: at } = this;
    const token = film.tokens[at];
    if (token === undefined) return html``;
    return html`
      <h3><code>${token.display}</code><span class="dim">${token.segment === null ? nothing : `${token.segment} · `}${t("token {0} of {1}", film.from + at + 1, film.total)}</span></h3>
      <table aria-label=${t("Token {0} under each checkpoint", token.display)}>
        <thead>
          <tr>
            <th scope="col"><span class="visually-hidden">${t("checkpoint")}</span></th>
            <th scope="col" title=${t("Natural logarithm of the token's probability")}>log p</th>
            <th scope="col" title=${t("Change of log p against the checkpoint compared with")}>${t("change")}</th>
            <th scope="col" title=${t("1 = the most likely token")}>${t("rank")}</th>
            <th scope="col" class="entropy" title=${t("Entropy of the next-token distribution, in nats")}>${t("entropy")}</th>
            <th scope="col" class="instead" title=${t("The most likely tokens and their probability")}>${t("most likely")}</th>
          </tr>
        </thead>
        <tbody>
          ${film.rows.map((row, index) => this.line(row, index))}
        </tbody>
      </table>
    `;
  }

  private line(row: FilmRow, index: number): TemplateResult {
    const checkpoint = this.checkpoints[row.checkpoint];
    const cell = row.cells?.[this.token];
    if (checkpoint === undefined) return html``;
    const head = html`<th scope="row">${checkpoint.label} <span class="stage dim">${checkpoint.stage ?? t("base")}</span></th>`;
    const current = index === this.row ? "current" : "";
    if (cell === undefined) return html`<tr class=${current}>${head}<td>–</td><td>–</td><td>–</td><td class="entropy">–</td><td class="instead dim">${t("not scored")}</td></tr>`;
    const change = cell.change === null ? html`<span class="dim">${checkpoint.isReference ? t("ref.") : "–"}</span>` : html`<span class="change token ${cell.coloured ? cell.tokenClass : ""}">${signed(cell.change)}</span>`;
    const top = cell.top.filter(({ probability: p }, place) => place === 0 || p >= 0.01).slice(0, 3);
    return html`<tr class=${current}>
      ${head}
      <td>${plain(cell.logprob)}</td>
      <td>${change}</td>
      <td>${cell.rank}</td>
      <td class="entropy">${plain(cell.entropy)}</td>
      <td class="instead" title=${cell.top.map(({ text, probability: p }) => `${probability(p)}  ${text}`).join("\n")}>
        <div class="options">${top.map(({ text, probability: p, isReference }) => html`<span class="option"><code class=${isReference ? "own" : ""}>${text}</code><span class="dim">${probability(p)}</span></span>`)}</div>
      </td>
    </tr>`;
  }
}

customElements.define("seesaw-token-detail", TokenDetail);
