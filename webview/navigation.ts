import type { DriftFilm } from "../src/protocol/webview.ts";
import type { TokenFocus } from "./state.ts";

/** Where a key leads in the film: arrows, Home, End, and n / p for the next and previous changed token. Null: not a key of ours. */
export function moveFocus(film: DriftFilm, from: TokenFocus, key: string, whole: boolean): TokenFocus | null {
  const last = film.tokens.length - 1;
  const move = (row: number, token: number): TokenFocus => ({ row, token: Math.max(0, Math.min(token, last)) });
  switch (key) {
    case "ArrowLeft":
      return move(from.row, from.token - 1);
    case "ArrowRight":
      return move(from.row, from.token + 1);
    case "ArrowUp":
      return move(scoredRow(film, from.row, -1), from.token);
    case "ArrowDown":
      return move(scoredRow(film, from.row, 1), from.token);
    case "Home":
      return whole ? move(scoredRow(film, -1, 1), 0) : move(from.row, 0);
    case "End":
      return whole ? move(scoredRow(film, film.rows.length, -1), last) : move(from.row, last);
    case "n":
      return changedToken(film, from, 1);
    case "p":
      return changedToken(film, from, -1);
    default:
      return null;
  }
}

/** The next row that has tokens; stays where it is when there is none. */
function scoredRow(film: DriftFilm, from: number, step: 1 | -1): number {
  for (let row = from + step; row >= 0 && row < film.rows.length; row += step) if (film.rows[row]?.cells != null) return row;
  return Math.max(0, Math.min(from, film.rows.length - 1));
}

/** The next coloured token in reading order; stays where it is when there is none. */
function changedToken(film: DriftFilm, from: TokenFocus, step: 1 | -1): TokenFocus {
  const width = film.tokens.length;
  for (let at = from.row * width + from.token + step; at >= 0 && at < film.rows.length * width; at += step) {
    const row = Math.floor(at / width);
    if (film.rows[row]?.cells?.[at % width]?.coloured === true) return { row, token: at % width };
  }
  return from;
}
