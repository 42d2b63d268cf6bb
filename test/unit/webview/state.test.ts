import assert from "node:assert/strict";
import { test } from "node:test";
import { emptySelection, type DriftFilm, type DriftSnapshot, type FilmCell, type FromWebview } from "../../../src/protocol/webview.ts";
import { Actions } from "../../../webview/actions.ts";
import { emptyMemory, type PageMemory } from "../../../webview/endpoint.ts";
import { moveFocus } from "../../../webview/navigation.ts";
import { applyMessage, initialState, Store, worstToken } from "../../../webview/state.ts";

const cell = (change: number | null, coloured = false): FilmCell => ({ logprob: -1, change, rank: 1, entropy: 0, tokenClass: coloured ? "lost" : "kept", coloured, top: [] });

const film: DriftFilm = {
  row: 3,
  line: 4,
  prompt: "p",
  reference: "abc",
  from: 0,
  total: 3,
  tokens: ["a", "b", "c"].map((display) => ({ display, segment: null, continues: false })),
  rows: [
    { checkpoint: 0, cells: [cell(null), cell(null), cell(null)], note: null, check: "passed", generated: null, diverges: null },
    { checkpoint: 1, cells: null, note: "not scored", check: "not-run", generated: null, diverges: null },
    { checkpoint: 2, cells: [cell(-0.1), cell(-4, true), cell(-2, true)], note: null, check: "failed", generated: "x", diverges: 0 },
  ],
};

const snapshot = (change: Partial<DriftSnapshot> = {}): DriftSnapshot => ({
  empty: null, turn: 0, selection: emptySelection, choices: { pipelines: [], skills: [], splits: [], references: [] }, checkpoints: [], prompts: [], notes: [], film, live: null, chart: null, busy: false, ...change,
});

test("a snapshot replaces everything; a patch only the fields it names", () => {
  const first = applyMessage(initialState, { type: "snapshot", seq: 7, state: snapshot() });
  assert.equal(first?.seq, 7);
  const second = applyMessage(first!, { type: "patch", seq: 8, patch: { busy: true } });
  assert.equal(second?.data?.busy, true);
  assert.equal(second?.data?.film, film);
});

test("a gap in the numbers, or a patch before the first snapshot, asks for a snapshot", () => {
  assert.equal(applyMessage(initialState, { type: "patch", seq: 0, patch: {} }), null);
  const first = applyMessage(initialState, { type: "snapshot", seq: 1, state: snapshot() })!;
  assert.equal(applyMessage(first, { type: "patch", seq: 3, patch: {} }), null);
  assert.equal(applyMessage(first, { type: "patch", seq: 1, patch: {} }), null);
});

test("the focus starts on the token that fell most, and stays while the film is the same", () => {
  assert.deepEqual(worstToken(snapshot()), { row: 2, token: 1 });
  const first = applyMessage(initialState, { type: "snapshot", seq: 0, state: snapshot() })!;
  const moved = { ...first, focus: { row: 0, token: 2 } };
  assert.deepEqual(applyMessage(moved, { type: "patch", seq: 1, patch: { film: { ...film } } })?.focus, { row: 0, token: 2 });
  assert.deepEqual(applyMessage(moved, { type: "patch", seq: 1, patch: { film: { ...film, row: 9 } } })?.focus, { row: 2, token: 1 });
});

test("arrows stay inside, and pass over checkpoints that were not scored", () => {
  const at = (row: number, token: number) => ({ row, token });
  assert.deepEqual(moveFocus(film, at(0, 0), "ArrowLeft", false), at(0, 0));
  assert.deepEqual(moveFocus(film, at(0, 2), "ArrowRight", false), at(0, 2));
  assert.deepEqual(moveFocus(film, at(0, 1), "ArrowDown", false), at(2, 1));
  assert.deepEqual(moveFocus(film, at(2, 1), "ArrowUp", false), at(0, 1));
  assert.deepEqual(moveFocus(film, at(2, 1), "ArrowDown", false), at(2, 1));
  assert.deepEqual(moveFocus(film, at(2, 1), "Home", true), at(0, 0));
  assert.deepEqual(moveFocus(film, at(0, 0), "End", true), at(2, 2));
  assert.equal(moveFocus(film, at(0, 0), "x", false), null);
});

test("n and p go through the changed tokens in reading order", () => {
  const at = (row: number, token: number) => ({ row, token });
  assert.deepEqual(moveFocus(film, at(0, 0), "n", false), at(2, 1));
  assert.deepEqual(moveFocus(film, at(2, 1), "n", false), at(2, 2));
  assert.deepEqual(moveFocus(film, at(2, 2), "n", false), at(2, 2));
  assert.deepEqual(moveFocus(film, at(2, 2), "p", false), at(2, 1));
});

