import { stripVTControlCharacters, styleText } from "node:util";

type Style = Parameters<typeof styleText>[0];

/** Where a command writes. Tests give one that keeps the text. */
export interface Output {
  /** The answer: stdout. */
  print(text: string): void;
  /** Remarks and progress: stderr, so that a piped answer stays clean. */
  note(text: string): void;
  /** One JSON document on one line of stdout. */
  json(value: unknown): void;
  paint(style: Style, text: string): string;
  readonly colour: boolean;
  /** Columns of the terminal; 120 where there is none. */
  readonly width: number;
  /** stderr is a terminal that can rewrite a line. */
  readonly live: boolean;
  /** Replaces the live line on stderr; "" removes it. Does nothing where `live` is false. */
  rewrite(text: string): void;
}

/** Colours follow --no-color, then NO_COLOR and FORCE_COLOR (https://no-color.org), then whether stdout is a terminal. */
export function wantsColour(flag: boolean, env: NodeJS.ProcessEnv, terminal: boolean): boolean {
  if (!flag || (env["NO_COLOR"] ?? "") !== "") return false;
  const force = env["FORCE_COLOR"];
  if (force !== undefined) return force !== "0";
  return terminal && env["TERM"] !== "dumb";
}

export function terminalOutput(colour: boolean): Output {
  const live = process.stderr.isTTY === true && process.env["TERM"] !== "dumb";
  let line = "";
  const clear = (): void => {
    if (line !== "") process.stderr.write("\r\u001b[2K");
    line = "";
  };
  return {
    print(text) {
      clear();
      process.stdout.write(`${text}\n`);
    },
    note(text) {
      clear();
      process.stderr.write(`${text}\n`);
    },
    json: (value) => void process.stdout.write(`${JSON.stringify(value)}\n`),
    paint: (style, text) => (colour ? styleText(style, text, { validateStream: false }) : text),
    colour,
    width: process.stdout.columns || process.stderr.columns || 120,
    live,
    rewrite(text) {
      if (!live || text === line) return;
      if (text === "") clear();
      else process.stderr.write(`\r\u001b[2K${text}`);
      line = text;
    },
  };
}

/** Columns a text takes on a terminal: wide characters count twice, combining marks and colours not at all. */
export function textWidth(text: string): number {
  let width = 0;
  for (const character of stripVTControlCharacters(text)) {
    const code = character.codePointAt(0) ?? 0;
    if (/\p{Mn}|\p{Me}|\p{Cf}/u.test(character)) continue;
    width += code >= 0x1100 && /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u.test(character) ? 2 : 1;
  }
  return width;
}

export function padTo(text: string, width: number, right = false): string {
  const space = " ".repeat(Math.max(0, width - textWidth(text)));
  return right ? space + text : text + space;
}

/** One line, at most `width` columns, with control characters and line breaks made harmless. */
export function oneLine(text: string, width: number): string {
  const flat = text.replace(/\s+/g, " ").replace(/[\u0000-\u001f\u007f-\u009f]/g, "�").trim();
  if (textWidth(flat) <= width) return flat;
  let cut = "";
  let used = 0;
  for (const character of flat) {
    used += textWidth(character);
    if (used > width - 1) break;
    cut += character;
  }
  return `${cut}…`;
}

/** A table of aligned columns; `right` names the columns (by index) that hold numbers. */
export function table(header: readonly string[], rows: readonly (readonly string[])[], options: { right?: readonly number[]; out: Output }): string {
  const widths = header.map((name, column) => Math.max(textWidth(name), ...rows.map((row) => textWidth(row[column] ?? ""))));
  const line = (cells: readonly string[]): string =>
    cells.map((cell, column) => padTo(cell, widths[column] ?? 0, options.right?.includes(column))).join("  ").trimEnd();
  const rule = widths.map((width) => "─".repeat(width)).join("──");
  return [options.out.paint("bold", line(header)), options.out.paint("dim", rule), ...rows.map(line)].join("\n");
}
