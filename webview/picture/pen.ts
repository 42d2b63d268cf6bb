import { brokenLines } from "./layout.ts";

/** What a picture is painted with: the theme as it is now. A canvas knows no CSS variables. */
export interface Ink {
  page: string;
  text: string;
  dim: string;
  line: string;
  passed: string;
  failed: string;
  weakened: string;
  weakenedLine: string;
  lost: string;
  lostLine: string;
  font: string;
  mono: string;
}

const variables: Record<keyof Ink, string> = {
  page: "--page",
  text: "--vscode-foreground",
  dim: "--dim",
  line: "--line",
  passed: "--passed",
  failed: "--failed",
  weakened: "--vscode-seesaw-tokenWeakenedBackground",
  weakenedLine: "--vscode-seesaw-tokenWeakenedLine",
  lost: "--vscode-seesaw-tokenLostBackground",
  lostLine: "--vscode-seesaw-tokenLostLine",
  font: "--vscode-font-family",
  mono: "--mono",
};

/** Reads the theme from an element of the page. What a theme leaves out, as high contrast does backgrounds, is not painted. */
export function readInk(element: Element): Ink {
  const style = getComputedStyle(element);
  return Object.fromEntries(Object.entries(variables).map(([name, variable]) => [name, style.getPropertyValue(variable).trim() || "transparent"])) as unknown as Ink;
}

/** One piece of a picture: how high it is, and how it is drawn from its upper edge on. */
export interface Block {
  height: number;
  draw(pen: CanvasRenderingContext2D, top: number): void;
}

/** A paragraph, broken at blanks and inside of words that are too long; no more than `most` lines. */
export function paragraph(pen: CanvasRenderingContext2D, text: string, style: { font: string; colour: string; width: number; left: number; height: number; most: number }): Block {
  pen.font = style.font;
  const lines = brokenLines(text, style.most, (part) => pen.measureText(part).width <= style.width);
  return {
    height: lines.length * style.height,
    draw(target, top) {
      target.font = style.font;
      target.fillStyle = style.colour;
      target.textAlign = "left";
      target.textBaseline = "middle";
      lines.forEach((line, index) => target.fillText(line, style.left, top + (index + 0.5) * style.height));
    },
  };
}
