// What nobody means to do: commands where there is nothing, double clicks, a run folder that goes away, a file that is broken meanwhile.
import assert from "node:assert/strict";
import { readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { say } from "../../../.config/scripts/progress.mjs";
import { command, fresh, goTo, hoverOf, openFile, openSeesaw, palette, stageRow, until, withWorkbench } from "../workbench.mjs";

/** What a defect of ours looks like in a message. */
const defect = /undefined|null|Cannot read|is not a function|TypeError|\[object|Error:/;

export async function misuseStory(vsix, spaces) {
  await withoutFolder(vsix);
  const dir = fresh("misuse");
  const folder = spaces.targetsWorkspace(join(dir, "ws"));
  const file = join(folder, "seesaw.yaml");
  const before = readFileSync(file, "utf8");
  const runs = join(folder, ".seesaw", "runs");
  await withWorkbench({ dir, vsix, folder, env: spaces.standInEnv(folder), installed: (extension) => rmSync(join(extension, "media", "battery", "card.json"), { force: true }) }, async ({ page }) => {
    await openSeesaw(page);
    await stageRow(page, /search.*⚑ math/).waitFor({ timeout: 60_000 });
    // Without a report card nothing is claimed, and there is nothing to open.
    await stageRow(page, /search.*⚑ math/).click();
    await page.keyboard.press("ArrowRight");
    const hover = await hoverOf(page, stageRow(page, /math \(in-domain\): loss confirmed/), "this installation has no report card, so how often it is wrong, and how far ahead it is, is not known");
    assert.equal(await hover.locator("a").count(), 0);
    await page.mouse.move(900, 500);
    await stageRow(page, /search.*⚑ math/).click();
    await page.keyboard.press("ArrowLeft");
    // An impatient person clicks twice: one question, and no second one behind it.
    await stageRow(page, /^math/).hover();
    await stageRow(page, /^math/).locator('.actions a[aria-label^="Run Stage"]').dblclick();
    await page.locator(".quick-input-list .monaco-list-row", { hasText: "near" }).first().waitFor({ timeout: 30_000 });
    await page.keyboard.press("Escape");
    await page.waitForTimeout(1000);
    assert.equal(await page.locator(".quick-input-list:visible").count(), 0, "a second question came behind the first");
    say("misuse: a double click asks once");

    // The file is broken while a flag stands: nothing is offered on what is not understood, and the command says what is wrong.
    writeFileSync(file, before.replace("recipe: sft", "recipe: [sft"));
    await stageRow(page, "seesaw.yaml has errors").waitFor({ timeout: 30_000 });
    await command(page, "Seesaw: Run Stage");
    await calm(page, "Run Stage on a broken file");
    await command(page, "Seesaw: Set Ray Token");
    await calm(page, "Set Ray Token on a broken file");
    writeFileSync(file, before);
    await stageRow(page, "seesaw.yaml has errors").waitFor({ state: "detached", timeout: 30_000 });
    say("misuse: a file that is broken, and mended, meanwhile");

    // A run folder is deleted while its flag is on the screen.
    await openFile(page, "seesaw.yaml");
    await goTo(page, file, "- id: search");
    await page.locator(".view-overlays .squiggly-warning").first().waitFor({ timeout: 30_000, state: "attached" });
    for (const name of readdirSync(runs)) if (name.startsWith("search-")) rmSync(join(runs, name), { recursive: true });
    await command(page, "Seesaw: Confirm on More Prompts");
    await calm(page, "Confirm without the run");
    await stageRow(page, /search.*not run yet/).waitFor({ timeout: 30_000 });
    await until("the flag's diagnostic is gone", async () => (await page.locator(".view-overlays .squiggly-warning").count()) === 0, 20_000);
    for (const name of readdirSync(runs)) rmSync(join(runs, name), { recursive: true });
    for (const title of ["Show Run Log", "Fetch Checkpoint", "Resume Run", "Confirm on More Prompts"]) {
      await command(page, `Seesaw: ${title}`);
      await calm(page, `${title} without runs`);
    }
    assert.equal(await page.locator(".monaco-dialog-box").count(), 0);
    say("misuse: run folders that go away are not run, and nothing fails over it");
  });
}

/** Every command that is offered where no folder is open says what it needs, or does what it can. */
async function withoutFolder(vsix) {
  const dir = fresh("misuse-empty");
  await withWorkbench({ dir, vsix }, async ({ page }) => {
    await page.locator(".monaco-workbench .activitybar").first().waitFor({ timeout: 60_000 });
    await openSeesaw(page);
    await palette(page);
    await page.keyboard.type("Seesaw: ");
    await page.locator(".quick-input-list .monaco-list-row", { hasText: "Seesaw: " }).first().waitFor({ timeout: 20_000 });
    const rows = await page.locator(".quick-input-list .monaco-list-row").allInnerTexts();
    const titles = [...new Set(rows.flatMap((text) => /Seesaw: [^\n]+/.exec(text)?.[0].trim() ?? []))];
    await page.keyboard.press("Escape");
    assert.ok(titles.length >= 4, titles.join(", "));
    for (const title of titles) {
      await command(page, title);
      await calm(page, title);
    }
    say(`misuse: ${titles.length} commands without a folder (${titles.map((title) => title.slice(8)).join(", ")})`);
  });
}

/** Nothing that was said names an inner thing, and whatever asks is answered with Escape. */
async function calm(page, after) {
  await page.waitForTimeout(700);
  for (const text of await page.locator(".notification-list-item, .monaco-dialog-box").allInnerTexts()) assert.doesNotMatch(text, defect, `after ${after}`);
  for (let presses = 0; presses < 3; presses++) {
    await page.keyboard.press("Escape");
    await page.waitForTimeout(100);
  }
  await command(page, "Notifications: Clear All Notifications");
}
