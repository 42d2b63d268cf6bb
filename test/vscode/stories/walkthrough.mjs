// Get Started as a new user: the walkthrough's page, and its first step, which copies the sample and opens it.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { say } from "../../../.config/scripts/progress.mjs";
import { command, fresh, openSeesaw, stageRow, until, withWorkbench } from "../workbench.mjs";
import { pictureTaker, quiet } from "./pictures.mjs";

export async function walkthroughStory(vsix, spaces, theme = null) {
  const dir = fresh(theme === null ? "walkthrough" : `walkthrough-${theme}`);
  const folder = spaces.bareWorkspace(join(dir, "nothing here"));
  const home = join(dir, "my work");
  mkdirSync(home);
  await withWorkbench({ dir, vsix, folder, settings: quiet(theme) }, async ({ page }) => {
    await openSeesaw(page);
    await page.locator(".welcome-view-content a, .welcome-view-content .monaco-button", { hasText: "Open the Sample" }).first().waitFor({ timeout: 30_000 });
    await command(page, "Welcome: Open Walkthrough...");
    await page.locator(".quick-input-list .monaco-list-row", { hasText: "Seesaw" }).first().waitFor({ timeout: 20_000 });
    await page.keyboard.type("Seesaw");
    await page.keyboard.press("Enter");
    const steps = page.locator(".gettingStartedContainer .getting-started-step");
    await steps.first().waitFor({ timeout: 30_000 });
    assert.equal(await steps.count(), 5);
    const sample = steps.filter({ hasText: "Open the Sample" }).first();
    await page.locator(".gettingStartedContainer .getting-started-media img, .gettingStartedContainer .getting-started-media iframe, .gettingStartedContainer .getting-started-media svg").first().waitFor({ state: "attached", timeout: 20_000 });
    if (theme !== null) {
      // With the whole width the step's picture is beside it.
      await command(page, "View: Toggle Primary Side Bar Visibility");
      await steps.first().click();
      await page.waitForTimeout(1500);
      return pictureTaker(theme)(page, "walkthrough");
    }
    await sample.locator(".monaco-button", { hasText: "Open the Sample" }).first().click({ timeout: 20_000 });
    const input = page.locator(".quick-input-widget input").first();
    await page.locator(".quick-input-title", { hasText: "seesaw-sample" }).waitFor({ timeout: 20_000 });
    // The dialog fills in where it begins when it has looked there, on a busy machine after we have typed.
    await until("our folder in the dialog", async () => {
      if ((await input.inputValue()) === "") return false;
      await input.fill(`${home}/`);
      await page.waitForTimeout(1000);
      return (await input.inputValue()) === `${home}/`;
    });
    await page.locator(".quick-input-widget .monaco-button", { hasText: "Copy Sample Here" }).first().click({ timeout: 10_000 });
    const said = page.locator(".notification-list-item", { hasText: /The sample is in / }).first();
    await said.waitFor({ timeout: 30_000 });
    const copied = /The sample is in (\S.*?seesaw-sample[^.]*)\./.exec(await said.innerText())?.[1];
    assert.ok(copied?.startsWith(home) && existsSync(join(copied, "seesaw.yaml")), `the sample is not in ${copied}`);
    assert.match(readFileSync(join(copied, "seesaw.yaml"), "utf8"), /^seesaw: 1/m);
    await said.locator(".monaco-button", { hasText: /^Open$/ }).click();
    await page.waitForURL((url) => decodeURIComponent(url.search).includes(copied), { timeout: 60_000 });
    await openSeesaw(page);
    await stageRow(page, "cliff").or(stageRow(page, /math\s*not run yet/)).first().waitFor({ timeout: 60_000 });
  });
  say("walkthrough: its first step copies the sample and opens it");
}
