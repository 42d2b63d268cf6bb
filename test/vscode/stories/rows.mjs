// A probe file of the finished sample chain as a person sees it: lenses, marks at the end of the line, the hover; and the
// same file in the dataset editor. Pictures on the way.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { say } from "../../../.config/scripts/progress.mjs";
import { root } from "../../../.config/scripts/setup.mjs";
import { base, command, fresh, withWorkbench } from "../workbench.mjs";
import { themes } from "./pictures.mjs";

const folderOfPictures = join(root, "media", "screenshots");

export async function rowsStory(vsix, python, spaces) {
  const dir = fresh("rows");
  const folder = await spaces.trainedWorkspace(join(dir, "sample"), python, join(base, "trained"));
  const settings = { "workbench.colorTheme": themes.dark, "window.titleBarStyle": "custom", "window.commandCenter": false, "workbench.layoutControl.enabled": false, "breadcrumbs.enabled": false, "editor.minimap.enabled": false };
  const picture = async (page, name) => {
    mkdirSync(folderOfPictures, { recursive: true });
    await page.screenshot({ path: join(folderOfPictures, `${name}-dark.png`) });
    say(`rows: ${name}`);
  };
  await withWorkbench({ dir, vsix, folder, settings }, async ({ page }) => {
    await page.locator(".explorer-folders-view .monaco-list-row", { hasText: "seesaw.yaml" }).first().waitFor({ timeout: 60_000 });
    await command(page, "Go to File...");
    await page.keyboard.type("math.probe.jsonl");
    await page.locator(".quick-input-list .monaco-list-row", { hasText: "math.probe.jsonl" }).first().waitFor({ timeout: 20_000 });
    await page.keyboard.press("Enter");
    await page.locator(".codelens-decoration", { hasText: "drift" }).first().waitFor({ timeout: 60_000 });
    await command(page, "View: Toggle Primary Side Bar Visibility");
    await page.waitForTimeout(1500);
    await page.locator(".view-line").nth(2).hover({ position: { x: 60, y: 8 } });
    await page.locator(".monaco-hover", { hasText: "M1" }).first().waitFor({ timeout: 20_000 });
    await page.waitForTimeout(500);
    await picture(page, "rows");

    await command(page, "Seesaw: Open as Dataset");
    const grid = page.frameLocator("iframe.webview.ready").frameLocator("iframe#active-frame").locator("seesaw-row-grid");
    await grid.locator('[role="row"]').nth(3).waitFor({ timeout: 30_000 });
    await page.keyboard.press("ArrowDown");
    await page.waitForTimeout(1500);
    assert.ok((await grid.locator('[role="row"]').count()) > 10);
    await picture(page, "dataset");
  });
}