test("the store tells its listeners, and stops when they leave", () => {
  const store = new Store();
  let calls = 0;
  const leave = store.subscribe(() => calls++);
  store.set({ ...initialState, seq: 1 });
  leave();
  store.set({ ...initialState, seq: 2 });
  assert.equal(calls, 1);
  assert.equal(store.state.seq, 2);
});

test("an answer to an earlier choice does not take back a later one", () => {
  const posted: FromWebview[] = [];
  const store = new Store();
  const actions = new Actions({ post: (message) => void posted.push(message), onMessage: () => {}, remembered: () => emptyMemory, remember: () => {} }, store);
  store.set(applyMessage(store.state, { type: "snapshot", seq: 1, state: snapshot() })!);
  actions.select({ row: 4 });
  actions.select({ row: 5 });
  assert.deepEqual(posted.map((message) => (message.type === "select" ? [message.turn, message.selection.row] : null)), [[1, 4], [2, 5]]);
  store.set(applyMessage(store.state, { type: "patch", seq: 2, patch: { turn: 1, selection: { ...emptySelection, row: 4 } } })!);
  assert.equal(store.state.data?.selection.row, 5);
  store.set(applyMessage(store.state, { type: "patch", seq: 3, patch: { turn: 2, selection: { ...emptySelection, row: 6 } } })!);
  assert.equal(store.state.data?.selection.row, 6, "the host has the last word on its own answer");
});

test("a checkpoint that is looked at shows the token that fell most under it", () => {
  const store = new Store();
  const actions = new Actions({ post: () => {}, onMessage: () => {}, remembered: () => emptyMemory, remember: () => {} }, store);
  store.set(applyMessage(store.state, { type: "snapshot", seq: 1, state: snapshot() })!);
  actions.focusToken({ row: 0, token: 2 });
  actions.lookAt(2);
  assert.deepEqual(store.state.focus, { row: 2, token: 1 });
  actions.lookAt(0);
  assert.deepEqual(store.state.focus, { row: 0, token: 0 }, "the reference has no fall: its first token");
  actions.lookAt(7);
  assert.deepEqual(store.state.focus, { row: 0, token: 0 }, "a checkpoint that the film does not show");
});

test("how the page is looked at is remembered beside what was chosen, and comes back", () => {
  let memory: PageMemory = emptyMemory;
  const endpoint = { post: () => {}, onMessage: () => {}, remembered: () => memory, remember: (change: Partial<PageMemory>) => void (memory = { ...memory, ...change }) };
  const actions = new Actions(endpoint, new Store());
  actions.select({ row: 4 });
  actions.view({ chartOpen: true });
  actions.view({ order: "file" });
  assert.deepEqual([memory.selection?.row, memory.chartOpen, memory.order], [4, true, "file"]);
  const later = new Store();
  new Actions(endpoint, later).ready();
  assert.deepEqual(later.state.view, { chartOpen: true, order: "file" });
});

test("rows scored live are no choice among the recorded: looking at them and leaving is asked for, the selection stays", () => {
  const posted: FromWebview[] = [];
  const store = new Store();
  const actions = new Actions({ post: (message) => void posted.push(message), onMessage: () => {}, remembered: () => emptyMemory, remember: () => {} }, store);
  const selection = { ...emptySelection, skill: "math", row: 5 };
  store.set(applyMessage(store.state, { type: "snapshot", seq: 1, state: snapshot({ selection }) })!);
  actions.leaveLive();
  assert.deepEqual(posted, [], "nothing is left that is not there");
  actions.focusToken({ row: 0, token: 2 });
  const live = { file: "data/a.jsonl", line: 4, edited: true, prompt: "p", checkpoints: ["M0"], row: 3, progress: null };
  store.set(applyMessage(store.state, { type: "patch", seq: 2, patch: { live } })!);
  assert.deepEqual(store.state.focus, { row: 2, token: 1 }, "another film of the same size: the focus goes to its worst token");
  actions.select({ token: 2 });
  actions.select({ row: 1 });
  actions.leaveLive();
  assert.deepEqual(posted, [{ type: "lookLive", row: 3, token: 2 }, { type: "lookLive", row: 1, token: null }, { type: "leaveLive" }]);
  assert.deepEqual([store.state.data?.selection, store.state.choice], [selection, null]);
});
