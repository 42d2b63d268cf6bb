// A probe file of the finished sample chain as a person sees it: lenses, marks at the end of the line, the hover; and the
// same file in the dataset editor. Pictures on the way.
import assert from "node:assert/strict";
import { join } from "node:path";
import { base, command, fresh, openFile, withWorkbench } from "../workbench.mjs";
import { pictureTaker, quiet } from "./pictures.mjs";

export async function rowsStory(theme, vsix, python, spaces) {
  const dir = fresh(`rows-${theme}`);
  const folder = await spaces.trainedWorkspace(join(dir, "sample"), python, join(base, "trained"));
  const picture = pictureTaker(theme);
  await withWorkbench({ dir, vsix, folder, settings: quiet(theme) }, async ({ page }) => {
    await page.locator(".explorer-folders-view .monaco-list-row", { hasText: "seesaw.yaml" }).first().waitFor({ timeout: 60_000 });
    await openFile(page, "math.probe.jsonl");
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
    await page.mouse.move(20, 500); // no row is pointed at
    await page.waitForTimeout(1500);
    assert.ok((await grid.locator('[role="row"]').count()) > 10);
    await picture(page, "dataset");
  });
}
