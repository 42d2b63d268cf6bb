// The extension in a workbench whose language is Simplified Chinese. VS Code's own words stay English: their translation is a
// language pack from the marketplace. Every expected string is read from the files that ship.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { say } from "../../../.config/scripts/progress.mjs";
import { root } from "../../../.config/scripts/setup.mjs";
import { command, driftFrame, fresh, stageRow, withWorkbench } from "../workbench.mjs";

const read = (file) => JSON.parse(readFileSync(join(root, file), "utf8"));

export async function chineseStory(vsix, spaces) {
  const dir = fresh("chinese");
  const folder = spaces.recordedWorkspace(join(dir, "ws"), ["math", "search"]);
  const manifest = read("package.nls.zh-cn.json");
  const bundle = read("l10n/bundle.l10n.zh-cn.json");
  const asked = bundle["Where should the folder {0} be made?"].replace("{0}", "seesaw-sample");
  for (const text of [asked, bundle["Copy Sample Here"], bundle["not run yet"]]) assert.match(text, /\p{Script=Han}/u, "the bundle has no Chinese for what is looked for");
  await withWorkbench({ dir, vsix, folder, language: "zh-cn" }, async ({ page }) => {
    await page.locator('.activitybar .action-item a[aria-label^="Seesaw"], .activitybar .action-item[aria-label^="Seesaw"]').first().click({ timeout: 60_000 });
    for (const id of ["view.stages", "view.skills", "view.drift"]) await page.locator(".part.sidebar .pane-header", { hasText: manifest[id] }).first().waitFor({ timeout: 60_000 });
    await stageRow(page, "tool").filter({ hasText: bundle["not run yet"] }).waitFor({ timeout: 60_000 });
    const frame = await driftFrame(page);
    await frame.locator("seesaw-prompt-list .row").first().waitFor({ timeout: 60_000 });
    // Found under its Chinese title; what it asks comes from the bundle.
    await command(page, `Seesaw: ${manifest["command.openSample"]}`);
    const dialog = page.locator(".quick-input-widget");
    await dialog.locator(".quick-input-title", { hasText: asked }).waitFor({ timeout: 20_000 });
    await dialog.locator(".monaco-button", { hasText: bundle["Copy Sample Here"] }).first().waitFor({ timeout: 10_000 });
    await page.keyboard.press("Escape");
  });
  say("chinese: views, commands and messages in Simplified Chinese");
}
