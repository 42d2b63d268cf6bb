// The Arena: the real page in a real browser, with the real session of the host behind it, under three themes. What it shows
// is made up; only VS Code's message channel between the two is left out.
import assert from "node:assert/strict";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { build } from "../../../.config/esbuild.mjs";
import { say } from "../../../.config/scripts/progress.mjs";
import { root } from "../../../.config/scripts/setup.mjs";
import { startBrowser } from "../../../.config/scripts/vscode-server.mjs";
import { ArenaSession } from "../../../src/host/arena/arenaSession.ts";
import { setWords } from "../../../src/util/l10n.ts";
import { silentLog } from "../../../src/util/log.ts";
import { madeUpArena } from "../../unit/domain/arena/madeUpArena.ts";
import { arenaView } from "../../unit/host/arena/arenaView.ts";
import { fresh } from "../workbench.mjs";
import { accessible } from "./big.mjs";
import { pageThemes } from "./pageThemes.mjs";
import { pictureTaker } from "./pictures.mjs";

const running = { stages: 126, done: 97, running: [{ seed: 2, stage: "distill-forward-kl", step: 40, total: 100 }], failed: [{ seed: 1, stage: "gone", why: "The training ran out of memory." }], held: true };

/** `theme`: takes the pictures of this one. Without, as in the tests, all are looked at and no picture is kept. */
export async function arenaStory(theme = null) {
  const picture = pictureTaker(theme);
  const dir = fresh(theme === null ? "arena" : `arena-${theme}`);
  await build({ only: "arenaPage", outdir: dir });
  const script = join(dir, "arena.js");
  for (const shown of theme === null ? Object.keys(pageThemes) : [theme]) {
    await withPage({ script, theme: shown, progress: running }, async (page, told) => {
      if (shown === "dark") await byKeyboard(page, told);
      await accessible(`arena page, ${shown}`, page);
      for (const [name, element] of [["arena", "plane"], ["arena-tests", "tests"], ["arena-skills", "skills"], ["arena-merging", "sweep"], ["arena-routing", "confusion"]]) {
        await page.locator(`seesaw-arena-${element}`).first().evaluate((one, top) => (top ? globalThis.scrollTo(0, 0) : one.closest("section").scrollIntoView()), element === "plane");
        // What was out of sight is painted a moment later.
        if (theme !== null) await page.waitForTimeout(500);
        await picture(page, name);
      }
    });
  }
  if (theme === null) await withPage({ script, theme: "dark", progress: { stages: 126, done: 0, running: [], failed: [], held: false }, trusted: false }, untouched);
  if (theme === null) await inChinese(script);
  rmSync(dir, { recursive: true, force: true });
}

/** Every chart, its table and its buttons without a mouse; and what the page says of a running arena. */
async function byKeyboard(page, told) {
  assert.match(await page.locator("[role='status']").first().innerText(), /^97 of 126 stages done, running distill-forward-kl \(seed 2, step 40 of 100\)\.$/);
  assert.ok(await page.getByRole("button", { name: "Go On with the Arena" }).isDisabled(), "what runs is not started again");
  await page.getByRole("button", { name: "Stop Arena" }).press("Enter");
  assert.match(await page.locator(".failed").innerText(), /gone, seed 1: The training ran out of memory\./);

  const names = page.locator("seesaw-arena-plane .name");
  assert.equal(await names.count(), 15, "the chain and 14 remedies; the further points of the curve have their own picture");
  const boxes = await names.evaluateAll((all) => all.map((one) => [one.offsetLeft, one.offsetTop, one.offsetWidth, one.offsetHeight]));
  const overlapping = boxes.flatMap(([x, y, w, h], i) => boxes.slice(i + 1).filter(([a, b, c, d]) => x < a + c && a < x + w && y < b + d && b < y + h));
  assert.deepEqual(overlapping, [], "no name covers another");
  await page.locator("seesaw-arena-plane .name[tabindex='0']").focus();
  await page.keyboard.press("ArrowRight");
  assert.match(await page.locator("seesaw-arena-plane .readout").innerText(), /^replay 5 % · Old skills \d.*new skill 100\.0 %.*Seeds: 0: \d+ % \/ 100 %, 1: .*, 2: .*Its own stages trained on 421,000 tokens\.$/);
  await page.keyboard.press("End");
  assert.match(await page.locator("seesaw-arena-plane .readout").innerText(), /^joint training · /);
  for (const canvas of await page.locator("canvas").all()) {
    assert.ok(await canvas.evaluate((one) => one.getContext("2d").getImageData(0, 0, one.width, one.height).data.some((value) => value > 0)), "a chart is empty");
  }

  const row = page.locator("seesaw-arena-tests tbody tr", { hasText: "replay 10 %" }).first();
  assert.match(await row.innerText(), /gain/);
  assert.equal(await page.locator("seesaw-arena-skills tbody tr").count(), 18);
  assert.deepEqual(await page.locator("seesaw-arena-sweep thead th").allInnerTexts(), ["skill", "weight 0.3", "weight 0.5", "weight 0.7", "weight 1"]);
  assert.equal(await page.locator("seesaw-arena-confusion").count(), 2);
  assert.match(await page.locator("seesaw-arena-questions tbody tr", { has: page.getByRole("rowheader", { name: "experts and router", exact: true }) }).innerText(), /95\.3 % 9\d\.\d to 9\d\.\d ID\s+89\.1 % 8\d\.\d to 9\d\.\d OOD/);
  assert.match(await page.locator("seesaw-arena-confusion .sets tbody tr").first().innerText(), /^ID\s+256\s+95\.3 % [\d.]+ to [\d.]+\s+95\.3 % [\d.]+ to [\d.]+\s+−4\.7 −[\d.]+ to −[\d.]+$/);
  const shade = await page.locator("seesaw-arena-confusion td.own").first().evaluate((cell) => getComputedStyle(cell).getPropertyValue("--share"));
  assert.ok(Number(shade) > 0.9, shade);
  await page.getByRole("button", { name: "Export HTML" }).press("Enter");
  await page.getByRole("button", { name: "Export as CSV" }).last().press("Enter");
  for (const section of ["Against the chain", "What the routers picked"]) await page.locator("section", { has: page.getByRole("heading", { name: section }) }).getByRole("button", { name: "Export as CSV" }).press("Enter");
  for (const deadline = Date.now() + 5000; told.length < 5 && Date.now() < deadline; ) await page.waitForTimeout(20);
  assert.deepEqual(told, ["stop", "html", "cost", "tests", "routing"]);
  say("arena: plane, tables, curves, confusion, and its files by keyboard");
}

