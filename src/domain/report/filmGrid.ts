import { formatDrift, formatNumber, formatPercent, formatSigned } from "../format.ts";
import { probeSetName } from "../run/flagText.ts";
import type { FilmCell, FilmFrame, FilmToken } from "../drift/filmstrip.ts";
import { promptText } from "../drift/promptText.ts";
import { Html, html } from "./html.ts";
import type { ReportFilm } from "./reportModel.ts";

/** Characters of tokens per block: what fits a page without scrolling. */
const blockWidth = 84;

/** What the page's script shows for one cell, in the order of its own list. */
export interface CellDetail {
  token: string;
  segment: string | null;
  frame: string;
  lines: string[];
  top: { token: string; percent: string; share: number; reference: boolean }[];
}

/** One prompt under every checkpoint: a row per checkpoint, a column per token. Cells point at `details` by index. */
export function filmGrid({ skill, split, film, against, of }: ReportFilm, details: CellDetail[]): Html {
  const { probe, tokens, frames } = film;
  const blocks = splitBlocks(tokens);
  const what = against === "start" ? "each checkpoint against the start of its own stage" : `against ${against}`;
  return html`<article class="film">
<h3>${probeSetName(skill, split)} <small>line ${probe.line} drifted most of ${of} prompts, ${what}</small></h3>
<p class="prompt"><b>Prompt</b> ${promptText(probe.prompt)}</p>
<div class="frames">${blocks.map((block) => blockTable(block, tokens, frames, details))}</div>
${written(frames, probe.reference)}
</article>`;
}

/** The tokens cut into blocks at about `blockWidth` characters. */
export function splitBlocks(tokens: readonly FilmToken[]): number[][] {
  const blocks: number[][] = [];
  let used = Infinity;
  tokens.forEach((token, index) => {
    const size = [...token.display].length + 1;
    if (used + size > blockWidth) {
      blocks.push([]);
      used = 0;
    }
    blocks.at(-1)?.push(index);
    used += size;
  });
  return blocks;
}

function blockTable(block: readonly number[], tokens: readonly FilmToken[], frames: readonly FilmFrame[], details: CellDetail[]): Html {
  const segments: { name: string | null; span: number }[] = [];
  for (const index of block) {
    const name = tokens[index]?.segment ?? null;
    const last = segments.at(-1);
    if (last && last.name === name) last.span += 1;
    else segments.push({ name, span: 1 });
  }
  return html`<table class="strip"><thead><tr><th></th><th></th><th></th>${segments.map(({ name, span }) => html`<th colspan="${span}" class="segment" title="${name ?? ""}"><span>${name ?? ""}</span></th>`)}</tr></thead>
<tbody>${frames.map((frame) => html`<tr><th scope="row">${frame.label}</th><td>${check(frame)}</td><td class="sum">${frame.delta === null ? "–" : formatDrift(frame.delta)}</td>${
    frame.cells === null ? html`<td class="none" colspan="${block.length}">${frame.why ?? ""}</td>` : block.map((index) => tokenCell(frame, frame.cells?.[index], tokens[index], details))
  }</tr>`)}</tbody></table>`;
}

function check({ correct }: FilmFrame): Html {
  if (correct === null) return html`<i class="check" title="the check was not run here">·</i>`;
  return correct ? html`<i class="check yes" title="the check passed">✓</i>` : html`<i class="check no" title="the check failed">✗</i>`;
}

function tokenCell(frame: FilmFrame, cell: FilmCell | undefined, token: FilmToken | undefined, details: CellDetail[]): Html {
  if (!cell || !token) return html`<td></td>`;
  const kind = cell.coloured ? cell.class : "kept";
  details.push(detailOf(frame, cell, token));
  return html`<td class="token ${kind}" tabindex="0" data-d="${details.length - 1}" aria-label="${`${token.display}, ${kind}`}">${token.display}</td>`;
}

function detailOf(frame: FilmFrame, cell: FilmCell, token: FilmToken): CellDetail {
  const probability = Math.exp(cell.logprob);
  const known = [cell.klStart === null ? "" : `KL from the stage's start ${formatNumber(cell.klStart, 3)}`, cell.klBase === null ? "" : `from M0 ${formatNumber(cell.klBase, 3)} nats`].filter(Boolean).join(", ");
  return {
    token: token.display,
    segment: token.segment,
    frame: frame.label,
    lines: [
      `probability ${smallPercent(probability)} (log ${formatNumber(cell.logprob)}), rank ${cell.rank + 1}`,
      cell.delta === null ? "nothing to compare with" : `change ${formatSigned(cell.delta)} nats: ${cell.change === "same" ? "within the rescoring noise" : cell.change}`,
      `entropy ${formatNumber(cell.entropy)} nats`,
      ...(known ? [known] : []),
    ],
    top: cell.alternatives.map(({ display, probability: share, isReference }) => ({ token: display, percent: smallPercent(share), share: Math.round(share * 1000) / 1000, reference: isReference })),
  };
}

function smallPercent(share: number): string {
  return share < 0.00005 ? "< 0.01 %" : formatPercent(share, share < 0.01 ? 2 : 1);
}

/** What each checkpoint wrote itself, from where it leaves the reference. */
function written(frames: readonly FilmFrame[], reference: string): Html | null {
  const rows = frames.flatMap((frame) => (frame.generated === null ? [] : [{ frame, text: frame.generated }]));
  if (rows.length === 0) return null;
  return html`<table class="written"><caption>What it writes</caption><tbody>
<tr><th scope="row">reference</th><td></td><td><code>${reference}</code></td></tr>
${rows.map(({ frame, text }) => {
    const at = commonPrefix(text.trim(), reference.trim());
    const rest = text.trim().slice(at);
    return html`<tr><th scope="row">${frame.label}</th><td>${check(frame)}</td><td><code>${text.trim() === "" ? html`<i class="none">nothing</i>` : text.trim().slice(0, at)}${rest === "" ? null : html`<mark>${rest}</mark>`}</code>${frame.finish === "length" ? html` <small>cut at the length limit</small>` : null}</td></tr>`;
  })}</tbody></table>`;
}

function commonPrefix(a: string, b: string): number {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  // not between the two halves of one character
  return at > 0 && /[\ud800-\udbff]/.test(a[at - 1] ?? "") ? at - 1 : at;
}
