import { LitElement, css, html, nothing, type TemplateResult } from "lit";
import { diffTexts, type TextDiff } from "../../src/domain/drift/textDiff.ts";
import { formatPercent } from "../../src/domain/format.ts";
import type { DriftCheckpoint, DriftFilm, FilmRow } from "../../src/protocol/webview.ts";
import { t } from "../../src/util/l10n.ts";
import { checkMarks, checkpointName, markStyle } from "../marks.ts";
import { shared } from "../styles.ts";

/** What each checkpoint really writes for the prompt, held against the answer of the checkpoint it is compared with. */
export class AnswerList extends LitElement {
  static override properties = { film: { attribute: false }, checkpoints: { attribute: false } };
  declare film: DriftFilm;
  declare checkpoints: DriftCheckpoint[];

  static override styles = [
    shared,
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
        line-height: 20px;
      }
      .text {
        max-height: 100px;
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
      ins {
        color: var(--vscode-foreground);
        text-decoration: none;
        background: var(--vscode-diffEditor-insertedTextBackground);
        border-bottom: 1px solid currentcolor;
      }
      del {
        color: var(--vscode-foreground);
        background: var(--vscode-diffEditor-removedTextBackground);
        text-decoration: line-through;
        text-decoration-color: var(--failed);
      }
      .leaves {
        display: inline-block;
        width: 0;
        height: 14px;
        margin: 0 2px;
        vertical-align: -2px;
        border-left: 2px solid var(--failed);
      }
      .leaves::before {
        display: block;
        width: 6px;
        height: 5px;
        margin-left: -4px;
        background: var(--failed);
        clip-path: polygon(0 0, 100% 0, 50% 100%);
        content: "";
      }
    `,
  ];

  override render(): TemplateResult {
    const bases = new Set(this.film.rows.map((row) => this.base(row)?.name ?? null).filter((name) => name !== null));
    const [only] = bases;
    const against = bases.size === 1 && only !== undefined ? t("against {0}", only) : t("against what each is compared with");
    return html`<h3>${t("Greedy answers")} <span class="dim">${bases.size === 0 ? nothing : html`· ${against}: <del>${t("gone")}</del> <ins>${t("new")}</ins>, ▾ ${t("where they part")}`}</span></h3>
      <ul>
        ${this.film.rows.map((row) => this.answer(row))}
      </ul>`;
  }

  private answer(row: FilmRow): TemplateResult {
    const checkpoint = this.checkpoints[row.checkpoint];
    if (checkpoint === undefined) return html``;
    const mark = checkMarks[row.check];
    const style = markStyle(row.check, row.checkpoint, this.checkpoints);
    return html`<li title=${checkpointName(checkpoint)}>
      <span>${checkpoint.label}</span><span class="text ${style === "before" ? "dim" : ""}">${this.text(row)}</span><span class="mark ${style}" title=${t("check {0}", mark.word)} role="img" aria-label=${mark.word}>${mark.sign}</span>
    </li>`;
  }

  private text(row: FilmRow): TemplateResult | string {
    if (row.generated === null) return html`<span class="dim">${t("not generated")}</span>`;
    const base = this.base(row);
    if (base === null) return row.generated;
    const diff = diffTexts(base.text, row.generated);
    if (diff.firstDivergence === null) return html`${row.generated}<span class="visually-hidden"> ${t("(the same as {0})", base.name)}</span>`;
    return diff.rewritten ? this.rewritten(row.generated, diff.firstDivergence, base.name) : this.changes(diff, diff.firstDivergence, base.name);
  }

  /** So little is left that the old words between the new ones would be noise. */
  private rewritten(text: string, at: number, name: string): TemplateResult {
    return html`${text.slice(0, at)}${leaves(name, t("rewritten from here on"))}<ins>${text.slice(at)}</ins>`;
  }

  private changes({ parts, changedShare }: TextDiff, at: number, name: string): TemplateResult {
    const first = parts.findIndex(({ kind }) => kind !== "same");
    const share = t("at character {0}; {1} changed", at + 1, formatPercent(changedShare, 0));
    return html`${parts.map(({ kind, text }, index) => html`${index === first ? leaves(name, share) : nothing}${kind === "same" ? text : kind === "added" ? html`<ins>${text}</ins>` : html`<del>${text}</del>`}`)}`;
  }

  /** What an answer is held against: the answer of the checkpoint it is compared with, else the reference answer itself. */
  private base(row: FilmRow): { text: string; name: string } | null {
    const against = this.checkpoints[row.checkpoint]?.against ?? null;
    if (against === null || row.generated === null) return null;
    const other = this.film.rows.find(({ checkpoint }) => checkpoint === against)?.generated ?? null;
    return other === null ? { text: this.film.reference, name: t("the reference answer") } : { text: other, name: t("the answer of {0}", this.checkpoints[against]?.label ?? "") };
  }
}

/** The place where two answers part. */
function leaves(name: string, more: string): TemplateResult {
  const text = t("parts from {0} here, {1}", name, more);
  return html`<span class="leaves" role="img" aria-label=${text} title=${text}></span>`;
}

customElements.define("seesaw-answer-list", AnswerList);