/** Nothing but names is left in English. */
async function inChinese(script) {
  const words = JSON.parse(readFileSync(join(root, "l10n", "bundle.l10n.zh-cn.json"), "utf8"));
  const names = /oracle SFT|task-arithmetic|average|ties|(forward|reverse) KL|distill-forward-kl|specialist-tool|grpo & <others>|exception|The loss left all bounds at step 7\.|The training ran out of memory\.|seesaw\.arena\.jobs|arena|gone|math|search|tool|format|base|HTML|FLOPs|Holm/g;
  setWords(words);
  try {
    await withPage({ script, theme: "light", progress: { ...running, running: [], held: false }, words }, async (page) => {
      const said = await page.evaluate(() => {
        const found = [document.querySelector("seesaw-arena-app").shadowRoot];
        for (const root of found) found.push(...[...root.querySelectorAll("*")].flatMap(({ shadowRoot }) => shadowRoot ?? []));
        return found.flatMap((root) => [...[...root.children].map((one) => one.innerText ?? ""), ...[...root.querySelectorAll("[title], [aria-label]")].flatMap((one) => [one.title, one.getAttribute("aria-label") ?? ""])]).join("\n");
      });
      assert.match(said, /路由器的选择[^]*自身专家/, "the tables are looked at too");
      assert.match(said, /四个问题[^]*与链比较|与链比较[^]*四个问题/);
      assert.deepEqual(said.split("\n").filter((line) => /[a-z]{4,}/i.test(line.replaceAll(names, ""))), []);
    });
    say("arena: nothing but names in English where the person reads Chinese");
  } finally {
    setWords(undefined);
  }
}

/** Before anything ran, where nothing may be started. */
async function untouched(page) {
  assert.equal(await page.getByRole("button", { name: /Arena$/ }).count(), 0);
  assert.match(await page.locator("main").innerText(), /not trusted: the arena is shown, and nothing can be started/);
  assert.doesNotMatch(await page.locator("main").innerText(), /at a time/);
  assert.match(await page.locator("section").innerText(), /No system has finished yet[\s\S]*Remedies: replay-10, joint\./);
}

async function withPage({ script, theme, progress, trusted = true, words }, tell) {
  const { browser, page } = await startBrowser({ width: 1200, height: 900 });
  const errors = [];
  const told = [];
  page.on("pageerror", (error) => errors.push(error.message));
  const view = arenaView();
  const desk = { progress: async () => progress, jobs: async (_pipeline, wanted) => ({ count: wanted, why: "setting" }), result: async () => madeUpArena(), watch: async () => () => {}, hasOutput: () => true };
  const host = { views: () => [view], desk: async () => desk, trusted: () => trusted, run: async () => true, stop: async () => Boolean(told.push("stop")), wantedJobs: () => 1, export: async (_view, _result, what) => void told.push(what), openPipeline() {}, openOutput: async () => {}, showLog() {}, log: { ...silentLog, error: (text) => errors.push(text) } };
  const session = new ArenaSession(host, (message) => void page.evaluate((data) => void globalThis.dispatchEvent(new MessageEvent("message", { data })), message).catch(() => {}));
  try {
    await page.exposeFunction("toHost", (message) => (message.type === "error" ? errors.push(message.message) : session.handle(message)));
    const { class: name, ...colours } = pageThemes[theme];
    const variables = Object.entries(colours).map(([variable, value]) => `--vscode-${variable}: ${value};`).join(" ");
    await page.setContent(`<!doctype html><html lang="en"><head><title>Arena</title><style>:root { ${variables} --vscode-font-family: sans-serif; --vscode-font-size: 13px; } html, body { margin: 0; height: 100%; }</style></head><body class="${name}">${words === undefined ? "" : `<script type="application/json" id="seesaw-words">${JSON.stringify(words).replaceAll("<", "\\u003c")}</script>`}<seesaw-arena-app></seesaw-arena-app></body></html>`);
    await page.evaluate(() => {
      globalThis.acquireVsCodeApi = () => ({ postMessage: (message) => void globalThis.toHost(message), getState: () => undefined, setState: () => {} });
    });
    await page.addScriptTag({ type: "module", content: readFileSync(script, "utf8") });
    await page.locator("seesaw-arena-app[data-ready]").waitFor({ timeout: 60_000 });
    await tell(page, told);
    assert.deepEqual(errors, []);
  } finally {
    session.close();
    await browser.close();
  }
}
