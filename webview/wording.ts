import type { DriftCheckpoint, FilmCell, FilmRow, FilmToken } from "../src/protocol/webview.ts";
import { t } from "../src/util/l10n.ts";
import { plain, probability, signed } from "./format.ts";
import { checkMarks, checkpointName } from "./marks.ts";

/** What became of a token, in words: also for those who do not see the colours. */
export function verdict(cell: FilmCell, checkpoint: DriftCheckpoint): string {
  if (cell.change === null) return checkpoint.isReference ? t("the reference") : t("not compared");
  return className(cell.coloured ? cell.tokenClass : "kept");
}

function className(tokenClass: FilmCell["tokenClass"]): string {
  return tokenClass === "lost" ? t("lost") : tokenClass === "weakened" ? t("weakened") : t("kept");
}

/** The token the checkpoint would write instead, or null when it would write this one. */
export function instead(cell: FilmCell): { text: string; probability: number } | null {
  const first = cell.top[0];
  return first === undefined || first.isReference ? null : first;
}

/** One token under one checkpoint, for a screen reader. */
export function cellLabel(token: FilmToken, cell: FilmCell, checkpoint: DriftCheckpoint): string {
  const change = cell.change === null ? "" : t(", change {0}", signed(cell.change));
  const other = instead(cell);
  const more = other === null ? "" : t(", instead {0} with probability {1}", other.text, probability(other.probability));
  return t("{0}, {1}: {2}, log probability {3}{4}, rank {5}{6}", token.display, checkpointName(checkpoint), verdict(cell, checkpoint), plain(cell.logprob), change, cell.rank, more);
}

/** The same on several lines, for a pointer that hovers. */
export function cellTitle(token: FilmToken, cell: FilmCell, checkpoint: DriftCheckpoint): string {
  const lines = [
    `${token.display}  ${checkpointName(checkpoint)} · ${verdict(cell, checkpoint)}`,
    cell.change === null ? t("log p {0}", plain(cell.logprob)) : t("log p {0}   change {1}", plain(cell.logprob), signed(cell.change)),
    t("rank {0}   entropy {1}", cell.rank, plain(cell.entropy)),
    ...cell.top.slice(0, 5).map(({ text, probability: p, isReference }) => `${probability(p)}  ${text}${isReference ? `  ${t("(reference)")}` : ""}`),
  ];
  if (token.segment !== null) lines.splice(1, 0, t("segment {0}", token.segment));
  return lines.join("\n");
}

/** What a whole row says: the text alternative of its colours. */
export function rowSummary(checkpoint: DriftCheckpoint, row: FilmRow): string {
  const name = checkpointName(checkpoint);
  if (row.cells === null) return `${name}: ${row.note ?? t("not scored")}`;
  const count = (wanted: FilmCell["tokenClass"]): number => row.cells?.filter((cell) => cell.coloured && cell.tokenClass === wanted).length ?? 0;
  const tokens = row.cells.every((cell) => cell.change === null) ? (checkpoint.isReference ? t("the reference") : t("not compared")) : t("{0} lost and {1} weakened of {2} tokens", count("lost"), count("weakened"), row.cells.length);
  return t("{0}: {1}; check {2}", name, tokens, checkMarks[row.check].word);
}
