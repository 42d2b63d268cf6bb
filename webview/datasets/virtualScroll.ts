/** A list of rows of equal height in a scrolling box, in CSS pixels. */
export interface Geometry {
  rows: number;
  rowHeight: number;
  viewport: number;
}

/** Where the list stands: `top` in pixels of the whole list, `scrollTop` as the browser has it. */
export interface Place {
  top: number;
  scrollTop: number;
}

/** Browsers end elements at 17 to 33 million pixels, at less when zoomed: a longer list scrolls in proportion. */
export const tallest = 8_000_000;

/** Height of the element that makes the scroll bar. */
export function scrollHeight({ rows, rowHeight, viewport }: Geometry): number {
  return Math.min(rows * rowHeight, Math.max(tallest, viewport));
}

/** The largest `top`. */
export function lastTop({ rows, rowHeight, viewport }: Geometry): number {
  return Math.max(0, rows * rowHeight - viewport);
}

export function clampTop(geometry: Geometry, top: number): number {
  return Math.max(0, Math.min(top, lastTop(geometry)));
}

/** Where the scroll bar stands for a place in the list. */
export function toScrollTop(geometry: Geometry, top: number): number {
  const last = lastTop(geometry);
  return last === 0 ? 0 : (clampTop(geometry, top) / last) * (scrollHeight(geometry) - geometry.viewport);
}

/** The place in the list for a scroll bar that was dragged. */
export function fromScrollTop(geometry: Geometry, scrollTop: number): number {
  const range = scrollHeight(geometry) - geometry.viewport;
  return range <= 0 ? 0 : clampTop(geometry, (scrollTop / range) * lastTop(geometry));
}

/**
 * The new place after the browser scrolled. A short way is meant in pixels of the list, so that no row is passed over; a
 * long one, and the ends, in proportion.
 */
export function afterScroll(geometry: Geometry, before: Place, scrollTop: number): number {
  const way = scrollTop - before.scrollTop;
  const range = scrollHeight(geometry) - geometry.viewport;
  const atEnd = scrollTop <= 0 || scrollTop >= range - 1;
  if (atEnd || Math.abs(way) >= geometry.viewport) return fromScrollTop(geometry, scrollTop);
  return clampTop(geometry, before.top + way);
}

/** The rows that are at least partly in sight: from `first` up to, but without, `last`. */
export function inSight({ rows, rowHeight, viewport }: Geometry, top: number): { first: number; last: number } {
  const first = Math.min(rows, Math.max(0, Math.floor(top / rowHeight)));
  return { first, last: Math.min(rows, Math.ceil((top + viewport) / rowHeight)) };
}

/** The place nearest to `top` from which a whole row is seen. */
export function reveal(geometry: Geometry, top: number, row: number): number {
  const at = row * geometry.rowHeight;
  const lowest = at + geometry.rowHeight - geometry.viewport;
  return clampTop(geometry, Math.max(lowest, Math.min(top, at)));
}

/** The row a key leads to; null for other keys. */
export function rowAfterKey(key: string, row: number, { rows, rowHeight, viewport }: Geometry): number | null {
  const page = Math.max(1, Math.floor(viewport / rowHeight) - 1);
  const to: Record<string, number> = { ArrowDown: row + 1, ArrowUp: row - 1, PageDown: row + page, PageUp: row - page, Home: 0, End: rows - 1 };
  const wanted = to[key];
  return wanted === undefined || rows === 0 ? null : Math.max(0, Math.min(wanted, rows - 1));
}

/** The blocks that rows are in, those in sight first and then their neighbours. */
export function blocksOf(first: number, last: number, size: number, rows: number): number[] {
  const [from, to] = [Math.floor(first / size), Math.floor(Math.max(first, last - 1) / size)];
  const blocks = Array.from({ length: to - from + 1 }, (_, index) => from + index);
  return [...blocks, to + 1, from - 1].filter((block) => block >= 0 && block * size < rows);
}
