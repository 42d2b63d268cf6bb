import { LitElement, css, html, type TemplateResult } from "lit";
import type { DriftCheckpoint, DriftFilm, FilmRow } from "../../src/protocol/webview.ts";
import { checkMarks, checkpointName, markStyle } from "../marks.ts";
import { shared, tokenClasses } from "../styles.ts";

/** What each checkpoint really writes for the prompt, with the place where it leaves the reference. */
export class AnswerList extends LitElement {
  static override properties = { film: { attribute: false }, checkpoints: { attribute: false } };
  declare film: DriftFilm;
  declare checkpoints: DriftCheckpoint[];

  static override styles = [
    shared,
    tokenClasses,
    css`
      :host {
        display: block;
      }
      ul {
        margin: 4px 0 0;
        padding: 0;
        list-style: none;
      }
      li {
        display: grid;
        grid-template-columns: 28px minmax(0, 1fr) 14px;
        column-gap: 6px;
        padding: 1px 0;
        line-height: 18px;
      }
      .text {
        max-height: 72px;
        overflow-y: auto;
        font-family: var(--mono);
        font-size: 12px;
        white-space: pre-wrap;
        overflow-wrap: anywhere;
        unicode-bidi: plaintext;
      }
      .mark {
        text-align: right;
      }
    `,
  ];

  override render(): TemplateResult {
    return html`<h3>Greedy answers <span class="dim">· marked from where they leave the reference</span></h3>
      <ul>
        ${this.film.rows.map((row) => this.answer(row))}
      </ul>`;
  }

  private answer(row: FilmRow): TemplateResult {
    const checkpoint = this.checkpoints[row.checkpoint];
    if (checkpoint === undefined) return html``;
    const mark = checkMarks[row.check];
    const style = markStyle(row.check, row.checkpoint, this.checkpoints);
    // What a checkpoint before the reference wrote is there to be read, not to be held against it.
    const cut = (style === "before" ? null : row.diverges) ?? row.generated?.length ?? 0;
    const text =
      row.generated === null
        ? html`<span class="dim">not generated</span>`
        : html`${row.generated.slice(0, cut)}<span class="token ${row.check === "failed" ? "lost" : "weakened"}" ?hidden=${cut >= row.generated.length}>${row.generated.slice(cut)}</span>`;
    return html`<li title=${checkpointName(checkpoint)}>
      <span>${checkpoint.label}</span><span class="text ${style === "before" ? "dim" : ""}">${text}</span><span class="mark ${style}" title=${`check ${mark.word}`} role="img" aria-label=${mark.word}>${mark.sign}</span>
    </li>`;
  }
}

customElements.define("seesaw-answer-list", AnswerList);
