// The whole story of a new user: Run Stage from the palette, the early warning, the rows that know their drift, a click into the
// filmstrip, the keyboard alone, another theme.
import assert from "node:assert/strict";
import { join } from "node:path";
import { say } from "../../../.config/scripts/progress.mjs";
import { base, command, dialog, driftFrame, fresh, openFile, openSeesaw, stageRow, until, withWorkbench } from "../workbench.mjs";
import { driveByKeyboard } from "./literal.mjs";
import { quiet } from "./pictures.mjs";

export async function wholeStory(vsix, python, spaces) {
  const dir = fresh("whole");
  const folder = await spaces.trainedWorkspace(join(dir, "sample"), python, join(base, "trained"));
  await withWorkbench({ dir, vsix, folder, settings: quiet("dark") }, async ({ page }) => {
    await openSeesaw(page);
    await stageRow(page, /tool.*done/).waitFor({ timeout: 60_000 });
    await command(page, "Seesaw: Run Stage");
    await page.locator(".quick-input-list .monaco-list-row", { hasText: "format" }).first().waitFor({ timeout: 15_000 });
    await page.keyboard.type("format");
    await page.keyboard.press("Enter");
    const question = await dialog(page);
    assert.match(question.text, /Run stage format\?[^]*Starts from M3[^]*Memory: .* at the peak[^]*Work: \d+ steps[^]*Nothing is overwritten/);
    await question.press("Start");
    await stageRow(page, /format.*step [1-9]\d* of/).waitFor({ timeout: 120_000 });
    // The early warning: a badge on the view, a problem on the stage, and at the end one message.
    const warning = page.locator(".notification-list-item", { hasText: /Stage format: \w+/ }).first();
    await warning.waitFor({ timeout: 240_000 });
    assert.match(await warning.innerText(), /Stage format: .*(drift|lost|fell|confirmed|drops)/i);
    await stageRow(page, /format.*done/).waitFor({ timeout: 60_000 });
    await command(page, "Notifications: Clear All Notifications");
    say("whole: Run Stage from the palette; the flag is raised");

    await openFile(page, "math.probe.jsonl");
    const lens = page.locator(".codelens-decoration a", { hasText: /drift −\d/ }).first();
    await lens.waitFor({ timeout: 60_000 });
    await lens.click();
    const frame = await driftFrame(page);
    const selected = frame.locator('seesaw-prompt-list .row[aria-selected="true"] .text');
    await until("the row's prompt in the filmstrip", async () => (await selected.count()) > 0 && (await frame.locator("seesaw-drift-app .prompt h2").innerText()) === (await selected.innerText()), 30_000);
    await driveByKeyboard(page, frame);
    say("whole: a click on the row's lens leads to its filmstrip, which the keyboard alone drives");

    const background = () => frame.locator("body").evaluate((body) => body.ownerDocument.defaultView.getComputedStyle(body.querySelector("seesaw-drift-app")).backgroundColor);
    const before = await background();
    await command(page, "Preferences: Toggle between Light/Dark Themes");
    await until("the other theme in the filmstrip", async () => (await background()) !== before, 20_000);
    await frame.locator("seesaw-token-film .token.current").waitFor({ timeout: 10_000 });
    say("whole: the theme changes under it, and what was shown stays");
  });
}
