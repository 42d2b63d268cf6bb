// Restricted Mode, really switched on: everything is shown, nothing is started, and trust given later starts nothing by itself.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { say } from "../../../.config/scripts/progress.mjs";
import { command, driftFrame, fresh, openSeesaw, stageRow, withWorkbench } from "../workbench.mjs";

export async function trustStory(vsix, spaces) {
  const dir = fresh("trust");
  const folder = spaces.untrustedWorkspace(join(dir, "ws a+b %41 #1"));
  const files = () => readdirSync(folder, { recursive: true }).map(String).filter((name) => name.includes("CANARY") || /runs.[^/]+$/.test(name)).sort();
  const before = files();
  await withWorkbench({ dir, vsix, folder, trust: "none" }, async ({ page }) => {
    await openSeesaw(page);
    await stageRow(page, /math.*done/).waitFor({ timeout: 60_000 });
    const frame = await driftFrame(page);
    await frame.locator("seesaw-prompt-list .row").first().waitFor({ timeout: 30_000 });
    await stageRow(page, "math").hover();
    assert.equal(await stageRow(page, "math").locator('.actions a[aria-label^="Run Stage"]').count(), 0, "Run Stage is offered in Restricted Mode");
    await command(page, "Seesaw: Run Stage");
    await page.locator(".notification-list-item", { hasText: /starts nothing in a workspace that you do not trust/ }).waitFor({ timeout: 10_000 });
    await command(page, "Workspaces: Manage Workspace Trust");
    await page.locator(".workspace-trust-editor .monaco-button", { hasText: /^Trust$/ }).first().click({ timeout: 20_000 });
    // VS Code shows that editor in a frame over everything else.
    const over = page.locator(".monaco-modal-editor-block");
    await page.locator(".workspace-trust-editor", { hasText: "You trust this folder" }).waitFor({ timeout: 20_000 });
    if ((await over.count()) > 0) await over.locator(".codicon-close").first().click();
    await over.waitFor({ state: "detached", timeout: 10_000 });
    await openSeesaw(page);
    await stageRow(page, /math.*done/).waitFor({ timeout: 60_000 });
    await stageRow(page, "math").hover();
    await stageRow(page, "math").locator('.actions a[aria-label^="Run Stage"]').waitFor({ timeout: 20_000 });
    await page.waitForTimeout(3000);
    assert.deepEqual(files(), before, "something was started");
  });
  say("trust: shown without, nothing started without and nothing by giving it");
}
