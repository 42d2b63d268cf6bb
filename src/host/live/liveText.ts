import type { FilmCell, Filmstrip } from "../../domain/drift/filmstrip.ts";
import { promptText } from "../../domain/drift/promptText.ts";
import { formatDrift, formatNumber, formatSigned } from "../../domain/format.ts";
import { liveFilmstrip, type LivePlace, type LiveScores } from "./liveTraces.ts";

/** Live scores of a row as a text page: one line per token, one column per checkpoint. */
export function liveText(results: readonly LiveScores[], place: LivePlace): string {
  const strip = liveFilmstrip(results, place);
  const missing = results.flatMap(({ label, why }) => (why === null ? [] : [`${label}: ${why}`]));
  const notes = [...new Set(results.flatMap(({ scored }) => scored?.note ?? []))];
  const head = strip === null ? [`Line ${place.line}`] : [`Line ${place.line}`, "", `Prompt  ${oneLine(promptText(strip.probe.prompt))}`, `Answer  ${oneLine(strip.probe.reference)}`];
  return [...head, ...(strip === null ? [] : ["", ...table(strip, results)]), ...(missing.length + notes.length > 0 ? ["", ...missing, ...notes] : []), ""].join("\n");
}

/** What the columns mean, for the foot of the page. */
export const liveLegend = [
  "Each column: the token's log-probability in nats, its change against the checkpoint in the column's head, its rank (#1 is most likely).",
  "weakened: another token is likelier, or it fell by more than 0.7. lost: three or more are likelier. Changes within rounding are not judged.",
];

function table({ tokens, frames }: Filmstrip, results: readonly LiveScores[]): string[] {
  const shown = frames.flatMap((frame, index) => (frame.cells === null ? [] : [{ ...frame, cells: frame.cells, against: results[index]?.against ?? null }]));
  const rows = [
    ["", ...shown.map(({ label, against, delta }) => (against === null || delta === null ? label : `${label} against ${against}`))],
    ["whole answer", ...shown.map(({ nll, delta }) => `${formatNumber(nll === null ? null : -nll)}${delta === null ? "" : `  ${formatDrift(delta)}`}`)],
    ...tokens.map(({ display }, index) => [display, ...shown.map(({ cells }) => cellText(cells[index] as FilmCell))]),
  ];
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => width(row[column] ?? ""))));
  return rows.map((row) => row.map((text, column) => text + " ".repeat((widths[column] ?? 0) - width(text))).join("   ").trimEnd());
}

function cellText({ logprob, delta, rank, class: tokenClass, coloured }: FilmCell): string {
  const change = delta === null ? "" : `  ${formatSigned(delta).padStart(6)}`;
  return `${formatNumber(logprob).padStart(6)}${change}  #${rank + 1}${coloured ? ` ${tokenClass}` : ""}`;
}

/** Columns of a monospaced font; East Asian characters and emoji take two. */
function width(text: string): number {
  return Array.from(text).reduce((sum, character) => sum + (/[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\u{1f300}-\u{1faff}]/u.test(character) ? 2 : 1), 0);
}

function oneLine(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > 240 ? `${Array.from(line).slice(0, 240).join("")}…` : line;
}
