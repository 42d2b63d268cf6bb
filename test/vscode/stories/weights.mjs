// Compare Weights: the real page in a real browser, with the real session of the host and the real runner behind it, under three
// themes. Only VS Code's message channel between the two is left out.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { build } from "../../../.config/esbuild.mjs";
import { say } from "../../../.config/scripts/progress.mjs";
import { root } from "../../../.config/scripts/setup.mjs";
import { startBrowser } from "../../../.config/scripts/vscode-server.mjs";
import { buildChain } from "../../../src/domain/run/chain.ts";
import { WeightsSession } from "../../../src/host/weights/weightsSession.ts";
import { FolderRunStore } from "../../../src/storage/runs/folderRunStore.ts";
import { loadPipeline, requirePipeline } from "../../../src/targets/pipelineFile.ts";
import { FileHasher } from "../../../src/targets/hashFiles.ts";
import { WeightReader } from "../../../src/targets/weightReader.ts";
import { silentLog } from "../../../src/util/log.ts";
import { finishedRun, viewOf } from "../../unit/host/finishedRuns.ts";
import { makeModel } from "../../unit/makeWeights.ts";
import { base, fresh } from "../workbench.mjs";
import { accessible } from "./big.mjs";
import { pageThemes } from "./pageThemes.mjs";
import { pictureTaker } from "./pictures.mjs";

/** `theme`: takes the pictures of this one. Without, as in the tests, all are looked at and no picture is kept. */
export async function weightsStory(python, spaces, theme = null) {
  const picture = pictureTaker(theme);
  const dir = fresh(theme === null ? "weights" : `weights-${theme}`);
  await build({ only: "weightsPage", outdir: dir });
  const folders = { M0: makeModel(join(dir, "m0")), M1: makeModel(join(dir, "m1"), 0.05), M2: makeModel(join(dir, "m2"), 0.04) };
  const math = finishedRun("math", null, { "math.id": [3, 62], "math.ood": [1, 20], "search.id": [0, 0] });
  const view = viewOf([math, finishedRun("search", math, { "math.id": [62, 30], "math.ood": [20, 4], "search.id": [0, 58] })]);
  const project = join(dir, "project");
  mkdirSync(project);
  // Pictures show what is true: the sample's own chain, trained.
  const real = theme === null ? null : await trainedView(await spaces.trainedWorkspace(join(dir, "sample"), python, join(base, "trained")));
  const reader = new WeightReader({ runnerDir: join(root, "runner"), hasher: new FileHasher(null), log: silentLog });
  const saved = [];
  const at = (place) => place && (real === null ? { ...place, path: folders[place.label] } : place);
  const host = {
    views: () => [real ?? view],
    startOptions: async () => ({ trusted: true, python: { explicit: { command: python, setting: "the story" } } }),
    drift: (_root, { from, to, before }, options) => reader.drift(project, { from: at(from), to: at(to), before: at(before) }, options),
    save: async (_view, name, text) => void saved.push([name, text]),
    runStage() {},
    showLog() {},
    log: { ...silentLog, error: (text) => assert.fail(text) },
  };
  for (const shown of theme === null ? Object.keys(pageThemes) : [theme]) {
    await withPage({ script: join(dir, "weights.js"), theme: shown, host }, async (page) => {
      if (theme === null && shown === "dark") await byKeyboard(page, saved);
      await accessible(`weights page, ${shown}`, page);
      await picture(page, "weights");
    });
  }
  rmSync(dir, { recursive: true, force: true });
}

async function trainedView(root) {
  const pipeline = requirePipeline(await loadPipeline(join(root, "seesaw.yaml")));
  const { runs } = await new FolderRunStore().list(root);
  return { ...viewOf([]), uri: { fsPath: pipeline.file }, label: pipeline.name, pipeline, shown: pipeline, chain: buildChain(pipeline, runs) };
}

