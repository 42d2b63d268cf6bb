// Case V03: text of rows is text, whatever it looks like, and the page's policy lets nothing else run. And: keyboard alone.
import assert from "node:assert/strict";
import { join } from "node:path";
import { say } from "../../../.config/scripts/progress.mjs";
import { driftFrame, fresh, openSeesaw, until, withWorkbench } from "../workbench.mjs";

export async function literalStory(vsix, spaces) {
  const dir = fresh("literal");
  const folder = spaces.hostileWorkspace(join(dir, "ws a+b %41 #1"));
  await withWorkbench({ dir, vsix, folder }, async ({ page }) => {
    page.on("dialog", (dialog) => assert.fail(`a dialog was opened: ${dialog.message()}`));
    await openSeesaw(page);
    const frame = await driftFrame(page);
    await frame.locator("seesaw-prompt-list .row").first().waitFor({ timeout: 30_000 });
    await driveByKeyboard(page, frame);
    const list = frame.locator("seesaw-prompt-list .list");
    const row = frame.locator("seesaw-prompt-list .row", { hasText: "onerror" }).first();
    for (let tries = 0; tries < 20 && (await row.count()) === 0; tries++) await list.evaluate((element) => (element.scrollTop += element.clientHeight));
    await row.click({ timeout: 30_000 });
    await frame.locator("seesaw-drift-app .prompt h2", { hasText: "onerror" }).waitFor();
    assert.equal(await row.locator(".text").innerText(), spaces.hostileText);
    assert.equal(await frame.locator("seesaw-drift-app .prompt h2").innerText(), spaces.hostileText);
    assert.equal(await frame.locator("seesaw-drift-app img, seesaw-drift-app iframe, seesaw-drift-app script").count(), 0, "a row became HTML");
    assert.notEqual(await frame.locator("html").evaluate((element) => element.ownerDocument.title), "pwned");
    const policy = await frame.locator('meta[http-equiv="Content-Security-Policy"]').getAttribute("content");
    assert.match(policy, /^default-src 'none'; script-src 'nonce-/);
  });
  say("literal: rows are shown literally, nothing but our script runs; the keyboard reaches everything");
}

/** Into the list, arrows to another prompt, Enter into the tokens, arrows and `n` there, Escape back. */
export async function driveByKeyboard(page, frame) {
  await frame.locator("seesaw-prompt-list .list").focus();
  const selected = () => frame.locator('seesaw-prompt-list .row[aria-selected="true"] .text').innerText();
  const prompt = () => frame.locator("seesaw-drift-app .prompt h2").innerText();
  const first = await selected();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await until("another prompt", async () => (await selected()) !== first && (await prompt()) === (await selected()), 10_000);
  const second = await selected();
  await page.keyboard.press("Enter");
  const current = () => frame.locator("seesaw-token-film .token.current").getAttribute("aria-label");
  const before = await current();
  assert.match(before, /M\d \w+: .*log probability/);
  await page.keyboard.press("Home");
  await page.keyboard.press("n");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowUp");
  await until("another token", async () => (await current()) !== before, 5_000);
  await page.keyboard.press("Escape");
  await page.keyboard.press("ArrowUp");
  await until("Escape to lead back to the list", async () => (await selected()) !== second && (await prompt()) === (await selected()), 10_000);
  await page.keyboard.press("Enter");
}
