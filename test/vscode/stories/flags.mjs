// A flag as a person meets it: its facts in the tree, in Token Drift and at its stage in seesaw.yaml, and the changes of the file that it offers.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { say } from "../../../.config/scripts/progress.mjs";
import { base, command, driftEditor, driftFrame, fresh, goTo, hoverOf, openFile, openSeesaw, pointAt, quickFix, stageRow, until, withWorkbench } from "../workbench.mjs";
import { quiet, widen } from "./pictures.mjs";

const facts = ["Expected loss", "What the check can see", "False-alarm budget", "Moved most", "Replay", "Track record", "Lead", "For runs like yours"];

export async function flagsStory(vsix, spaces, theme = null) {
  const dir = fresh(theme === null ? "flags" : `flags-${theme}`);
  const folder = spaces.flagsWorkspace(join(dir, "ws"));
  const file = join(folder, "seesaw.yaml");
  const before = readFileSync(file, "utf8");
  const runs = () => readdirSync(join(folder, ".seesaw", "runs")).sort();
  const runsBefore = runs();
  const shot = async (page, name) => theme !== null && (await page.waitForTimeout(1000), await page.screenshot({ path: join(base, `flag-${name}-${theme}.png`) }));
  await withWorkbench({ dir, vsix, folder, settings: { ...quiet(theme), "files.autoSave": "off" }, installed: (extension) => spaces.putReportCard(extension) }, async ({ page }) => {
    await openSeesaw(page);
    await widen(page, 420);
    await stageRow(page, /search.*⚑ math/).waitFor({ timeout: 60_000 });
    await stageRow(page, /search.*⚑ math/).click();
    await page.keyboard.press("ArrowRight");
    const flag = stageRow(page, /math \(in-domain\): loss confirmed.*since step 30/);
    await flag.waitFor();
    // A tree that is redrawn takes its hover away.
    let told = "";
    await until("the hover of the flag, and its link", async () => {
      const hover = await pointAt(page, flag, "How often this detector is wrong");
      if (hover === null) return false;
      told = await hover.innerText({ timeout: 1000 }).catch(() => told);
      await shot(page, "tree");
      return hover.locator("a", { hasText: "How often this detector is wrong" }).click({ timeout: 2000 }).then(() => true, () => false);
    }, 40_000);
    for (const fact of facts) assert.ok(told.includes(fact), `${fact} is missing in: ${told}`);
    await page.locator(".tab", { hasText: "REPORT_CARD" }).waitFor({ timeout: 30_000 });
    await shot(page, "report-card");
    // By the mouse: the page takes the keyboard when it is there, whenever that is.
    const report = page.locator(".tab", { hasText: "REPORT_CARD" });
    await report.click({ button: "middle" });
    await report.waitFor({ state: "detached", timeout: 10_000 });
    say("flags: the facts in the tree, and the report card behind them");

    await page.mouse.move(900, 500);
    await flag.click();
    await driftFrame(page); // it takes the keyboard when it is there
    await page.waitForTimeout(1000);
    await command(page, "Seesaw: Open Token Drift in Editor");
    const tab = await driftEditor(page);
    const finding = tab.locator("seesaw-drift-chart .finding").first();
    await finding.locator("summary").click({ timeout: 30_000 });
    const card = await finding.innerText();
    for (const fact of facts) assert.ok(card.includes(fact), `${fact} is missing in: ${card}`);
    await shot(page, "card");
    say("flags: the same in Token Drift");

    await openFile(page, "seesaw.yaml");
    await goTo(page, file, "- id: search");
    await page.locator(".view-overlays .squiggly-warning").first().waitFor({ timeout: 30_000, state: "attached" });
    await command(page, "Show or Focus Hover");
    await shot(page, "hover");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Control+.");
    await page.locator(".action-widget .monaco-list-row", { hasText: "Confirm the loss of math on more prompts…" }).waitFor({ timeout: 20_000 });
    await shot(page, "fixes");
    await page.keyboard.press("Escape");
    const text = () => page.evaluate(() => [...document.querySelectorAll(".editor-instance .view-line")].map((one) => one.textContent.replaceAll("\u00a0", " ")).join("\n"));
    for (const [title, seen] of [[/Replay .* rows of math in search/, /replay: \{ buffer: math, ratio: 0\.1 \}/], [/Halve the learning rate of search/, /learning_rate: 3\.5e-4/], [/Fork search from its checkpoint at step 15/, /id: search-fork/]]) {
      await quickFix(page, title);
      await until(`the edit of ${title}`, async () => (await page.locator(".tab.dirty", { hasText: "seesaw.yaml" }).count()) > 0, 10_000);
      await until(`what ${title} wrote, in sight`, async () => seen.test(await text()), 5_000);
      await shot(page, `fix-${String(title).slice(1, 5)}`);
      await page.keyboard.press("Control+z");
      await until("nothing left of it", async () => (await page.locator(".tab.dirty", { hasText: "seesaw.yaml" }).count()) === 0, 10_000);
    }
    assert.equal(readFileSync(file, "utf8"), before, "a fix wrote to the disk by itself");
    assert.deepEqual(runs(), runsBefore, "a fix started something");
    say("flags: every fix is an edit that is in sight, and nothing more");

    // Where there was replay, the rows that should have helped are named.
    for (const view of ["Skills", "Token Drift"]) await page.locator(".part.sidebar .pane-header h3", { hasText: view }).first().click();
    const rows = page.locator(".pane-body .monaco-list-row");
    await rows.filter({ hasText: /^search⚑|^search.*⚑ math/ }).nth(1).click();
    await page.keyboard.press("ArrowRight");
    await hoverOf(page, rows.filter({ hasText: /math \(in-domain\): loss confirmed/ }).last(), /nearest to what moved, and should have protected it: math\.train\.jsonl line \d+/);
    await shot(page, "replay");
    say("flags: the replay rows that should have protected what moved");
  });
}
