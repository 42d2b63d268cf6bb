import type { DriftCheckpoint, FilmCell, FilmRow, FilmToken } from "../src/protocol/webview.ts";
import { plain, probability, signed } from "./format.ts";
import { checkMarks, checkpointName } from "./marks.ts";

/** What became of a token, in words: also for those who do not see the colours. */
export function verdict(cell: FilmCell, checkpoint: DriftCheckpoint): string {
  if (cell.change === null) return checkpoint.isReference ? "the reference" : "not compared";
  return cell.coloured ? cell.tokenClass : "kept";
}

/** The token the checkpoint would write instead, or null when it would write this one. */
export function instead(cell: FilmCell): { text: string; probability: number } | null {
  const first = cell.top[0];
  return first === undefined || first.isReference ? null : first;
}

/** One token under one checkpoint, for a screen reader. */
export function cellLabel(token: FilmToken, cell: FilmCell, checkpoint: DriftCheckpoint): string {
  const change = cell.change === null ? "" : `, change ${signed(cell.change)}`;
  const other = instead(cell);
  const more = other === null ? "" : `, instead ${other.text} with probability ${probability(other.probability)}`;
  return `${token.display}, ${checkpointName(checkpoint)}: ${verdict(cell, checkpoint)}, log probability ${plain(cell.logprob)}${change}, rank ${cell.rank}${more}`;
}

/** The same on several lines, for a pointer that hovers. */
export function cellTitle(token: FilmToken, cell: FilmCell, checkpoint: DriftCheckpoint): string {
  const lines = [
    `${token.display}  ${checkpointName(checkpoint)} · ${verdict(cell, checkpoint)}`,
    `log p ${plain(cell.logprob)}${cell.change === null ? "" : `   change ${signed(cell.change)}`}`,
    `rank ${cell.rank}   entropy ${plain(cell.entropy)}`,
    ...cell.top.slice(0, 5).map(({ text, probability: p, isReference }) => `${probability(p)}  ${text}${isReference ? "  (reference)" : ""}`),
  ];
  if (token.segment !== null) lines.splice(1, 0, `segment ${token.segment}`);
  return lines.join("\n");
}

/** What a whole row says: the text alternative of its colours. */
export function rowSummary(checkpoint: DriftCheckpoint, row: FilmRow): string {
  const name = checkpointName(checkpoint);
  if (row.cells === null) return `${name}: ${row.note ?? "not scored"}`;
  const count = (wanted: FilmCell["tokenClass"]): number => row.cells?.filter((cell) => cell.coloured && cell.tokenClass === wanted).length ?? 0;
  const tokens = row.cells.every((cell) => cell.change === null) ? (checkpoint.isReference ? "the reference" : "not compared") : `${count("lost")} lost and ${count("weakened")} weakened of ${row.cells.length} tokens`;
  return `${name}: ${tokens}; check ${checkMarks[row.check].word}`;
}
