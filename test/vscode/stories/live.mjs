// A probe row scored live as a person does it: from the palette, the film by keyboard alone, Escape back to what was recorded.
import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { say } from "../../../.config/scripts/progress.mjs";
import { root } from "../../../.config/scripts/setup.mjs";
import { base, command, driftFrame, fresh, openSeesaw, until, withWorkbench } from "../workbench.mjs";
import { accessible } from "./big.mjs";

export async function liveStory(vsix, python, spaces) {
  const dir = fresh("live");
  const folder = await spaces.trainedWorkspace(join(dir, "sample"), python, join(base, "trained"));
  // What a run of this version leaves.
  cpSync(join(root, "test", "fixtures", "graphs"), join(folder, ".seesaw", "cache", "graphs"), { recursive: true });
  await withWorkbench({ dir, vsix, folder }, async ({ page }) => {
    await page.locator(".explorer-folders-view .monaco-list-row", { hasText: "seesaw.yaml" }).first().waitFor({ timeout: 60_000 });
    await openSeesaw(page);
    const frame = await driftFrame(page);
    await frame.locator("seesaw-prompt-list .row").first().waitFor({ timeout: 30_000 });
    const prompt = () => frame.locator("seesaw-drift-app .prompt h2").innerText();
    const recorded = await prompt();
    await command(page, "Go to File...");
    await page.keyboard.type("math.probe.jsonl");
    await page.locator(".quick-input-list .monaco-list-row", { hasText: "math.probe.jsonl" }).first().waitFor({ timeout: 20_000 });
    await page.keyboard.press("Enter");
    await page.locator(".view-lines", { hasText: "56 + 68" }).first().waitFor({ timeout: 20_000 });

    await command(page, "Seesaw: Probe Selection Across Checkpoints");
    const bar = frame.locator("seesaw-live-bar");
    const current = frame.locator("seesaw-token-film .token.current");
    await bar.waitFor({ timeout: 30_000 });
    await until("the keyboard in the film", () => frame.locator("seesaw-token-film .token.current:focus").count(), 30_000);
    assert.equal(await bar.locator("strong").innerText(), "Live, not from a run");
    assert.equal(await bar.locator(".prompt").innerText(), "What is 56 + 68?");
    assert.match(await bar.locator(".place").innerText(), /^line 1 of data\/math\.probe\.jsonl · under M0, M1, M2, M3, M4, each stage against its start$/);
    assert.equal(await frame.locator("seesaw-prompt-list, seesaw-choice-bar, seesaw-drift-chart").count(), 0, "nothing recorded stands beside it");
    const first = await current.getAttribute("aria-label");
    assert.match(first, /M\d \w+: (lost|weakened), log probability/, "it opens on a token that fell");
    await page.keyboard.press("ArrowLeft");
    await until("another token", async () => (await current.getAttribute("aria-label")) !== first, 5_000);
    await page.screenshot({ path: join(base, "live.png") });
    await accessible("live film", await (await frame.locator("seesaw-drift-app").elementHandle()).ownerFrame());
    await page.keyboard.press("Escape");
    await bar.waitFor({ state: "detached", timeout: 10_000 });
    await until("the recorded prompt", async () => (await prompt()) === recorded, 10_000);
    await until("the keyboard in the list", () => frame.locator("seesaw-prompt-list .list:focus").count(), 5_000);
  });
  say("live: a row scored from the palette, looked at by keyboard, left by Escape");
}
