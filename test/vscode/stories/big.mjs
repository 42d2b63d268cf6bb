// Token Drift on what is large and odd: 2,000 prompts, a reference of 10,000 tokens, emoji, Arabic, two roots, a theme that changes;
// the same in an editor tab; and both layouts under axe-core.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { say } from "../../../.config/scripts/progress.mjs";
import { root } from "../../../.config/scripts/setup.mjs";
import { command, driftEditor, driftFrame, fresh, openSeesaw, stageRow, until, withWorkbench } from "../workbench.mjs";

export async function bigStory(vsix, spaces) {
  const dir = fresh("big");
  const { workspace, longText, odd } = spaces.bigWorkspace(join(dir, "ws"));
  await withWorkbench({ dir, vsix, workspace }, async ({ page }) => {
    await openSeesaw(page);
    for (const name of ["big", "second"]) await stageRow(page, name).waitFor({ timeout: 60_000 });
    const frame = await driftFrame(page);
    const list = frame.locator("seesaw-prompt-list .list");
    const rows = frame.locator("seesaw-prompt-list .row");
    await rows.first().waitFor({ timeout: 30_000 });
    assert.equal(await frame.locator("seesaw-prompt-list .head .text").innerText(), "2,000 prompts");
    assert.equal(await list.getAttribute("aria-label"), "Prompts, most drifted first");
    assert.ok((await rows.count()) < 100, "rows out of sight are elements");

    await list.focus();
    const selected = rows.and(frame.locator('[aria-selected="true"]'));
    for (const [key, place] of [["End", "2000"], ["Home", "1"], ["PageDown", "11"]]) {
      await page.keyboard.press(key);
      await until(`${key} in the list`, async () => (await selected.getAttribute("aria-posinset").catch(() => null)) === place, 10_000);
    }
    // An arrow key that is held down: the list keeps up, and the last prompt is the one that is shown.
    const began = Date.now();
    for (let press = 0; press < 60; press++) await page.keyboard.press("ArrowDown");
    await until("the 71st prompt", async () => (await selected.getAttribute("aria-posinset").catch(() => null)) === "71", 10_000);
    await until("its film", async () => (await frame.locator("seesaw-drift-app .prompt h2").innerText()) === (await selected.locator(".text").innerText()), 10_000);
    const perKey = (Date.now() - began) / 60;
    assert.ok(perKey < 150, `an arrow key takes ${perKey} ms`);

    const parts = frame.locator("seesaw-drift-app .parts");
    const choose = async (text) => {
      const row = rows.filter({ hasText: text }).first();
      await list.evaluate(scrollTo, 0);
      for (let y = 0; y <= 2000 * 22 && (await row.count()) === 0; y += 400) await list.evaluate(scrollTo, y);
      await row.click({ timeout: 10_000 });
      await frame.locator("seesaw-drift-app .prompt h2", { hasText: text }).waitFor({ timeout: 20_000 });
    };
    await choose(longText);
    await parts.waitFor({ timeout: 20_000 });
    assert.match(await parts.innerText(), /tokens [\d,]+–[\d,]+ of 10,\d\d\d/);
    assert.ok((await frame.locator("seesaw-token-film .token").count()) <= 1600, "too many tokens are elements");
    const first = await parts.locator("span").innerText();
    await parts.locator("button", { hasText: "earlier" }).or(parts.locator("button", { hasText: "later" })).and(frame.locator("button:enabled")).first().click();
    await until("another part", async () => (await parts.locator("span").innerText()) !== first, 10_000);
    say(`big: 2,000 prompts, ${perKey.toFixed(0)} ms a key; 10,000 tokens in parts`);

    for (const text of odd) {
      await choose(text);
      assert.ok((await frame.locator("seesaw-drift-app .prompt h2").innerText()).includes(text));
    }

    const background = () => frame.locator("body").evaluate((body) => body.ownerDocument.defaultView.getComputedStyle(body.querySelector("seesaw-drift-app")).backgroundColor);
    const before = await background();
    await command(page, "Preferences: Toggle between Light/Dark Themes");
    await until("the other theme in the page", async () => (await background()) !== before, 20_000);
    say("big: emoji, Arabic and control characters literally; two roots; the theme changes live");
    await frame.locator("seesaw-drift-chart button.fold").click();
    await frame.locator("seesaw-drift-chart canvas").waitFor();
    await accessible("side bar", await (await frame.locator("seesaw-drift-app").elementHandle()).ownerFrame());
    await inEditor(page);
  });
}

/** The wide layout in a tab: its grid, the chart and the filter by keyboard. */
async function inEditor(page) {
  await command(page, "Seesaw: Open Token Drift in Editor");
  const tab = await driftEditor(page);
  const grid = () => tab.locator("seesaw-token-grid");
  await grid().locator(".token").first().waitFor({ timeout: 30_000 });
  assert.equal(await grid().locator("table").getAttribute("role"), "grid");
  await tab.locator("seesaw-prompt-list .list").focus();
  await page.keyboard.press("/");
  await page.keyboard.type("What is 1");
  await until("the filter", async () => / of 2,000 prompts$/.test(await tab.locator("seesaw-prompt-list .head .text").innerText()), 10_000);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Home");
  const selected = tab.locator('seesaw-prompt-list .row[aria-selected="true"] .text');
  const heading = () => tab.locator("seesaw-drift-app .prompt h2").innerText();
  await until("a prompt of the filter", async () => /^What is 1/.test(await selected.innerText().catch(() => "")) && (await heading()) === (await selected.innerText()), 10_000);
  await page.keyboard.press("Enter");
  const current = () => grid().locator(".token.current").getAttribute("aria-label");
  await page.keyboard.press("Control+Home");
  const first = await current();
  assert.match(first, /, M0 base: .*log probability/);
  await page.keyboard.press("n");
  await until("the next changed token", async () => (await current()) !== first && / (lost|weakened), /.test(await current()), 5_000);
  const slider = tab.locator("seesaw-drift-chart .plot");
  await slider.focus();
  await page.keyboard.press("Home");
  assert.match(await slider.getAttribute("aria-valuetext"), /^M0 base, step 0;/);
  await page.keyboard.press("Enter");
  await until("M0 in the grid", async () => /, M0 base: /.test(await current()), 5_000);
  await accessible("editor tab", tab);
  say("big: the editor tab's grid, chart and filter by keyboard");
}

/** Scrolls the list and waits until the rows of that place are drawn, however slow the machine is. In the page. */
async function scrollTo(element, y) {
  element.scrollTop = y;
  for (let frames = 0; frames < 2; frames++) await new Promise((drawn) => requestAnimationFrame(drawn));
  await element.getRootNode().host.updateComplete;
}

/** axe-core finds no serious fault in the page. Playwright evaluates it: the page's policy would refuse a script of ours. */
export async function accessible(layout, frame) {
  await frame.evaluate(readFileSync(join(root, "node_modules", "axe-core", "axe.min.js"), "utf8"));
  const { violations, passes } = await frame.evaluate(() => globalThis.axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"] }));
  for (const { id, impact, nodes } of violations) say(`axe, ${layout}: ${impact} ${id}: ${nodes.length} × ${nodes[0].html.slice(0, 160)} ${nodes[0].failureSummary.replaceAll("\n", " ").slice(0, 200)}`);
  assert.ok(passes.length > 15, `axe looked at nothing in the ${layout}`);
  assert.deepEqual(violations.filter(({ impact }) => ["serious", "critical"].includes(impact)).map(({ id }) => id), []);
  say(`axe: no serious fault in the ${layout}`);
}
