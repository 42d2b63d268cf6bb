import assert from "node:assert/strict";
import { test } from "node:test";
import { blockRows, type DatasetLine, type DatasetState, type FromDatasetPage, type ToDatasetPage } from "../../../src/protocol/datasets.ts";
import { PageStore, type Remembered } from "../../../webview/datasets/pageStore.ts";
import { afterScroll, blocksOf, fromScrollTop, inSight, lastTop, reveal, rowAfterKey, scrollHeight, tallest, toScrollTop, type Geometry } from "../../../webview/datasets/virtualScroll.ts";

const short: Geometry = { rows: 1000, rowHeight: 22, viewport: 440 };
const long: Geometry = { rows: 50_000_000, rowHeight: 22, viewport: 440 };

test("a list that a browser can show is scrolled as it is", () => {
  assert.equal(scrollHeight(short), 22_000);
  for (const top of [0, 1, 777, lastTop(short)]) {
    assert.equal(toScrollTop(short, top), top);
    assert.equal(fromScrollTop(short, top), top);
  }
  assert.equal(afterScroll(short, { top: 100, scrollTop: 100 }, 9000), 9000);
});

test("a longer one is never taller than a browser allows, and both its ends are reached", () => {
  assert.equal(scrollHeight(long), tallest);
  const range = tallest - long.viewport;
  assert.equal(fromScrollTop(long, 0), 0);
  assert.equal(fromScrollTop(long, range), lastTop(long));
  assert.equal(toScrollTop(long, lastTop(long)), range);
  assert.deepEqual(inSight(long, lastTop(long)), { first: long.rows - 20, last: long.rows });
  for (const top of [0, 12_345_678, 999_999_999]) assert.ok(Math.abs(fromScrollTop(long, toScrollTop(long, top)) - top) < 1e-3);
});

test("small steps pass over no row, however long the list; a dragged bar goes in proportion", () => {
  let place = { top: 500_000_000, scrollTop: toScrollTop(long, 500_000_000) };
  const seen = new Set<number>();
  for (let step = 0; step < 200; step++) {
    const { first, last } = inSight(long, place.top);
    for (let row = first; row < last; row++) seen.add(row);
    place = { top: afterScroll(long, place, place.scrollTop + 100), scrollTop: place.scrollTop + 100 };
  }
  const rows = [...seen].sort((a, b) => a - b);
  assert.equal(rows.length, rows.at(-1)! - rows[0]! + 1, "rows were passed over");
  assert.equal(afterScroll(long, { top: 0, scrollTop: 0 }, tallest / 2), fromScrollTop(long, tallest / 2));
  assert.equal(afterScroll(long, { top: 5000, scrollTop: 50 }, 0), 0, "the bar at its end is the list's end");
  assert.equal(afterScroll(long, { top: 5000, scrollTop: tallest - 500 }, tallest - 440), lastTop(long));
});

test("the rows in sight, also where the list is shorter than the view", () => {
  assert.deepEqual(inSight(short, 0), { first: 0, last: 20 });
  assert.deepEqual(inSight(short, 11), { first: 0, last: 21 });
  assert.deepEqual(inSight({ ...short, rows: 3 }, 0), { first: 0, last: 3 });
  assert.deepEqual(inSight({ ...short, rows: 0 }, 0), { first: 0, last: 0 });
  assert.equal(toScrollTop({ ...short, rows: 3 }, 50), 0);
});

test("a row is brought into sight by the shortest way", () => {
  assert.equal(reveal(short, 0, 10), 0);
  assert.equal(reveal(short, 0, 20), 22);
  assert.equal(reveal(short, 1000, 5), 110);
  assert.equal(reveal(short, 0, 999), lastTop(short));
});

test("keys stay inside the list", () => {
  assert.deepEqual(["ArrowDown", "ArrowUp", "PageDown", "PageUp", "Home", "End", "x"].map((key) => rowAfterKey(key, 5, short)), [6, 4, 24, 0, 0, 999, null]);
  assert.equal(rowAfterKey("ArrowDown", 999, short), 999);
  assert.equal(rowAfterKey("End", 0, { ...short, rows: 0 }), null);
});

