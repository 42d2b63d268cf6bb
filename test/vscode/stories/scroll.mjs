// Scrolling without a dropped row: the real pages in a real browser, with the real sessions of the host behind them, on a dataset
// of a million rows and on Token Drift's list. Only VS Code's message channel between the two is left out.
import assert from "node:assert/strict";
import { closeSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { build } from "../../../.config/esbuild.mjs";
import { say } from "../../../.config/scripts/progress.mjs";
import { startBrowser } from "../../../.config/scripts/vscode-server.mjs";
import { DatasetSession } from "../../../src/host/datasets/datasetSession.ts";
import { DriftSession } from "../../../src/host/drift/driftSession.ts";
import { openDataset } from "../../../src/storage/datasets/openDataset.ts";
import { silentLog } from "../../../src/util/log.ts";
import { makeTrace } from "../../unit/domain/makeTrace.ts";
import { makeRun, makeView } from "../../unit/host/views.ts";
import { fresh } from "../workbench.mjs";

const million = 1_000_000;
const rowHeight = 22;

export async function scrollStory() {
  const dir = fresh("scroll");
  for (const only of ["datasetsPage", "webview"]) await build({ only, outdir: dir });
  await datasetRows(dir);
  await promptRows(dir);
  rmSync(dir, { recursive: true, force: true });
}

async function datasetRows(dir) {
  const path = join(dir, "large.jsonl");
  const fd = openSync(path, "w");
  for (let row = 0; row < million; ) {
    let text = "";
    for (const end = row + 10_000; row < end; row++) text += `{"text":"row number ${row}"}\n`;
    writeSync(fd, text);
  }
  closeSync(fd);
  const host = { views: () => [], traces: async () => assert.fail("nothing was scored"), ledgers: async () => ({ records: [], problems: [] }), open: (file) => openDataset(file, { spillDir: dir }), log: silentLog, showLog() {}, openLine() {}, showDrift() {} };
  const open = (post) => new DatasetSession(path, host, post);
  await withPage({ script: join(dir, "datasets.js"), element: "seesaw-dataset-app", open }, async (page) => {
    await page.waitForFunction((rows) => globalThis.listOf("seesaw-row-grid", ".box").getAttribute("aria-rowcount") === String(rows + 1), million, { timeout: 60_000 });
    await page.evaluate(watch, { host: "seesaw-row-grid", box: ".box", rowHeight, header: rowHeight });
    const check = (what) => settled(page, what, (text) => Number(/row number (\d+)/.exec(text)?.[1]));
    await wheel(page, 40, 330);
    await check("by the wheel");
    await drag(page, [0.1, 0.5, 0.51, 0.9, 1, 0.3]);
    const middle = await check("after a drag");
    assert.ok(Math.abs(middle / million - 0.3) < 0.01, `a drag to 30 % stands at row ${middle}`);
    await wheel(page, 40, -330);
    const above = await check("by the wheel, upwards");
    assert.ok(above < middle && above > middle - 2000, `forty turns of the wheel lead from ${middle} to ${above}`);
    await drag(page, [1]);
    assert.ok((await check("at the end")) > million - 100);
    say(`scroll: a million rows by wheel and drag, none dropped; ${await frames(page)} frames looked at`);
  });
}

async function promptRows(dir) {
  const scores = (step) => makeTrace(Array.from({ length: 2000 }, (_, row) => ({ hash: `h${row}`, logprob: [-((row * step) % 1999) / 100], correct: row % 3 !== 0 })));
  const traces = { t0: scores(3), t1: scores(5), t2: scores(7) };
  const view = makeView({ runs: [makeRun("search", { status: "done" }), makeRun("math", { status: "done" })], traces: { M0: { "math.id": "t0" }, M1: { "math.id": "t1" }, M2: { "math.id": "t2" } } });
  const store = { open: (path) => ({ ...traces[path], path, close() {} }) };
  const host = { views: () => [view], traces: async () => store, log: silentLog, trusted: () => true, run() {}, openLine() {}, cancelLive() {} };
  let order = [];
  const open = (post) =>
    new DriftSession(host, (message) => {
      order = (message.state ?? message.patch).prompts ?? order;
      post(message);
    });
  await withPage({ script: join(dir, "webview.js"), element: "seesaw-drift-app", open }, async (page) => {
    await page.waitForFunction(() => globalThis.listOf("seesaw-prompt-list", ".list")?.querySelector(".row") != null, null, { timeout: 60_000 });
    assert.equal(order.length, 2000);
    const place = new Map(order.map(({ prompt }, index) => [prompt, index]));
    await page.evaluate(watch, { host: "seesaw-prompt-list", box: ".list", rowHeight, header: 0 });
    const check = (what) => settled(page, what, (text) => place.get(/prompt h\d+/.exec(text)?.[0]));
    await wheel(page, 40, 330);
    await check("by the wheel");
    await drag(page, [0.2, 0.7, 1, 0.5]);
    const middle = await check("after a drag");
    assert.ok(Math.abs(middle / 2000 - 0.5) < 0.05, `a drag to the middle stands at prompt ${middle}`);
    await wheel(page, 20, -330);
    assert.ok((await check("by the wheel, upwards")) < middle);
    say(`scroll: 2,000 prompts by wheel and drag, none dropped; ${await frames(page)} frames looked at`);
  });
}

/** The page without VS Code: what it posts goes to the session, what the session posts goes to the page. */
async function withPage({ script, element, open }, tell) {
  const { browser, page } = await startBrowser({ width: 900, height: 700 });
  const errors = [];
  page.on("pageerror", (error) => errors.push(error.message));
  const session = open((message) => void page.evaluate((data) => void globalThis.dispatchEvent(new MessageEvent("message", { data })), message).catch(() => {}));
  try {
    await page.exposeFunction("toHost", (message) => session.handle(message));
    await page.setContent(`<!doctype html><style>html, body { margin: 0; height: 100%; }</style><${element}></${element}>`);
    await page.evaluate(() => {
      globalThis.acquireVsCodeApi = () => ({ postMessage: (message) => void globalThis.toHost(message), getState: () => undefined, setState: () => {} });
      globalThis.listOf = (host, box) => {
        const find = (root) => root.querySelector(host) ?? [...root.querySelectorAll("*")].map((one) => one.shadowRoot && find(one.shadowRoot)).find(Boolean) ?? null;
        return find(document)?.shadowRoot.querySelector(box) ?? null;
      };
    });
    await page.addScriptTag({ type: "module", content: readFileSync(script, "utf8") });
    await page.waitForFunction((name) => customElements.get(name) !== undefined, element);
    await tell(page);
    assert.deepEqual(errors, []);
  } finally {
    session.dispose?.();
    session.close?.();
    await browser.close();
  }
}

/** In the page: looks at every frame which places of the list have no row at all. */
function watch({ host, box, rowHeight: height, header }) {
  const list = globalThis.listOf(host, box);
  const seen = { frames: 0, gaps: [] };
  globalThis.scrolled = { list, seen };
  globalThis.rowsInSight = () => {
    const { top, height: tall } = list.getBoundingClientRect();
    const rows = [...list.querySelectorAll(".row:not(.head)")].map((row) => ({ at: row.getBoundingClientRect().top, text: row.innerText })).sort((a, b) => a.at - b.at);
    return { top: top + header, bottom: top + tall, rows: rows.filter(({ at }) => at + height > top + header && at < top + tall) };
  };
  const look = () => {
    const { top, bottom, rows } = globalThis.rowsInSight();
    seen.frames++;
    const torn = rows.some(({ at }, index) => index > 0 && Math.abs(at - rows[index - 1].at - height) > 1);
    if (rows.length === 0 || rows[0].at > top + 1 || rows.at(-1).at + height < bottom - 1 || torn) seen.gaps.push(`frame ${seen.frames}: ${rows.length} rows from ${rows[0]?.at - top} to ${bottom - rows.at(-1)?.at}`);
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}

async function wheel(page, turns, pixels) {
  const box = await (await page.evaluateHandle(() => globalThis.scrolled.list)).asElement().boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  for (let turn = 0; turn < turns; turn++) await page.mouse.wheel(0, pixels);
}

/** A browser without a screen draws no scroll bar: what dragging one does is done to the list, a place per frame. */
async function drag(page, shares) {
  await page.evaluate(async (places) => {
    const { list } = globalThis.scrolled;
    for (const share of places) {
      list.scrollTop = share * (list.scrollHeight - list.clientHeight);
      await new Promise((drawn) => requestAnimationFrame(drawn));
    }
  }, shares);
}

/** When all is read, every place has its own row, in order; none was without a row in any frame. Returns the first row's number. */
async function settled(page, what, numberOf) {
  let numbers = [];
  let shown = null;
  for (const deadline = Date.now() + 15_000; Date.now() < deadline; await new Promise((wake) => setTimeout(wake, 50))) {
    const before = JSON.stringify(shown);
    shown = await page.evaluate(() => globalThis.rowsInSight());
    numbers = shown.rows.map(({ text }) => numberOf(text));
    if (JSON.stringify(shown) === before && numbers.length > 0 && numbers.every((number) => Number.isInteger(number))) break;
  }
  const from = numbers[0];
  assert.deepEqual(numbers, Array.from(numbers, (_, index) => from + index), `${what}: every place has its own row`);
  assert.ok(numbers.length >= Math.floor((shown.bottom - shown.top) / rowHeight), `${what}: ${numbers.length} rows in sight`);
  assert.deepEqual(await page.evaluate(() => globalThis.scrolled.seen.gaps), [], `${what}: a place had no row`);
  return from;
}

const frames = (page) => page.evaluate(() => globalThis.scrolled.seen.frames);
