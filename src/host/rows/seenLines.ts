/** Lines from `first` to `last`, counted from 0, both inside. */
export interface LineSpan {
  first: number;
  last: number;
}

/**
 * The lines of a document that lenses were made for. A lens takes a line of its own, so those that were once shown stay
 * when one scrolls on: coming back, nothing jumps. After many they are let go.
 */
export class SeenLines {
  private spans: LineSpan[] = [];
  private readonly margin: number;
  private readonly most: number;

  constructor(margin = 40, most = 2000) {
    this.margin = margin;
    this.most = most;
  }

  /** True when these lines have been seen. */
  covers(visible: readonly LineSpan[], lineCount: number): boolean {
    return visible.every(({ first, last }) => this.spans.some((span) => span.first <= first && span.last >= Math.min(last, lineCount - 1)));
  }

  /** All that was seen, these included, in order and without overlap. */
  see(visible: readonly LineSpan[], lineCount: number): readonly LineSpan[] {
    if (this.covers(visible, lineCount)) return this.spans;
    const wide = widen(visible, this.margin, lineCount);
    const all = joinSpans([...this.spans, ...wide]);
    this.spans = all.reduce((sum, { first, last }) => sum + last - first + 1, 0) > this.most ? joinSpans(wide) : all;
    return this.spans;
  }

  /** Lines came or went: what was seen is no longer where it was. */
  forget(): void {
    this.spans = [];
  }
}

/** The spans with a margin on both sides, inside the document. */
export function widen(spans: readonly LineSpan[], margin: number, lineCount: number): LineSpan[] {
  return spans.map(({ first, last }) => ({ first: Math.max(0, first - margin), last: Math.min(lineCount - 1, last + margin) })).filter(({ first, last }) => first <= last);
}

/** Spans in order, those that touch as one. */
export function joinSpans(spans: readonly LineSpan[]): LineSpan[] {
  const joined: LineSpan[] = [];
  for (const { first, last } of [...spans].sort((a, b) => a.first - b.first)) {
    const before = joined.at(-1);
    if (before !== undefined && first <= before.last + 1) before.last = Math.max(before.last, last);
    else joined.push({ first, last });
  }
  return joined;
}
