// The finished sample chain under one theme: Token Drift, the question of Run Stage, a live stage. Pictures on the way.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { say } from "../../../.config/scripts/progress.mjs";
import { root } from "../../../.config/scripts/setup.mjs";
import { base, command, dialog, driftEditor, driftFrame, fresh, openFile, openSeesaw, stageRow, withWorkbench } from "../workbench.mjs";
import { driveByKeyboard } from "./literal.mjs";

export const themes = { dark: "Default Dark Modern", light: "Default Light Modern", "high-contrast": "Default High Contrast" };
const folderOfPictures = join(root, "media", "screenshots");

/** In the page: writes another path in the place of one, in every text that is shown. */
function hidePath([path, other]) {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text !== null; text = texts.nextNode()) if (text.data.includes(path)) text.data = text.data.replaceAll(path, other);
}

/** Settings of a workbench in a theme, with nothing around what is to be seen. No theme: none of it matters. */
export function quiet(theme) {
  if (theme === null) return {};
  return { "workbench.colorTheme": themes[theme], "window.titleBarStyle": "custom", "window.commandCenter": false, "workbench.layoutControl.enabled": false, "breadcrumbs.enabled": false, "editor.minimap.enabled": false };
}

/** Takes pictures for the README; without a theme, as in the tests, none. */
export function pictureTaker(theme) {
  return async (page, name) => {
    if (theme === null) return;
    mkdirSync(folderOfPictures, { recursive: true });
    await page.evaluate(hidePath, [root, "~/lm"]); // whose machine it was is nobody's business
    await page.screenshot({ path: join(folderOfPictures, `${name}-${theme}.png`) });
    say(`${theme}: ${name}`);
  };
}

export async function picturesStory(theme, vsix, python, spaces) {
  const dir = fresh(theme);
  const folder = await spaces.trainedWorkspace(join(dir, "sample"), python, join(base, "trained"));
  const picture = pictureTaker(theme);
  await withWorkbench({ dir, vsix, folder, settings: quiet(theme) }, async ({ page }) => {
    await page.locator(".explorer-folders-view .monaco-list-row", { hasText: "seesaw.yaml" }).first().dblclick({ timeout: 60_000 });
    await page.locator(".view-lines", { hasText: "seesaw: 1" }).waitFor();
    await openSeesaw(page);
    await widen(page, 440);
    await stageRow(page, "search").waitFor({ timeout: 30_000 });
    const frame = await driftFrame(page);
    await frame.locator("seesaw-prompt-list .row").first().waitFor({ timeout: 30_000 });
    await driveByKeyboard(page, frame);
    await page.locator(".notifications-toasts .notification-toast").first().waitFor({ state: "detached", timeout: 2000 }).catch(() => {});
    await page.waitForTimeout(500);
    await picture(page, "drift");
    await inEditor(page, picture);

    await openFile(page, "seesaw.yaml");
    await command(page, "Seesaw: Run Stage");
    await page.locator(".quick-input-list .monaco-list-row", { hasText: "format" }).first().waitFor({ timeout: 15_000 });
    await page.keyboard.type("format");
    await page.keyboard.press("Enter");
    const question = await dialog(page);
    for (const expected of ["Run stage format?", "Starts from M3", "seesaw_runner.recipes.sft", ".seesaw/runs/format-"]) assert.ok(question.text.includes(expected), `${expected} is missing in: ${question.text}`);
    await picture(page, "run-stage-confirm");
    // The README shows a live run once.
    if (theme !== "dark") return question.press("Cancel");
    await question.press("Start");
    await stageRow(page, /format.*step [2-9]\d* of/).waitFor({ timeout: 120_000 });
    await page.locator(".notifications-toasts .notification-toast").first().waitFor({ state: "detached", timeout: 5000 }).catch(() => {});
    await picture(page, "stages-running");
    await command(page, "Seesaw: Stop Run");
    await (await dialog(page)).press("Stop Run");
    await stageRow(page, /format.*stopped/).waitFor({ timeout: 60_000 });
  });
}

/** Token Drift in a tab, with the whole width: the chart, the grid, the answers. Leaves the workbench as it was. */
async function inEditor(page, picture) {
  await command(page, "Seesaw: Open Token Drift in Editor");
  const tab = await driftEditor(page);
  await tab.locator("seesaw-token-grid .token").first().waitFor({ timeout: 30_000 });
  await command(page, "View: Toggle Primary Side Bar Visibility");
  await tab.locator("seesaw-prompt-list .list").focus();
  await tab.locator("seesaw-drift-chart canvas").waitFor();
  await page.keyboard.press("Enter");
  await page.waitForTimeout(800);
  await picture(page, "drift-editor");
  await command(page, "View: Close Editor");
  await command(page, "View: Toggle Primary Side Bar Visibility");
  await stageRow(page, "search").waitFor({ timeout: 30_000 });
}

/** Drags the side bar's border. */
export async function widen(page, width) {
  const box = await page.locator(".part.sidebar").boundingBox();
  await page.mouse.move(box.x + box.width, box.y + 300);
  await page.mouse.down();
  await page.mouse.move(box.x + width, box.y + 300, { steps: 5 });
  await page.mouse.up();
  await page.mouse.move(box.x + width + 300, box.y + 300);
}
