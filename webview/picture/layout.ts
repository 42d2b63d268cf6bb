/** Tokens that stand side by side: as many as the picture is wide. */
export interface Band {
  from: number;
  widths: number[];
}

/** Shares out the columns over bands of at most `width`; a column that is wider has a band of its own. */
export function bandsOf(widths: readonly number[], width: number): Band[] {
  const bands: Band[] = [];
  let used = Infinity;
  for (const [index, column] of widths.entries()) {
    if (used + column > width) {
      bands.push({ from: index, widths: [] });
      used = 0;
    }
    bands.at(-1)?.widths.push(Math.min(column, width));
    used += column;
  }
  return bands;
}

/** Breaks a text into lines for which `fits` holds: at blanks, or inside of what has none. `…` ends what was cut. */
export function brokenLines(text: string, most: number, fits: (part: string) => boolean): string[] {
  const lines: string[] = [];
  const wholes = text.split("\n");
  for (const [index, whole] of wholes.entries()) {
    let rest = Array.from(whole);
    do {
      let end = rest.length;
      if (!fits(rest.join(""))) {
        let [low, high] = [1, rest.length];
        while (low < high) {
          const middle = Math.ceil((low + high) / 2);
          if (fits(rest.slice(0, middle).join(""))) low = middle;
          else high = middle - 1;
        }
        const blank = rest.lastIndexOf(" ", low);
        end = blank > 0 ? blank : low;
      }
      lines.push(rest.slice(0, end).join(""));
      rest = rest.slice(rest[end] === " " ? end + 1 : end);
      if (lines.length === most && (rest.length > 0 || index < wholes.length - 1)) return [...lines.slice(0, -1), cutToFit(`${lines.at(-1) ?? ""}…`, fits)];
    } while (rest.length > 0);
  }
  return lines;
}

/** The text, or its beginning with `…` where it does not fit. */
export function cutToFit(text: string, fits: (part: string) => boolean): string {
  const characters = Array.from(text);
  for (let length = characters.length; length > 0; length--) {
    const cut = length === characters.length ? text : `${characters.slice(0, length).join("")}…`;
    if (fits(cut)) return cut;
  }
  return "";
}