test("blocks: those in sight first, then their neighbours, never beyond the end", () => {
  assert.deepEqual(blocksOf(0, 20, 64, 1000), [0, 1]);
  assert.deepEqual(blocksOf(60, 80, 64, 1000), [0, 1, 2]);
  assert.deepEqual(blocksOf(990, 1000, 64, 1000), [15, 14]);
});

const state = (change: Partial<DatasetState> = {}): DatasetState => ({ version: 1, name: "a.jsonl", kind: "lines", rows: 10_000, complete: true, done: 1, total: 1, columns: [], replay: false, notes: [], changed: false, text: true, empty: null, ...change });
const line = (row: number): DatasetLine => ({ row, line: row + 1, preview: `row ${row}`, problem: null, replay: null, probe: null });
const block = (number: number, version = 1): ToDatasetPage => ({ type: "block", version, block: number, lines: Array.from({ length: blockRows }, (_, i) => line(number * blockRows + i)) });

class Page {
  posted: FromDatasetPage[] = [];
  memory: Remembered | null = null;
  receive: (message: ToDatasetPage) => void = () => {};
  readonly store: PageStore;

  constructor(memory: Remembered | null = null) {
    this.store = new PageStore({ post: (message) => void this.posted.push(message), onMessage: (run) => (this.receive = run), remembered: () => memory, remember: (place) => (this.memory = place) });
  }
}

test("blocks are asked for once, kept in bounds, and forgotten when the file is opened anew", () => {
  const page = new Page();
  page.receive({ type: "state", state: state() });
  page.store.want([0, 1]);
  page.store.want([0, 1]);
  assert.deepEqual(page.posted, [{ type: "want", version: 1, blocks: [0, 1] }]);
  for (let number = 0; number < 100; number++) page.receive(block(number));
  assert.equal(page.store.line(0), undefined, "an old block is still kept");
  assert.equal(page.store.line(99 * blockRows + 3)?.preview, `row ${99 * blockRows + 3}`);
  page.receive({ type: "state", state: state({ version: 2 }) });
  assert.equal(page.store.line(99 * blockRows), undefined);
  page.receive(block(3, 1));
  assert.equal(page.store.line(3 * blockRows), undefined, "a block of the old version was taken");
  page.store.want([0, 1]);
  assert.deepEqual(page.posted.at(-1), { type: "want", version: 2, blocks: [0, 1] });
});

test("only the answer to the last search counts; a cancelled one finds nothing", () => {
  const page = new Page();
  page.receive({ type: "state", state: state() });
  page.store.find("a", false, 1, true);
  page.store.find("ab", false, 1, true);
  page.receive({ type: "found", turn: 1, row: 7, wrapped: false, problem: null });
  assert.equal(page.store.selected, 0);
  page.receive({ type: "finding", turn: 2, share: 0.5 });
  assert.equal(page.store.search.share, 0.5);
  page.receive({ type: "found", turn: 2, row: 9, wrapped: true, problem: null });
  assert.deepEqual([page.store.selected, page.store.search.result], [9, "Went on from the other end"]);
  page.store.find("ab", false, 1);
  assert.deepEqual(page.posted.at(-1), { type: "find", turn: 3, text: "ab", matchCase: false, from: 10, direction: 1 });
  page.store.cancelFind();
  page.receive({ type: "found", turn: 3, row: 50, wrapped: false, problem: null });
  assert.equal(page.store.selected, 9);
  assert.deepEqual(page.posted.at(-1), { type: "cancelFind" });
});

test("the page comes back where it was", () => {
  const page = new Page();
  page.receive({ type: "state", state: state() });
  page.store.select(77);
  page.store.scrolledTo(1234);
  page.store.find("x", true, 1);
  const again = new Page(page.memory);
  assert.deepEqual([again.store.selected, again.store.top, again.store.search.text, again.store.search.matchCase], [77, 1234, "x", true]);
});