/** The heat map, the choices and both files, without a mouse. */
async function byKeyboard(page, saved) {
  const cells = page.locator("seesaw-heat-map tbody tr");
  assert.deepEqual(await cells.locator("th").allInnerTexts(), ["layer 0", "layer 1", "embed_tokens", "norm", "whole model"]);
  assert.deepEqual(await page.locator("seesaw-heat-map thead th").allInnerTexts(), ["q_proj", "up_proj", "all"]);
  // Only layer 1 was moved.
  assert.deepEqual((await cells.nth(0).locator("td").allInnerTexts()).slice(0, 2), ["0.0 %", "0.0 %"]);
  const moved = (await cells.nth(1).locator("td").allInnerTexts()).map(parseFloat);
  assert.ok(moved.every((share) => share > 2 && share < 10), moved.join());
  const shade = await cells.nth(1).locator("td").first().evaluate((cell) => getComputedStyle(cell).getPropertyValue("--share"));
  assert.ok(Number(shade) > 0.9, `the most changed cell is shaded by ${shade}`);

  const focused = () => page.evaluate(() => document.querySelector("seesaw-weights-app").shadowRoot.querySelector("seesaw-heat-map").shadowRoot.activeElement?.innerText ?? null);
  await page.locator("seesaw-heat-map td[tabindex='0']").focus();
  await page.keyboard.press("ArrowDown");
  assert.equal(await focused(), (await cells.nth(1).locator("td").first().innerText()));
  assert.match(await page.locator("seesaw-heat-map .readout").innerText(), /^layer 1, self_attn\.q_proj · changed by [\d.]+ % of its size · 100\.0 % of 128 numbers differ$/);
  await page.keyboard.press("End");
  assert.match(await page.locator("seesaw-heat-map .readout").innerText(), /^layer 1 · changed by/);

  // M1 → M2 takes part of the first update back: the cosine is negative.
  await page.getByLabel("From").selectOption("M1");
  await page.locator("h2", { hasText: "Weights of M2 against M1" }).waitFor({ timeout: 60_000 });
  await page.getByLabel("Show").selectOption("cosine");
  assert.match(await cells.nth(1).locator("td").first().innerText(), /^−0\.\d\d|−1\.00$/);
  assert.ok(await cells.nth(1).locator("td.negative").count() > 0);
  await page.getByLabel("Show").selectOption("effective_rank");
  await page.waitForFunction(() => /^[12]\.\d$/.test(document.querySelector("seesaw-weights-app").shadowRoot.querySelector("seesaw-heat-map").shadowRoot.querySelectorAll("tbody tr")[1].querySelector("td").innerText), null, { timeout: 60_000 });
  await page.getByLabel("Show").selectOption("relative");

  const table = page.locator("seesaw-capability-chart table");
  assert.deepEqual(await table.locator("thead th").allInnerTexts(), ["checkpoint", "math in-domain", "math OOD", "search in-domain"]);
  assert.match(await table.locator("tbody tr").nth(1).innerText(), /M1 math\s+97 % \(89–99 %\)/);
  const drawn = await page.locator("seesaw-capability-chart canvas").evaluate((canvas) => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value > 0));
  assert.ok(drawn, "the chart is drawn");
  for (const button of await page.getByRole("button", { name: "Export as CSV" }).all()) await button.press("Enter");
  for (const deadline = Date.now() + 5000; saved.length < 2 && Date.now() < deadline; ) await page.waitForTimeout(20);
  assert.deepEqual(saved.map(([name]) => name.replace(/^[^.]+\./, "")), ["M1-M2.weights.csv", "capabilities.csv"]);
  say("weights: heat map, choices, ranks, chart and both files by keyboard");
}

async function withPage({ script, theme, host }, tell) {
  const { browser, page } = await startBrowser({ width: 1100, height: 900 });
  const errors = [];
  page.on("pageerror", (error) => errors.push(error.message));
  const session = new WeightsSession(host, (message) => void page.evaluate((data) => void globalThis.dispatchEvent(new MessageEvent("message", { data })), message).catch(() => {}));
  try {
    await page.exposeFunction("toHost", (message) => (message.type === "error" ? errors.push(message.message) : session.handle(message)));
    const { class: name, ...colours } = pageThemes[theme];
    const variables = Object.entries(colours).map(([variable, value]) => `--vscode-${variable}: ${value};`).join(" ");
    await page.setContent(`<!doctype html><html lang="en"><head><title>Compare Weights</title><style>:root { ${variables} --vscode-font-family: sans-serif; --vscode-font-size: 13px; } html, body { margin: 0; height: 100%; }</style></head><body class="${name}"><seesaw-weights-app></seesaw-weights-app></body></html>`);
    await page.evaluate(() => {
      globalThis.acquireVsCodeApi = () => ({ postMessage: (message) => void globalThis.toHost(message), getState: () => undefined, setState: () => {} });
    });
    await page.addScriptTag({ type: "module", content: readFileSync(script, "utf8") });
    await page.locator("seesaw-heat-map tbody tr").first().waitFor({ timeout: 60_000 });
    await tell(page);
    assert.deepEqual(errors, []);
  } finally {
    session.close();
    await browser.close();
  }
}
