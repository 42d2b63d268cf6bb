import type { DriftCheckpoint, DriftFilm, FilmCell, FilmRow } from "../../src/protocol/webview.ts";
import { t } from "../../src/util/l10n.ts";
import { probability } from "../format.ts";
import { checkMarks, checkpointName, markStyle } from "../marks.ts";
import { instead } from "../wording.ts";
import { bandsOf, cutToFit, type Band } from "./layout.ts";
import type { Block, Ink } from "./pen.ts";

/** A film of more parts than this would be higher than a canvas can be. */
const mostBands = 14;
const headHeight = 24;
const rowHeight = 38;
const gap = 14;
const otherFont = 11;

/** The film as the wide grid shows it, broken into bands instead of scrolled. */
export function filmBlock(pen: CanvasRenderingContext2D, film: DriftFilm, checkpoints: readonly DriftCheckpoint[], ink: Ink, left: number, width: number): Block {
  const tokenFont = `13px ${ink.mono}`;
  const smallFont = `${otherFont}px ${ink.mono}`;
  const nameFont = `13px ${ink.font}`;
  const measure = (font: string, text: string): number => {
    pen.font = font;
    return pen.measureText(text).width;
  };
  const names = film.rows.map(({ checkpoint }) => (checkpoints[checkpoint] === undefined ? "" : checkpointName(checkpoints[checkpoint])));
  const nameWidth = Math.min(200, Math.max(...names.map((name) => measure(`600 ${nameFont}`, name)), measure(nameFont, t("reference"))) + 34);
  const other = (cell: FilmCell | undefined): string => {
    const found = cell?.coloured === true ? instead(cell) : null;
    return found === null ? "" : `${cutToFit(found.text, (part) => Array.from(part).length <= 12)} ${probability(found.probability)}`;
  };
  const widths = film.tokens.map(({ display }, index) => Math.ceil(Math.max(18, measure(tokenFont, display), ...film.rows.map(({ cells }) => measure(smallFont, other(cells?.[index])))) + 10));
  const bands = bandsOf(widths, width - nameWidth).slice(0, mostBands);
  const shown = bands.reduce((sum, band) => sum + band.widths.length, 0);
  const bandHeight = headHeight + film.rows.length * rowHeight + gap;
  const part = film.from > 0 || film.from + shown < film.total ? t("tokens {0}–{1} of {2}", film.from + 1, film.from + shown, film.total) : "";

  const drawRow = (target: CanvasRenderingContext2D, row: FilmRow, name: string, band: Band, y: number): void => {
    const checkpoint = checkpoints[row.checkpoint];
    const mark = markStyle(row.check, row.checkpoint, checkpoints);
    target.textAlign = "left";
    target.font = checkpoint?.isReference === true ? `600 ${nameFont}` : nameFont;
    target.fillStyle = ink.text;
    target.fillText(cutToFit(name, (text) => target.measureText(text).width <= nameWidth - 30), left, y + 12);
    target.fillStyle = mark === "passed" ? ink.passed : mark === "failed" ? ink.failed : ink.dim;
    target.fillText(checkMarks[row.check].sign, left + nameWidth - 22, y + 12);
    let x = left + nameWidth;
    if (row.cells === null) {
      target.font = nameFont;
      target.fillStyle = ink.dim;
      target.fillText(cutToFit(row.note ?? t("Not scored."), (text) => target.measureText(text).width <= width - nameWidth), x, y + 12);
      return;
    }
    band.widths.forEach((column, place) => {
      const [token, cell] = [film.tokens[band.from + place], row.cells?.[band.from + place]];
      if (token === undefined || cell === undefined) return;
      drawToken(target, cell.coloured ? cell.tokenClass : "kept", ink, x, y, column - 1, rowHeight - 4);
      target.textAlign = "center";
      target.font = tokenFont;
      target.fillStyle = ink.text;
      target.fillText(token.display, x + (column - 1) / 2, y + 11);
      target.font = smallFont;
      target.fillText(other(cell), x + (column - 1) / 2, y + 25);
      x += column;
    });
  };

  return {
    height: bands.length * bandHeight + (part === "" ? 0 : 18),
    draw(target, top) {
      target.textBaseline = "middle";
      bands.forEach((band, index) => {
        let y = top + index * bandHeight;
        target.textAlign = "left";
        target.font = `${otherFont}px ${ink.font}`;
        target.fillStyle = ink.dim;
        target.fillText(t("reference"), left, y + 10);
        let x = left + nameWidth;
        band.widths.forEach((column, place) => {
          target.textAlign = "center";
          target.font = tokenFont;
          target.fillStyle = ink.text;
          target.fillText(film.tokens[band.from + place]?.display ?? "", x + (column - 1) / 2, y + 10);
          x += column;
        });
        target.fillStyle = ink.line;
        target.fillRect(left, y + headHeight - 4, width, 1);
        y += headHeight;
        film.rows.forEach((row, at) => drawRow(target, row, names[at] ?? "", band, y + at * rowHeight));
      });
      if (part === "") return;
      target.textAlign = "left";
      target.font = `${otherFont}px ${ink.font}`;
      target.fillStyle = ink.dim;
      target.fillText(part, left, top + bands.length * bandHeight + 4);
    },
  };
}

/** The ground of a token: background and line as in styles.ts, so that the hue is never alone. */
export function drawToken(pen: CanvasRenderingContext2D, tokenClass: FilmCell["tokenClass"], ink: Ink, x: number, y: number, width: number, height: number): void {
  if (tokenClass === "kept") return;
  pen.fillStyle = tokenClass === "lost" ? ink.lost : ink.weakened;
  pen.fillRect(x, y, width, height);
  pen.save();
  pen.strokeStyle = tokenClass === "lost" ? ink.lostLine : ink.weakenedLine;
  pen.lineWidth = 2;
  pen.setLineDash(tokenClass === "lost" ? [] : [2, 2]);
  pen.beginPath();
  pen.moveTo(x, y + height);
  pen.lineTo(x + width, y + height);
  pen.stroke();
  pen.restore();
}
